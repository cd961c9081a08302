"""One connection: bytes that come and go without anybody waiting, a message a line. No torch here.

Messages are JSON objects.
"""

from __future__ import annotations

import json
import selectors
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Message = dict[str, Any]

_LINE = 1 << 20
_CHUNK = 1 << 16
_UNREAD = 1 << 23


class Wire:
    """One connection. Reads and writes what it can at once, and keeps the rest for later.

    limit: the most bytes of a line; who sends more is hung up on.
    """

    def __init__(
        self,
        sock: socket.socket,
        selector: selectors.BaseSelector,
        ready: Callable[[], None],
        *,
        limit: int = _LINE,
    ) -> None:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.closed = False
        self._limit = limit
        self._sock, self._selector, self._ready = sock, selector, ready
        self._inbox, self._outbox = b"", bytearray()
        self._events = selectors.EVENT_READ
        selector.register(sock, self._events, self._turn)

    def on_ready(self, ready: Callable[[], None]) -> None:
        """Call `ready` from here on when something has arrived."""
        self._ready = ready

    def trust(self) -> None:
        """The other side is one of ours: its lines may be as long as ours are."""
        self._limit = _LINE

    @property
    def pending(self) -> bool:
        """Whether something is still to be written."""
        return bool(self._outbox) and not self.closed

    def send(self, message: Message) -> None:
        """Send `message`, now or when there is room; to a closed connection, nothing."""
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Send `data` as it is."""
        if not self.closed:
            self._outbox += data
            self._flush()

    def lines(self) -> list[bytes]:
        """What has arrived, without the ends of the lines."""
        if not self.closed:
            self._fill()
        *lines, self._inbox = self._inbox.split(b"\n")
        if max(map(len, (*lines, self._inbox))) > self._limit:
            self._inbox = b""
            self.close()
            return []
        return lines

    def receive(self) -> list[Message]:
        """What has arrived. A side that doesn't speak this language is hung up on."""
        found: list[Message] = []
        for line in self.lines():
            message = parse(line)
            if message is None:
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
        chunk = min(_CHUNK, self._limit)
        try:
            while True:
                data = self._sock.recv(chunk)
                if not data:
                    self.close()
                    return
                self._inbox += data
                if len(data) < chunk or len(self._inbox) > self._limit:
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


def parse(line: bytes) -> Message | None:
    """The message in `line`, None where there is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None
