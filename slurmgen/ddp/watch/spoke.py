"""The connection of a supervisor to rank 0's: how it is found, and how its loss is noticed.

Nothing here blocks, and no torch.
"""

from __future__ import annotations

import errno
import random
import selectors
import socket
import time
from typing import TYPE_CHECKING

from slurmgen.ddp.watch.handshake import LINE, Guest, Stranger
from slurmgen.ddp.watch.hub import BEAT_S
from slurmgen.ddp.watch.messages import Language, OddError
from slurmgen.ddp.watch.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slurmgen.ddp.watch.secret import Token
    from slurmgen.ddp.watch.wire import Message

CONNECT_S = 1.0
"""How long a candidate may take to accept a connection, and at first to prove that it is ours."""

_PATIENCE_S = 8.0


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
        self._language = Language(token.world_size)
        self._guest: Guest | None = None
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
        self._guest = Guest(self._token, self._targets[self._turn][1])
        self._deadline = time.monotonic() + min(CONNECT_S * 2**self._round, _PATIENCE_S)
        self._wire = Wire(sock, self._selector, self._read, limit=LINE)
        self._wire.write(self._guest.hello())

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
        for line in wire.lines():
            self._heard = time.monotonic()
            if self._guest is not None:
                self._prove(wire, self._guest, line)
            else:
                self._hear(wire, line)
            if self._wire is not wire or self.state == "left":
                return
        if wire.closed:
            if self.state == "seeking":
                self._next()
            elif self.state == "joined":
                self._lose("its connection ended")

    def _prove(self, wire: Wire, guest: Guest, line: bytes) -> None:
        try:
            proof = guest.answer(line)
        except Stranger:
            self.reason = f"what listens at {self._where()} isn't rank 0 of this run"
            self._next()
            return
        self._guest = None
        wire.trust()
        # From here on it is ours, however busy it may be.
        self._deadline = time.monotonic() + self._lost_s
        wire.write(proof)
        wire.send(self._me)

    def _hear(self, wire: Wire, line: bytes) -> None:
        try:
            message = self._language.of_hub(line)
        except OddError as error:
            self.reason = f"rank 0 at {self._where()} says what no rank says: {error}"
            if self.state == "joined":
                self._lose(f"it says what no rank says: {error}")
            else:
                self._next()
            return
        if self.state == "seeking":
            self._greet(message)
        elif "bye" in message:
            self.state = "left"
            wire.close()
        elif "beat" not in message:
            self._heard_by(message)

    def _greet(self, message: Message) -> None:
        if "welcome" in message:
            self.state, self.hub = "joined", message["welcome"]
            if message.get("port") is not None:
                self._heard_by({"port": message["port"]})
        elif "refused" in message:
            self.reason = self._where()
            self.state = "refused"
            self._drop()
        else:
            self.reason = f"what listens at {self._where()} doesn't answer as rank 0"
            self._next()

    def _lose(self, why: str) -> None:
        self._drop()
        self.state = "lost"
        self._lost_by(why)
