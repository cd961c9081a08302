"""Strangers at the port at which the supervisors of a run meet, while it trains.

About 300 connections, or with SLURMGEN_CHAOS=long 10,000. Run as root, they are another user's.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.ddp.watch.handshake import Guest
from slurmgen.ddp.watch.secret import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[2]
STRANGERS = Path(__file__).with_name("strangers.py")
COUNT = 10_000 if os.environ.get("SLURMGEN_CHAOS") == "long" else 300
SEED = int(os.environ.get("SLURMGEN_CHAOS_SEED", "1"))
TIMEOUT_S = 1800 if COUNT > 1000 else 400
SIZE = 4
STEPS = 100
MOST_MIB = 64
SECRET = "5ec2e7" * 8
JOB = "7"
PYTHON = "/usr/bin/python3"

# Trains at least STEPS steps, and then until it is told that the strangers have gone.
PROGRAM = f"""
import os, time
import torch, torch.distributed as dist
from slurmgen import ddp

ddp.init()
torch.manual_seed(0)
layers = torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)
model = ddp.wrap(torch.nn.Sequential(*layers))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.Generator().manual_seed(ddp.rank())
with open(f"losses{{ddp.rank()}}", "w") as losses:
    step, over = 0, 0.0
    while step < {STEPS} or not over:
        batch = torch.randn(16, 8, generator=data)
        loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step < {STEPS}:
            losses.write(loss.item().hex() + "\\n")
        losses.flush()
        over = ddp.all_mean(float(os.path.exists("over")))
        time.sleep(0.02)
        step += 1
