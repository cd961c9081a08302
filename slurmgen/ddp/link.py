"""The connections between the supervisors of a run: a hub at rank 0, a spoke at each other rank.

Messages are JSON objects, a line each. Every second each side says that it is there. A side that
is silent for too long, or whose connection ends before it has taken its leave, is lost: only so
is a dead node or a cut network noticed, at which NCCL and gloo would wait for half an hour.
Nothing here blocks, and no torch.
"""

from __future__ import annotations

import errno
import json
import random
import resource
import secrets
import selectors
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slurmgen.ddp.ports import Token

Message = dict[str, Any]

BEAT_S = 1.0
"""Between two signs of life."""

CONNECT_S = 1.0
"""How long a candidate may take to accept a connection, and at first to prove that it is ours."""

_PATIENCE_S = 8.0
_STRANGER_S = 30.0
_STRANGERS = 4096
_LINE = 1 << 20
_CHUNK = 1 << 16
_UNREAD = 1 << 23


class Wire:
    """One connection. Reads and writes what it can at once, and keeps the rest for later."""

    def __init__(
        self,
        sock: socket.socket,
        selector: selectors.BaseSelector,
        ready: Callable[[], None],
    ) -> None:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.closed = False
        self._sock, self._selector, self._ready = sock, selector, ready
        self._inbox, self._outbox = b"", bytearray()
        self._events = selectors.EVENT_READ
        selector.register(sock, self._events, self._turn)

    def on_ready(self, ready: Callable[[], None]) -> None:
        """Call `ready` from here on when something has arrived."""
        self._ready = ready

    @property
    def pending(self) -> bool:
        """Whether something is still to be written."""
        return bool(self._outbox) and not self.closed

    def send(self, message: Message) -> None:
        """Send `message`, now or when there is room; to a closed connection, nothing."""
        if not self.closed:
            self._outbox += json.dumps(message).encode() + b"\n"
            self._flush()

    def receive(self) -> list[Message]:
        """What has arrived. A side that doesn't speak this language is hung up on."""
        if not self.closed:
            self._fill()
        *lines, self._inbox = self._inbox.split(b"\n")
        if len(self._inbox) > _LINE:
            self.close()
        found: list[Message] = []
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if not isinstance(message, dict):
                self.close()
                break
            found.append(message)
        return found

    def close(self) -> None:
        """End the connection."""
        if not self.closed:
            self.closed = True
            self._selector.unregister(self._sock)
            self._sock.close()

    def _turn(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._flush()
        if events & selectors.EVENT_READ:
            self._ready()

    def _fill(self) -> None:
        try:
            while True:
                data = self._sock.recv(_CHUNK)
                if not data:
                    self.close()
                    return
                self._inbox += data
                if len(data) < _CHUNK or len(self._inbox) > _LINE:
                    return
        except BlockingIOError:
            pass
        except OSError:
            self.close()

    def _flush(self) -> None:
        if self.closed:
            return
        try:
            while self._outbox:
                sent = self._sock.send(self._outbox[:_CHUNK])
                del self._outbox[:sent]
        except BlockingIOError:
            pass
        except OSError:
            # What the other side had said before it left can still be read.
            self._outbox.clear()
        if len(self._outbox) > _UNREAD:
            self.close()
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outbox else 0)
        if events != self._events:
            self._events = events
            self._selector.modify(self._sock, events, self._turn)


@dataclass
class Peer:
    """A rank whose supervisor has joined."""

    rank: int
    node: str
    host: str
    local_rank: int
    wire: Wire | None
    heard: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        return f"rank {self.rank} on {self.node} (local rank {self.local_rank})"


