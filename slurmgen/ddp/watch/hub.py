"""The connections between the supervisors of a run, seen from rank 0.

Every second each side says that it is there. A side that is silent for too long, or whose
connection ends before it has taken its leave, is lost: only so is a dead node or a cut network
noticed, at which NCCL and gloo would wait for half an hour. Whoever hasn't proved to be of this
run costs a little memory for a few seconds, and nothing else. Nothing here blocks, and no torch.
"""

from __future__ import annotations

import errno
import resource
import selectors
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.ddp import log
from slurmgen.ddp.watch.handshake import LINE, Host, Stranger
from slurmgen.ddp.watch.messages import Language, OddError
from slurmgen.ddp.watch.wire import Wire

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from slurmgen.ddp.watch.secret import Token
    from slurmgen.ddp.watch.wire import Message

BEAT_S = 1.0
"""Between two signs of life."""

_PROOF_S = 10.0
"""How long somebody may take to prove that it is of this run, and to say which rank it is."""

_STRANGERS = 256, 4096
"""How many may be about it at once: as many as there are ranks, but at least and at most these."""

_COMPLAINTS = 10


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


class _Unproved(NamedTuple):
    """Somebody who has connected."""

    wire: Wire
    host: Host
    since: float


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
        self._language = Language(token.world_size)
        self._listeners = list(listeners)
        # By number, in the order in which they came.
        self._strangers: dict[int, _Unproved] = {}
        self._most = min(max(token.world_size, _STRANGERS[0]), _STRANGERS[1])
        self._count = self._complaints = 0
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
        while self._strangers and now - next(iter(self._strangers.values())).since > _PROOF_S:
            self._hang_up_on_oldest(1)

    def close(self) -> None:
        """Hang up on everybody."""
        for one in self._listeners:
            self._selector.unregister(one)
            one.close()
        self._hang_up_on_oldest(len(self._strangers))
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
                self._hang_up_on_oldest(len(self._strangers) // 2 + 1)
            return
        # One of ours is done within moments, so that the oldest are the least likely ones.
        self._hang_up_on_oldest(len(self._strangers) + 1 - self._most)
        self._count += 1
        number = self._count
        wire = Wire(sock, self._selector, lambda: self._greet(number), limit=LINE)
        self._strangers[number] = _Unproved(wire, Host(self._token, self.port), time.monotonic())

    def _hang_up_on_oldest(self, count: int) -> None:
        for number in list(self._strangers)[: max(count, 0)]:
            self._strangers.pop(number).wire.close()

    def _greet(self, number: int) -> None:
        if number not in self._strangers:
            # Hung up on since the selector noticed it.
            return
        wire, host, _ = self._strangers[number]
        for line in wire.lines():
            try:
                if not host.proved:
                    wire.write(host.answer(line))
                elif self._join(wire, self._language.guest(line)):
                    del self._strangers[number]
                    return
            except Stranger:
                wire.close()
            except OddError as error:
                self._complain(f"hung up on one that knows the run's secret: {error}")
                wire.close()
            if wire.closed:
                break
        if wire.closed:
            del self._strangers[number]

    def _join(self, wire: Wire, place: Message) -> bool:
        if place["rank"] in self.peers:
            wire.send({"refused": "twice"})
            return False
        wire.trust()
        peer = self.peers[place["rank"]] = Peer(**place, wire=wire)
        wire.on_ready(lambda: self._read(peer))
        wire.send({"welcome": self._me, "port": self._port})
        return True

    def _complain(self, text: str) -> None:
        self._complaints += 1
        if self._complaints <= _COMPLAINTS:
            log.warn(text)

    def _read(self, peer: Peer) -> None:
        wire = peer.wire
        if wire is None:
            return
        for line in wire.lines():
            try:
                message = self._language.of_peer(line, peer.rank)
            except OddError as error:
                self._complain(f"hung up on {peer}, which says what no rank says: {error}")
                self._drop(peer, f"it says what no rank says: {error}")
                return
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


def _allow_files() -> None:
    """A connection is an open file, and there is one for each rank."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