"""


class Run:
    """The ranks of one step, all on this machine."""

    def __init__(self, folder: Path, stack: ExitStack, port: int) -> None:
        folder.mkdir()
        self.folder, self.port = folder, port
        (folder / "train.py").write_text(PROGRAM)
        self.processes: list[subprocess.Popen[bytes]] = []
        for rank in range(SIZE):
            with (folder / f"err{rank}").open("wb") as err:
                process = subprocess.Popen(
                    [sys.executable, "-W", "ignore", "-m", "slurmgen.ddp", "train.py"],
                    env={**os.environ, **self.variables(rank)},
                    cwd=folder,
                    stdout=err,
                    stderr=err,
                )
            self.processes.append(process)
            stack.callback(end, process)

    def variables(self, rank: int) -> dict[str, str]:
        return {
            "PYTHONPATH": str(ROOT),
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "SLURM_JOB_ID": JOB,
            "SLURM_STEP_ID": "0",
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": str(rank),
            "SLURM_NODEID": "0",
            "SLURM_STEP_NUM_TASKS": str(SIZE),
            "SLURM_STEP_NUM_NODES": "1",
            "SLURM_STEP_TASKS_PER_NODE": str(SIZE),
            "SLURMD_NODENAME": "n1",
            "SLURMGEN_FAILURE": str(self.folder / "failure.json"),
            "SLURMGEN_SECRET": SECRET,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self.port),
        }

    @property
    def hub(self) -> int:
        """The port at which rank 0's supervisor listens."""
        return listening(self.processes[0].pid)[0]

    def err(self, rank: int) -> str:
        return (self.folder / f"err{rank}").read_text()

    def losses(self) -> list[list[str]]:
        return [(self.folder / f"losses{rank}").read_text().split() for rank in range(SIZE)]

    def trains(self) -> bool:
        assert all(one.poll() is None for one in self.processes), self.err(0)
        there = all((self.folder / f"losses{rank}").exists() for rank in range(SIZE))
        return there and len(self.losses()[0]) > 2

    def end(self) -> list[int]:
        (self.folder / "over").touch()
        return [one.wait(TIMEOUT_S) for one in self.processes]


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def until(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def listening(pid: int) -> list[int]:
    """The ports at which a process listens, of IPv4."""
    own = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return [
        int(row[1].partition(":")[2], 16)
        for row in rows
        if row[3] == "0A" and f"socket:[{row[9]}]" in own
    ]


def most_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


class Impostor:
    """Listens at MASTER_PORT before rank 0 does, and treats each rank that comes otherwise."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port: int = self.listener.getsockname()[1]
        self.hub: int | None = None
        self.seen: list[str] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self.listener.close()

    def _serve(self) -> None:
        ways = [self._relay, self._echo, self._brackets, self._welcome, self._nothing]
        with suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                way = ways[len(self.seen) % len(ways)]
                self.seen.append(way.__name__)
                threading.Thread(target=self._quietly, args=(way, sock), daemon=True).start()

    def _quietly(self, way: Callable[[socket.socket], None], sock: socket.socket) -> None:
        with suppress(OSError), sock:
            sock.settimeout(30)
            way(sock)

    def _relay(self, sock: socket.socket) -> None:
        """A stranger in the middle: rank 0's own answers, from another port."""
        deadline = time.monotonic() + 10
        while self.hub is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if self.hub is not None:
            with socket.create_connection(("127.0.0.1", self.hub), timeout=30) as other:
                other.sendall(sock.recv(4096))
                sock.sendall(other.recv(4096))
                other.sendall(sock.recv(4096))

    def _echo(self, sock: socket.socket) -> None:
        sock.sendall(sock.recv(4096))
        sock.recv(4096)

    def _brackets(self, sock: socket.socket) -> None:
        sock.sendall(b"[" * 200_000 + b"\n")

    def _welcome(self, sock: socket.socket) -> None:
        sock.recv(4096)
        sock.sendall(b'{"welcome": {"rank": 0, "node": "n", "host": "h"}, "port": 1}\n')
        sock.recv(4096)

    def _nothing(self, sock: socket.socket) -> None:
        sock.recv(4096)
        sock.recv(4096)


def prove(port: int) -> tuple[socket.socket, list[bytes]]:
    """A connection that knows the secret, and what was sent for it."""
    guest = Guest(Token(f"cluster ? job {JOB} step 0 restart 0 attempt 0", SIZE, SECRET), port)
    sock = socket.create_connection(("127.0.0.1", port), timeout=60)
    sent = [guest.hello()]
    sock.sendall(sent[0])
    sent.append(guest.answer(sock.makefile("rb").readline().rstrip(b"\n")))
    sock.sendall(sent[1])
    return sock, sent


def strangers(port: int, recorded: list[str]) -> Any:
    """What came of COUNT connections, another user's if this one may become another."""
    words = ["-I", "-", str(port), str(SEED), str(COUNT), json.dumps(recorded)]
    # Another user may be unable to reach this interpreter, or the file.
    program = STRANGERS.read_text()
    if os.geteuid() == 0 and shutil.which("setpriv") and Path(PYTHON).exists():
        words = ["setpriv", *"--reuid=65534 --regid=65534 --clear-groups".split(), PYTHON, *words]
    else:
        words = [sys.executable, *words]
    done = subprocess.run(
        words, input=program, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ODD: list[Any] = [
    {"rank": 99},
    {"rank": -1},
    {"rank": True},
    {"rank": "1"},
    {"rank": 1.0},
    {"rank": 10**300},
    {"rank": 0},
    {"node": "n" * 3000},
    {"node": None},
    {"local_rank": []},
    {"more": 1},
    [],
    None,
]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as one:
        yield one


def test_a_training_under_attack_gives_the_same_losses(tmp_path: Path, stack: ExitStack) -> None:
    quiet = Run(tmp_path / "quiet", stack, port=free_port())
    until(quiet.trains)
    assert quiet.end() == [0] * SIZE, quiet.err(0)

    impostor = Impostor()
    stack.callback(impostor.close)
    attacked = Run(tmp_path / "attacked", stack, port=impostor.port)
    supervisor = attacked.processes[0].pid
    until(lambda: supervisor > 0 and len(listening(supervisor)) > 0)
    impostor.hub = attacked.hub
    assert impostor.hub != impostor.port
    until(attacked.trains)
    before = most_mib(supervisor)

    sock, sent = prove(impostor.hub)
    place = {"rank": 1, "node": "n1", "host": "h", "local_rank": 1}
    # Rank 1 is there: its seat stays its own.
    with sock:
        sock.sendall(json.dumps(place).encode() + b"\n")
        assert sock.recv(4096) == b'{"refused": "twice"}\n'
    for odd in ODD:
        with prove(impostor.hub)[0] as sock:
            whole = {**place, **odd} if isinstance(odd, dict) else odd
            sock.sendall(json.dumps(whole).encode() + b"\n")
            assert sock.recv(4096) == b""

    recorded = [one.decode() for one in sent] + [json.dumps(place) + "\n"]
    kinds, told, seconds = strangers(impostor.hub, recorded)
    grown = most_mib(supervisor) - before

    assert attacked.end() == [0] * SIZE, attacked.err(0)
    assert attacked.losses() == quiet.losses()
    assert all(len(one) == STEPS for one in attacked.losses())
    assert grown < MOST_MIB
    # Who doesn't know the secret learns a nonce and a proof, and only after a nonce of its own.
    assert all(re.fullmatch(r"|[0-9a-f]{64} [0-9a-f]{64}\n", text) for text in told), told
    assert len(told) > 1
    errors = "".join(map(attacked.err, range(SIZE)))
    assert "Traceback" not in errors
    said = [line for line in errors.splitlines() if "hung up on" in line]
    assert 0 < len(said) <= 10
    assert not (attacked.folder / "failure.json").exists()
    print(
        f"{sum(kinds.values())} connections in {seconds} s, {grown:.1f} MiB more,"
        f" {STEPS} steps of {SIZE} ranks the same; impostor: {len(impostor.seen)}; {kinds}"
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