class Hub:
    """The side of rank 0: knows every rank that has joined, and tells all what concerns all.

    lost: called with the peer and how it was lost. heard: with the peer and its message.
    """

    def __init__(
        self,
        token: Token,
        me: Message,
        listeners: Sequence[socket.socket],
        selector: selectors.BaseSelector,
        *,
        lost_s: float,
        heard: Callable[[Peer, Message], None],
        lost: Callable[[Peer, str], None],
    ) -> None:
        self.peers: dict[int, Peer] = {}
        self._token, self._me, self._selector, self._lost_s = token, me, selector, lost_s
        self._heard, self._lost = heard, lost
        self._listeners = list(listeners)
        self._strangers: dict[int, tuple[Wire, float]] = {}
        self._count = 0
        self._port: int | None = None
        self._next_beat = 0.0
        self._last_tick = time.monotonic()
        _allow_files()
        for one in self._listeners:
            selector.register(one, selectors.EVENT_READ, lambda _, one=one: self._accept(one))

    @property
    def port(self) -> int:
        """At which it listens."""
        return int(self._listeners[0].getsockname()[1])

    def announce(self, port: int) -> None:
        """Tell every rank, now or when it joins, the port of rank 0's store."""
        self._port = port
        self.tell({"port": port})

    def tell(self, message: Message) -> None:
        """Send `message` to every rank that is here."""
        for peer in list(self.peers.values()):
            if peer.wire is not None:
                peer.wire.send(message)

    def here(self) -> list[Peer]:
        """Those that have joined and neither left nor got lost."""
        return [peer for peer in self.peers.values() if peer.wire is not None]

    def all_left(self) -> bool:
        """Whether every other rank has been here, and none still is."""
        return len(self.peers) == self._token.world_size - 1 and not self.here()

    def silent(self, seconds: float) -> bool:
        """Whether a rank has said nothing for as long."""
        now = time.monotonic()
        return any(now - peer.heard > seconds for peer in self.here())

    def tick(self) -> None:
        """What is due: signs of life, and noticing who gives none."""
        now = time.monotonic()
        self._forgive(now)
        if now >= self._next_beat:
            self._next_beat = now + BEAT_S
            self.tell({"beat": 1})
        for peer in self.here():
            if now - peer.heard > self._lost_s:
                self._drop(peer, f"silent for {self._lost_s:g} s")
        for number, (wire, since) in list(self._strangers.items()):
            if wire.closed or now - since > _STRANGER_S:
                wire.close()
                del self._strangers[number]

    def close(self) -> None:
        """Hang up on everybody."""
        for one in self._listeners:
            self._selector.unregister(one)
            one.close()
        for wire, _ in self._strangers.values():
            wire.close()
        for peer in self.here():
            if peer.wire is not None:
                peer.wire.close()

    def _forgive(self, now: float) -> None:
        # This process itself was stopped (scontrol suspend): nobody can be blamed for silence.
        gap, self._last_tick = now - self._last_tick, now
        if gap > 2 * BEAT_S:
            for peer in self.peers.values():
                peer.heard += gap

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, _ = listener.accept()
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE}:
                self._hang_up_on_strangers()
            return
        if len(self._strangers) >= _STRANGERS:
            self._hang_up_on_strangers()
        self._count += 1
        number = self._count
        wire = Wire(sock, self._selector, lambda: self._greet(number))
        self._strangers[number] = wire, time.monotonic()

    def _hang_up_on_strangers(self) -> None:
        for wire, _ in self._strangers.values():
            wire.close()
        self._strangers.clear()

    def _greet(self, number: int) -> None:
        wire = self._strangers[number][0]
        for message in wire.receive():
            if "nonce" in message:
                if message.get("run") == self._token.digest("name"):
                    wire.send({"proof": self._token.digest(f"hub {message['nonce']}")})
                else:
                    wire.send({"other": self._token.run})
            elif message.get("proof") == self._token.digest("join") and not wire.closed:
                if self._join(wire, message):
                    del self._strangers[number]
                    return
            else:
                wire.close()
        if wire.closed:
            self._strangers.pop(number, None)

    def _join(self, wire: Wire, message: Message) -> bool:
        rank = int(message["rank"])
        if rank in self.peers or rank == 0:
            wire.send({"refused": "twice"})
            return False
        place = str(message["node"]), str(message["host"]), int(message["local_rank"])
        peer = self.peers[rank] = Peer(rank, *place, wire)
        wire.on_ready(lambda: self._read(peer))
        wire.send({"welcome": self._me, "port": self._port})
        return True

    def _read(self, peer: Peer) -> None:
        wire = peer.wire
        if wire is None:
            return
        for message in wire.receive():
            peer.heard = time.monotonic()
            if "beat" in message:
                continue
            if "bye" in message:
                # By closing, it is told that this has arrived.
                peer.wire = None
                wire.close()
                self._heard(peer, message)
                return
            self._heard(peer, message)
        if wire.closed and peer.wire is not None:
            self._drop(peer, "its connection ended")

    def _drop(self, peer: Peer, why: str) -> None:
        if peer.wire is not None:
            peer.wire.close()
            peer.wire = None
            self._lost(peer, why)


