"""The proof that two supervisors give each other, and what they may say afterwards."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest

from slurmgen.ddp.watch.handshake import hub_of
from slurmgen.ddp.watch.secret import Token

TOKEN = Token("job 7", 4, "5ec2e7" * 8)


@pytest.mark.parametrize("data", [b"", b"[" * 200_000, b"0 1\n", b"x" * 100])
def test_a_stranger_on_the_port_is_no_hub(data: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError), server.accept()[0] as sock:
                sock.sendall(data)
                sock.recv(4096)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        assert not hub_of(TOKEN, "127.0.0.1", server.getsockname()[1], seconds=0.5)
