"""A rank's stderr on its way through the supervisor: passed on unchanged, the end remembered."""

from __future__ import annotations

import os
import selectors
import socket
import stat
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 1 << 16
_MOST = 1 << 20
_TAIL = 1 << 14
_WIDTH = 500

STALL_S = 10.0
"""How long a reader of stderr may take nothing, before what the rank writes is dropped for it.

Until then a slow reader slows the rank down, as it would without a supervisor.
"""


class Relay:
    """Reads `source`, the rank's stderr, and writes to `target`, the supervisor's own.

    A target that nobody reads, or that is closed, never holds up the rank for good.
    """

    def __init__(self, source: int, target: int, selector: selectors.BaseSelector) -> None:
        os.set_blocking(source, False)
        self._source: int | None = source
        self._selector = selector
        self._write, self._target = _writer(target)
        self._outbox = bytearray()
        self._tail = b""
        self._dropped = 0
        self._moved = time.monotonic()
        self._reading = self._writing = self._stalled = self._filled = False
        self._read_on()

    def put(self, data: bytes) -> None:
        """Write something of the supervisor's own."""
        self._outbox += data
        self._flush()

    def tail(self, lines: int = 40) -> list[str]:
        """The last lines that the rank wrote; of a progress bar, its last state."""
        text = self._tail.decode(errors="replace").split("\n")
        shown = [line.rstrip("\r").rpartition("\r")[2][:_WIDTH] for line in text]
        if not shown[-1]:
            shown.pop()
        return shown[-lines:]

    def tick(self) -> None:
        """Give up on a reader that takes nothing."""
        if self._outbox and time.monotonic() - self._moved > STALL_S:
            self._stalled = True
            self._drop()

    def drain(self, seconds: float) -> None:
        """The rank has ended: pass on what is left, waiting for a reader no longer than that."""
        end = time.monotonic() + seconds
        while True:
            if len(self._outbox) < _MOST:
                self._fill()
            before = len(self._outbox)
            self._flush()
            if not self._outbox and (self._source is None or not self._filled):
                return
            if len(self._outbox) < before:
                end = time.monotonic() + seconds
            elif self._outbox:
                if time.monotonic() > end:
                    return
                time.sleep(0.01)

    def _turn(self, events: int) -> None:
        if events & selectors.EVENT_READ:
            self._fill()
        self._flush()

    def _fill(self) -> None:
        self._filled = False
        if self._source is None:
            return
        try:
            data = os.read(self._source, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._stop_reading()
            os.close(self._source)
            self._source = None
            return
        self._filled = True
        self._tail = (self._tail + data)[-_TAIL:]
        self._outbox += data

    def _flush(self) -> None:
        while self._outbox:
            try:
                count = self._write(bytes(self._outbox[:_CHUNK]))
            except BlockingIOError:
                break
            except InterruptedError:
                continue
            except OSError:
                # Closed, or the disk is full: the rank is not told, and goes on.
                count = len(self._outbox)
            if self._stalled:
                self._stalled = False
                lost, self._dropped = self._dropped, 0
                note = f"\nslurmgen.ddp: {lost} bytes of stderr dropped: nobody read them\n"
                self._outbox[count:count] = note.encode()
            del self._outbox[:count]
            self._moved = time.monotonic()
        if not self._outbox:
            self._moved = time.monotonic()
        if self._stalled:
            self._drop()
        if len(self._outbox) >= _MOST:
            self._stop_reading()
        else:
            self._read_on()
        self._watch_target()

    def _drop(self) -> None:
        # A little stays, whose going says that somebody reads again.
        self._dropped += max(len(self._outbox) - _CHUNK, 0)
        del self._outbox[_CHUNK:]
        self._read_on()

    def _read_on(self) -> None:
        if not self._reading and self._source is not None:
            self._selector.register(self._source, selectors.EVENT_READ, self._turn)
            self._reading = True

    def _stop_reading(self) -> None:
        if self._reading and self._source is not None:
            self._selector.unregister(self._source)
            self._reading = False

    def _watch_target(self) -> None:
        wanted = bool(self._outbox) and self._target is not None
        if wanted and not self._writing:
            assert self._target is not None
            self._selector.register(self._target, selectors.EVENT_WRITE, self._turn)
        elif self._writing and not wanted:
            assert self._target is not None
            self._selector.unregister(self._target)
        self._writing = wanted


def _writer(target: int) -> tuple[Callable[[bytes], int], int | None]:
    """How to write to `target` without waiting, and what to watch for room; None: it never waits.

    O_NONBLOCK itself would change it for every process that shares it.
    """
    mode = os.fstat(target).st_mode
    if stat.S_ISSOCK(mode):
        sock = socket.socket(fileno=os.dup(target))
        return lambda data: sock.send(
            data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
        ), sock.fileno()
    if stat.S_ISFIFO(mode):
        try:
            own = os.open(f"/proc/self/fd/{target}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return lambda data: os.write(target, data), None
        return lambda data: os.write(own, data), own
    return lambda data: os.write(target, data), None
