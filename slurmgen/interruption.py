"""Interruption: Ctrl-C and its kin, held back to where nothing is half done."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruptions:
    """Inside the `with`, SIGINT, SIGTERM and SIGHUP only count; `check()` acts on them.

    A signal that came after the last `check()` is delivered at the end of the `with`.
    Outside the main thread, where Python lets nobody set handlers, it does nothing.

    count: how many have come.
    """

    def __init__(self) -> None:
        self.count = 0
        self._pending: int | None = None
        self._previous: dict[signal.Signals, object] = {}

    def __enter__(self) -> Interruptions:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                # nohup's choice to ignore SIGHUP stays.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.deliver()
        else:
            self._restore()

    def check(self) -> None:
        """Raise what the signal that came would have raised or done; nothing otherwise."""
        if self._pending is None:
            return
        if self._pending == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + self._pending)

    def deliver(self) -> None:
        """Let signals act again, at once on the one that came; nothing counts from here on."""
        self._restore()
        pending, self._pending = self._pending, None
        if pending is not None:
            os.kill(os.getpid(), pending)

    def _restore(self) -> None:
        while self._previous:
            number, handler = self._previous.popitem()
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._pending = number
        self.count += 1
