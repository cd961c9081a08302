"""What a rank tells its supervisor, and asks of it. No torch here.

Without a supervisor (a program that calls ``ddp.init()`` but was not started by the entrypoint)
nothing is told to anybody.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from slurmgen.ddp.failure import LaunchError

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

DUMP_SIGNAL = signal.SIGRTMAX - 1
"""Makes a rank write the stacks of all its threads, by faulthandler: also where Python's own
handlers would never run, since the interpreter's lock is held."""

_SPARE_S = 10.0


class Progress:
    """A counter that a rank and its supervisor both see. To count costs no system call."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE)
        self._count = memoryview(self._page).cast("Q")

    def bump(self) -> None:
        """The rank got on."""
        self._count[0] += 1

    def count(self) -> int:
        """How often it did."""
        return int(self._count[0])


class Desk:
    """The rank's end of the connection to its supervisor."""

    def __init__(self, sock: socket.socket, progress: Progress, stacks: int) -> None:
        self._sock, self._file = sock, sock.makefile("rb")
        self.progress = progress
        # Kept open: faulthandler writes to the number alone.
        self._stacks = stacks
        faulthandler.register(DUMP_SIGNAL, file=stacks, all_threads=True, chain=False)

    def tell(self, **message: Any) -> None:
        """Tell the supervisor; nothing where it is gone, which ends this process anyway."""
        with suppress(OSError):
            self._sock.sendall(json.dumps(message).encode() + b"\n")

    def announce(self, port: int) -> None:
        """Rank 0: its store listens at `port`. Raises LaunchError where no other can hear it."""
        self._ask("announce", 0.0, port=port)

    def store_port(self, timeout_s: float) -> int:
        """Where rank 0's store listens. Waits for it; raises LaunchError after `timeout_s`."""
        return int(self._ask("store", timeout_s, timeout=timeout_s)["port"])

    def hub(self) -> list[list[Any]]:
        """Rank 0: at which addresses and ports its supervisor listens."""
        return list(self._ask("hub", 0.0)["targets"])

    def join(self, targets: Sequence[Sequence[Any]]) -> None:
        """Tell the supervisor where rank 0's listens."""
        self.tell(join=[list(target) for target in targets])

    def _ask(self, what: str, timeout_s: float, **more: Any) -> dict[str, Any]:
        self.tell(ask=what, **more)
        self._sock.settimeout(timeout_s + _SPARE_S)
        try:
            answer = json.loads(self._file.readline())
        except (OSError, ValueError) as error:
            raise LaunchError(
                f"the supervisor of this rank gives no answer ({error})",
                why="without it the rank can't find the others",
                fix="look for its earlier message; it is the parent process of the rank",
            ) from error
        finally:
            self._sock.settimeout(None)
        if "refused" in answer:
            what, why, fix = answer["refused"]
            raise LaunchError(what, why=why, fix=fix)
        return dict(answer)


class _Place:
    desk: Desk | None = None
    pid = 0


_place = _Place()


def sit(desk: Desk) -> None:
    """From here on this process is a rank with a supervisor."""
    _place.desk, _place.pid = desk, os.getpid()


def desk() -> Desk | None:
    """The connection to the supervisor; None without one, and in the rank's own children."""
    return _place.desk if _place.pid == os.getpid() else None


def progress() -> None:
    """The rank got on: what SLURMGEN_HANG_S waits for."""
    if _place.desk is not None:
        _place.desk.progress.bump()


def watch(hang_s: float) -> None:
    """From here on no progress for `hang_s` seconds is a hang; 0 for no bound."""
    own = desk()
    if own is not None:
        own.tell(hang=hang_s)


def ended(status: int) -> None:
    """The program has ended with `status`, and all it had to do is done: 0, or 75 once saved."""
    own = desk()
    if own is not None:
        own.tell(ended=status)


def failed(status: int, text: str, *, secondary: bool) -> None:
    """How this rank ends: what Python would print, and whether a lost peer is the cause."""
    own = desk()
    if own is not None:
        own.tell(failed=status, text=text[-32_000:], secondary=secondary)
