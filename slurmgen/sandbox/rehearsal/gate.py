"""A gate that any number of waiting processes pass at once, and at no cost while they wait.

They read a named pipe that the rehearsal holds open: closing it is the end of file for all. When
the rehearsal is killed, the kernel closes it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Gate:
    """The named pipe at `path`, a new one after each `open()`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0
        self._passed: list[int] = []
        self._held = self._make()

    def open(self) -> None:
        """Let through all that wait; who comes later waits for the next time."""
        before, self._held = self._held, self._make()
        # To reach who looked up the old pipe just before, and opens it just after.
        self._passed.append(os.open(f"/proc/self/fd/{before}", os.O_RDONLY | os.O_NONBLOCK))
        os.close(before)

    def nudge(self) -> None:
        """Let through the stragglers of earlier times."""
        for reader in self._passed:
            with suppress(OSError):
                os.close(os.open(f"/proc/self/fd/{reader}", os.O_WRONLY | os.O_NONBLOCK))

    def close(self) -> None:
        """Open it for good; again is harmless."""
        if self._held < 0:
            return
        self.nudge()
        self._path.unlink(missing_ok=True)
        self._path.touch()
        for descriptor in (self._held, *self._passed):
            os.close(descriptor)
        self._held, self._passed = -1, []

    def _make(self) -> int:
        self._count += 1
        new = self._path.with_name(f"{self._path.name}.{self._count}")
        os.mkfifo(new, 0o600)
        descriptor = os.open(new, os.O_RDWR | os.O_NONBLOCK)
        new.rename(self._path)
        return descriptor