class Spoke:
    """The side of every other rank: finds rank 0's hub among `targets`, joins it, and stays.

    state: "seeking", "joined", "refused" (the rank is there already), "left" (the hub has taken
    its leave, or this side has), "lost". reason: what came of the tries so far. hub: who rank 0
    is, once joined.
    heard: called with each message. lost: with how the hub was lost.
    """

    def __init__(
        self,
        token: Token,
        me: Message,
        targets: Sequence[tuple[str, int]],
        selector: selectors.BaseSelector,
        *,
        lost_s: float,
        heard: Callable[[Message], None],
        lost: Callable[[str], None],
    ) -> None:
        self.state = "seeking"
        self.reason = "no answer"
        self.hub: Message = {}
        self._token, self._me, self._targets = token, me, list(targets)
        self._selector, self._lost_s = selector, lost_s
        self._heard_by, self._lost_by = heard, lost
        self._wire: Wire | None = None
        self._knocking: socket.socket | None = None
        self._nonce = ""
        self._proved = False
        self._turn, self._round = 0, 0
        # Hundreds of ranks start in the same moment.
        self._next_try = time.monotonic() + random.uniform(0, min(token.world_size / 1000, 1.0))
        self._deadline = 0.0
        self._heard = self._last_tick = time.monotonic()
        self._next_beat = 0.0

    def send(self, message: Message) -> None:
        """To the hub, where this rank has joined it."""
        if self.state == "joined" and self._wire is not None:
            self._wire.send(message)

    def leave(self, message: Message) -> None:
        """Say `message`, the last one. The hub answers by hanging up."""
        self.send({**message, "bye": 1})
        if self.state == "joined":
            self.state = "left"
        elif self.state == "seeking":
            self._drop()
            self.state = "left"

    @property
    def connected(self) -> bool:
        """Whether the connection is still up, also after `leave`."""
        return self._wire is not None and not self._wire.closed

    def tick(self) -> None:
        """What is due: the next try, a sign of life, noticing that the hub gives none."""
        now = time.monotonic()
        gap, self._last_tick = now - self._last_tick, now
        if gap > 2 * BEAT_S:
            # This process itself was stopped.
            self._heard += gap
            self._deadline += gap
        if self.state == "seeking":
            self._seek(now)
        elif self.state == "joined":
            if now - self._heard > self._lost_s:
                self._lose(f"silent for {self._lost_s:g} s")
            elif now >= self._next_beat:
                self._next_beat = now + BEAT_S
                self.send({"beat": 1})

    def close(self) -> None:
        """Hang up."""
        self._drop()

    # --- finding the hub -------------------------------------------------------------------

    def _seek(self, now: float) -> None:
        busy = self._knocking is not None or self._wire is not None
        if busy and now > self._deadline:
            if self._wire is not None:
                self.reason = f"what listens at {self._where()} doesn't answer as rank 0"
            self._next()
        elif not busy and now >= self._next_try and self._targets:
            self._knock(now)

    def _where(self) -> str:
        address, port = self._targets[self._turn]
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    def _knock(self, now: float) -> None:
        address, port = self._targets[self._turn]
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        sock.setblocking(False)
        self._deadline = now + CONNECT_S
        try:
            code = sock.connect_ex((address, port))
        except OSError as error:
            code = error.errno or errno.EINVAL
        if code not in {0, errno.EINPROGRESS}:
            sock.close()
            self._next()
            return
        self._knocking = sock
        self._selector.register(sock, selectors.EVENT_WRITE, lambda _: self._opened())

    def _opened(self) -> None:
        sock, self._knocking = self._knocking, None
        if sock is None:
            return
        self._selector.unregister(sock)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        # Knocking at a free port of the ephemeral range, a socket may meet itself.
        if code or sock.getsockname() == sock.getpeername():
            sock.close()
            self._next()
            return
        self._nonce, self._proved = secrets.token_hex(16), False
        self._deadline = time.monotonic() + min(CONNECT_S * 2**self._round, _PATIENCE_S)
        self._wire = Wire(sock, self._selector, self._read)
        self._wire.send({"run": self._token.digest("name"), "nonce": self._nonce})

    def _next(self) -> None:
        self._drop()
        self._turn += 1
        self._next_try = time.monotonic()
        if self._turn == len(self._targets):
            self._turn = 0
            self._round = min(self._round + 1, 10)
            pause = min(0.05 * 2**self._round, 1.0)
            self._next_try += pause * random.uniform(0.5, 1.0)

    def _drop(self) -> None:
        if self._knocking is not None:
            self._selector.unregister(self._knocking)
            self._knocking.close()
            self._knocking = None
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def _read(self) -> None:
        wire = self._wire
        if wire is None:
            return
        for message in wire.receive():
            self._heard = time.monotonic()
            if self.state == "seeking":
                self._greet(message)
                if self._wire is not wire:
                    return
            elif "beat" in message:
                continue
            elif "bye" in message:
                self.state = "left"
                wire.close()
                return
            else:
                self._heard_by(message)
        if wire.closed:
            if self.state == "seeking":
                self._next()
            elif self.state == "joined":
                self._lose("its connection ended")

    def _greet(self, message: Message) -> None:
        assert self._wire is not None
        if not self._proved and message.get("proof") == self._token.digest(f"hub {self._nonce}"):
            self._proved = True
            # From here on it is ours, however busy it may be.
            self._deadline = time.monotonic() + self._lost_s
            self._wire.send({"proof": self._token.digest("join"), **self._me})
        elif self._proved and "welcome" in message:
            self.state, self.hub = "joined", dict(message["welcome"])
            if message["port"] is not None:
                self._heard_by({"port": message["port"]})
        elif self._proved and "refused" in message:
            self.reason = self._where()
            self.state = "refused"
            self._drop()
        else:
            if "other" in message:
                self.reason = f"{self._where()} belongs to another run: {message['other']}"
            else:
                self.reason = f"what listens at {self._where()} doesn't answer as rank 0"
            self._next()

    def _lose(self, why: str) -> None:
        self._drop()
        self.state = "lost"
        self._lost_by(why)


def hub_of(token: Token, address: str, port: int) -> bool:
    """Whether a hub of this very run listens there. For rank 0, before it opens its own; waits.

    Then there are two processes that take themselves for rank 0.
    """
    nonce = secrets.token_hex(16)
    try:
        with socket.create_connection((address, port), timeout=CONNECT_S) as sock:
            sock.sendall(json.dumps({"run": token.digest("name"), "nonce": nonce}).encode() + b"\n")
            sock.settimeout(CONNECT_S)
            answer = json.loads(sock.makefile("rb").readline(4096))
    except (OSError, ValueError):
        return False
    return isinstance(answer, dict) and answer.get("proof") == token.digest(f"hub {nonce}")


def _allow_files() -> None:
    """A connection is an open file, and there is one for each rank."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
