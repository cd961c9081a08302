"""How two supervisors prove to each other that they belong to one run. No torch here.

Four lines, of which only the last is JSON::

    guest   slurmgen.ddp/2 NONCE
    host    NONCE PROOF
    guest   PROOF
    guest   who it is

A proof is an HMAC over both nonces, the side that gives it and the host's port, keyed by the
run's secret: none can be used twice, by the other side, or behind another port than the one it
was made for. Until the guest has proved itself it learns nothing, and what it sends is compared
with a pattern, never parsed.
"""

from __future__ import annotations

import hmac
import re
import secrets
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurmgen.ddp.watch.secret import Token

LINE = 4096
"""The most that is kept, in bytes, of what an unproved side sends without ending a line."""

_NONCE = rb"[0-9a-f]{64}"
_HELLO = re.compile(rb"slurmgen\.ddp/2 (" + _NONCE + rb")")
_ANSWER = re.compile(rb"(" + _NONCE + rb") (" + _NONCE + rb")")


class Stranger(Exception):
    """The other side isn't of this run."""


class Host:
    """The side that listens, at `port`, for one connection. proved: whether the guest is ours."""

    def __init__(self, token: Token, port: int) -> None:
        self.proved = False
        self._token, self._port = token, port
        self._guest, self._own = "", ""

    def answer(self, line: bytes) -> bytes:
        """What to answer to the guest's next line, nothing to its last. Raises Stranger."""
        if not self._own:
            match = _HELLO.fullmatch(line)
            if match is None:
                raise Stranger
            self._guest, self._own = match[1].decode(), secrets.token_hex(32)
            proof = _proof(self._token, "host", self._port, self._guest, self._own)
            return f"{self._own} {proof}\n".encode()
        expected = _proof(self._token, "guest", self._port, self._guest, self._own)
        if not hmac.compare_digest(line, expected.encode()):
            raise Stranger
        self.proved = True
        return b""


class Guest:
    """The side that connects, to `port`."""

    def __init__(self, token: Token, port: int) -> None:
        self._token, self._port = token, port
        self._own = secrets.token_hex(32)

    def hello(self) -> bytes:
        """What to say first."""
        return f"slurmgen.ddp/2 {self._own}\n".encode()

    def answer(self, line: bytes) -> bytes:
        """The guest's proof, once the host's `line` has proved it. Raises Stranger."""
        match = _ANSWER.fullmatch(line)
        if match is None:
            raise Stranger
        host = match[1].decode()
        expected = _proof(self._token, "host", self._port, self._own, host)
        if not hmac.compare_digest(match[2], expected.encode()):
            raise Stranger
        return f"{_proof(self._token, 'guest', self._port, self._own, host)}\n".encode()


def _proof(token: Token, side: str, port: int, guest: str, host: str) -> str:
    return token.digest(f"{side} {port} {guest} {host}")


def hub_of(token: Token, address: str, port: int, *, seconds: float) -> bool:
    """Whether a hub of this very run listens there. For rank 0, before it opens its own.

    Waits, but no longer than that. True means that two processes take themselves for rank 0.
    """
    guest, end, heard = Guest(token, port), time.monotonic() + seconds, b""
    try:
        with socket.create_connection((address, port), timeout=seconds) as sock:
            sock.sendall(guest.hello())
            while b"\n" not in heard and len(heard) < LINE:
                sock.settimeout(max(end - time.monotonic(), 0.001))
                data = sock.recv(LINE)
                if not data or time.monotonic() > end:
                    return False
                heard += data
        guest.answer(heard.partition(b"\n")[0])
    except (OSError, Stranger):
        return False
    return True
