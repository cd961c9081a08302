"""The rank as a process: the signals that reach it, and how it ends. No torch here."""

from __future__ import annotations

import os
import resource
import selectors
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from slurmgen.ddp.launch import signals
from slurmgen.ddp.watch import leash

if TYPE_CHECKING:
    from types import FrameType

PASSED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
_ORDERS = {signal.SIGTERM, signal.SIGINT}
"""What a job is cancelled with: a rank that dies of it has not failed."""

_ORDER_S = 0.5
"""How much later an order that ended the rank may reach its supervisor, on a busy machine."""

_PASS_ON_S = 1.0
"""Slurm sends a signal to every process of a step, a person or torchrun to one of them. What the
rank has not seen for so long, it is sent by its supervisor."""


@dataclass(frozen=True)
class Ending:
    """How a process ended, and when (time.monotonic): its exit status, or the signal's number."""

    at: float
    code: int
    signal: int | None = None

    @property
    def well(self) -> bool:
        return self.signal is None and self.code in {0, signals.EXIT_STOPPED}

    @property
    def status(self) -> int:
        """What a shell makes of it."""
        return self.code if self.signal is None else 128 + self.signal


class Child:
    """The rank `pid`, a child of this process.

    seen: where the rank's Python notes the number of each signal that it gets. mask: the signals
    to be blocked from here on.
    """

    def __init__(
        self,
        pid: int,
        seen: int,
        selector: selectors.BaseSelector,
        mask: set[int | signal.Signals],
    ) -> None:
        self.ending: Ending | None = None
        self._pid = pid
        self._seen_pipe = seen
        self._seen: dict[int, float] = {}
        self._got: dict[int, float] = {}
        self._to_pass: dict[int, float] = {}
        self._wake, own_wake = os.pipe()
        for end in (self._wake, own_wake, seen):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(own_wake, warn_on_full_buffer=False)
        for number in (*PASSED, signal.SIGCHLD):
            signal.signal(number, _nothing)
        selector.register(self._wake, selectors.EVENT_READ, lambda _: self._woken())
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def reap(self) -> bool:
        """Whether it has ended since the last call."""
        if self.ending is not None:
            return False
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid == 0:
            return False
        code, now = os.waitstatus_to_exitcode(status), time.monotonic()
        self.ending = Ending(now, code) if code >= 0 else Ending(now, 0, -code)
        return True

    def send(self, *numbers: int) -> None:
        """Send it signals; nothing where it has ended."""
        if self.ending is None:
            for number in numbers:
                with suppress(ProcessLookupError):
                    os.kill(self._pid, number)

    def kill_all(self) -> None:
        """Kill it, and whatever it has started."""
        if self.ending is None:
            leash.kill_tree(self._pid)

    def pass_on(self, now: float) -> None:
        """Send it what has reached this process, and not the rank."""
        for number in _read(self._seen_pipe):
            self._seen[number] = now
        for number, since in list(self._to_pass.items()):
            if now - since < _PASS_ON_S:
                continue
            del self._to_pass[number]
            if self._seen.get(number, 0.0) < since - _PASS_ON_S:
                self.send(number)

    @property
    def passes(self) -> bool:
        """Whether there is something to pass on."""
        return bool(self._to_pass)

    @property
    def ordered(self) -> bool:
        """Whether this process was told to end."""
        return any(number in self._got for number in _ORDERS)

    @property
    def was_ordered(self) -> bool:
        """Whether the rank ended by a signal that is an order to end, and came from outside."""
        return self._order() in self._got

    def may_be_ordered(self, now: float) -> bool:
        """Whether the order that ended the rank may still be on its way to this process."""
        number = self._order()
        late = self.ending is not None and now - self.ending.at > _ORDER_S
        return number is not None and number not in self._got and not late

    def _order(self) -> int | None:
        if self.ending is None:
            return None
        number = self.ending.signal or self.ending.code - 128
        return number if number in _ORDERS else None

    def _woken(self) -> None:
        now = time.monotonic()
        for number in set(_read(self._wake)) - {signal.SIGCHLD}:
            self._got[number] = now
            self._to_pass.setdefault(number, now)


def die_of(number: int) -> NoReturn:
    """End by the signal that ended the rank, for whoever looks; without a second core file."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    # Where that doesn't end it: process 1 of a container.
    os._exit(128 + number)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Its number is in the pipe of `signal.set_wakeup_fd`."""


def _read(pipe: int) -> bytes:
    try:
        return os.read(pipe, 4096)
    except BlockingIOError:
        return b""
