"""Somebody who doesn't belong to a run, and tries all that one can send to a port of its.

``python strangers.py PORT SEED COUNT [RECORDED]``: makes COUNT connections and prints how many of
each kind, all that it was ever told, and the seconds it took, as JSON. RECORDED: a JSON list of
what an honest rank has sent, to be sent again. Needs the standard library alone, so that another
user can run it.
"""

from __future__ import annotations

import collections
import json
import random
import socket
import struct
import sys
import time
from contextlib import suppress

ANSWER_S = 5.0


class Strangers:
    """Connections to `port`, in an order that `seed` decides."""

    def __init__(self, port: int, seed: int, recorded: list[bytes]) -> None:
        self.port, self.random, self.recorded = port, random.Random(seed), recorded
        self.told: set[str] = set()
        self.count: collections.Counter[str] = collections.Counter()
        self.held: list[socket.socket] = []
        self.kinds = [
            self.garbage,
            self.brackets,
            self.objects,
            self.other_protocol,
            self.huge,
            self.slow,
            self.half,
            self.reflected,
            self.replayed,
            self.wrong_after_hello,
            self.scan,
            self.reset,
            self.flood,
        ]

    def go(self, count: int) -> None:
        """Make about `count` connections."""
        while self.count.total() < count:
            kind = self.random.choice(self.kinds)
            # Hung up on, which is what they are for.
            with suppress(OSError):
                kind()
            self.count[kind.__name__] += 1
        for one in self.held:
            one.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_S)

    def send(self, data: bytes) -> None:
        with self.connect() as sock:
            sock.sendall(data)
            self.hear(sock)

    def hear(self, sock: socket.socket) -> bytes:
        """What it is told, if anything comes before it is hung up on."""
        sock.settimeout(0.05)
        data = b""
        with suppress(OSError):
            data = sock.recv(1 << 16)
        self.told.add(data.decode(errors="replace"))
        return data

    def nonce(self) -> str:
        return self.random.randbytes(32).hex()

    def hello(self, nonce: str = "") -> bytes:
        return f"slurmgen.ddp/2 {nonce or self.nonce()}\n".encode()

    # --- the kinds -------------------------------------------------------------------------

    def garbage(self) -> None:
        self.send(self.random.randbytes(self.random.randrange(1, 1 << 16)))

    def brackets(self) -> None:
        self.send(b"[" * 200_000 + b"\n")

    def objects(self) -> None:
        odd = [
            {"nonce": "0", "run": "0"},
            {"proof": "0", "rank": 99, "node": "n", "host": "h", "local_rank": -1},
            {"welcome": {}, "port": 10**400},
            {"end": {"rank": 0}, "failed": [], "hung": None},
            {"beat": 1, "bye": 1, "stacks": {}, "steps": "1"},
        ]
        self.send(json.dumps(self.random.choice(odd)).encode() + b"\n")

    def other_protocol(self) -> None:
        lines = [b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0-x\r\n", b"\x16\x03\x01\x02\0\x01", b"\0" * 99]
        self.send(self.random.choice(lines))

    def huge(self) -> None:
        self.send(b"slurmgen.ddp/2 " + b"0" * (1 << 20))

    def slow(self) -> None:
        """A byte at a time, and never the last."""
        sock = self.connect()
        for byte in self.hello()[: self.random.randrange(1, 40)]:
            sock.sendall(bytes([byte]))
        self.held.append(sock)
        if len(self.held) > 200:
            self.held.pop(0).close()

    def half(self) -> None:
        with self.connect() as sock:
            sock.sendall(self.hello())
            self.hear(sock)
            sock.sendall(self.nonce().encode() + b"\n")
            self.hear(sock)

    def reflected(self) -> None:
        """The host's own proof, and its nonce on a second connection."""
        with self.connect() as sock, self.connect() as other:
            sock.sendall(self.hello())
            words = self.hear(sock).split()
            if len(words) == 2:
                other.sendall(self.hello(words[0].decode()))
                second = self.hear(other).split()
                sock.sendall(words[1] + b"\n" + b'{"rank": 1}\n')
                self.hear(sock)
                if len(second) == 2:
                    other.sendall(second[1] + b"\n")
                    self.hear(other)

    def replayed(self) -> None:
        with self.connect() as sock:
            for line in self.recorded:
                sock.sendall(line)
                self.hear(sock)

    def wrong_after_hello(self) -> None:
        with self.connect() as sock:
            sock.sendall(self.hello())
            self.hear(sock)
            sock.sendall(b'{"rank": 1, "node": "n", "host": "h", "local_rank": 0}\n' * 50)
            self.hear(sock)

    def scan(self) -> None:
        self.connect().close()

    def reset(self) -> None:
        with self.connect() as sock:
            sock.sendall(self.hello())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def flood(self) -> None:
        several = []
        with suppress(OSError):
            for _ in range(20):
                several.append(self.connect())
        self.count["flood"] += len(several)
        for one in several:
            with suppress(OSError):
                one.sendall(self.random.choice([b"", b"[", self.hello()]))
        for one in several:
            one.close()


def main() -> None:
    port, seed, count = map(int, sys.argv[1:4])
    recorded = [line.encode() for line in json.loads(sys.argv[4])] if len(sys.argv) > 4 else []
    strangers = Strangers(port, seed, recorded)
    started = time.monotonic()
    strangers.go(count)
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps([dict(strangers.count), sorted(strangers.told), seconds]))


if __name__ == "__main__":
    main()
