"""Real ranks: processes with the variables that a launcher would give them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
RECORDED_STEP = ROOT / "tests/unit/ddp/environments/22.05.8/stepenv.0"
# A torch process costs seconds of CPU, and the machine may have one core.
TIMEOUT_S = 240
LAUNCHER_NAMES = ("SLURM", "TORCHELASTIC_", "MASTER_", "RANK", "LOCAL_", "WORLD_", "NODE_", "OMP_")


class Ended(NamedTuple):
    """How a process ended, and what it said."""

    code: int
    out: str
    err: str


class Ranks:
    """Starts processes in a folder of their own and collects them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[tuple[subprocess.Popen[bytes], Path]] = []

    def start(self, *words: str, **env: str) -> subprocess.Popen[bytes]:
        """Start ``python *words`` without any launcher's variables but `env`."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_NAMES)}
        own = {
            # Two ranks on the one GPU of a test machine would be refused, rightly.
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": f"{ROOT}",
            "PYTHONWARNINGS": "ignore",
        }
        stem = self.folder / f"process{len(self._running)}"
        with (
            stem.with_suffix(".out").open("wb") as out,
            stem.with_suffix(".err").open("wb") as err,
        ):
            process = subprocess.Popen(
                [sys.executable, *words],
                env={**clean, **own, **env},
                cwd=self.folder,
                stdout=out,
                stderr=err,
            )
        self._running.append((process, stem))
        return process

    def start_step(self, target: str, *arguments: str, world_size: int = 2, port: int) -> None:
        """Start the ranks of a one-node step, as srun would."""
        for rank in range(world_size):
            env = step_variables(rank, world_size, port)
            self.start("-m", "slurmgen.ddp", target, *arguments, **env)

    def end(self) -> list[Ended]:
        """Wait for all; in the order they were started."""
        ended = []
        for process, stem in self._running:
            code = process.wait(TIMEOUT_S)
            out, err = (stem.with_suffix(end).read_text() for end in (".out", ".err"))
            ended.append(Ended(code, out, err))
        self._running.clear()
        return ended

    def run(self, *words: str, **env: str) -> Ended:
        """`start` and `end` of one process."""
        self.start(*words, **env)
        return self.end()[0]

    def write(self, name: str, text: str) -> str:
        """A program in the folder of these processes; returns its name."""
        (self.folder / name).write_text(text)
        return name

    def kill(self) -> None:
        """End what a failed test has left."""
        for process, _ in self._running:
            process.kill()
            process.wait()


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[Ranks]:
    started = Ranks(tmp_path)
    yield started
    started.kill()


@pytest.fixture
def port() -> int:
    """One that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def step_variables(rank: int, world_size: int, port: int, **env: str) -> dict[str, str]:
    """The variables of one rank of a one-node step, on top of a recorded one."""
    recorded = dict(line.split("=", 1) for line in RECORDED_STEP.read_text().splitlines())
    return {
        **{k: v for k, v in recorded.items() if k.startswith("SLURM")},
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
        "SLURM_NTASKS": str(world_size),
        "SLURM_STEP_NUM_TASKS": str(world_size),
        "SLURM_STEP_NUM_NODES": "1",
        "SLURM_STEP_NODELIST": "n1",
        "SLURM_STEP_TASKS_PER_NODE": str(world_size),
        "SLURM_GTIDS": ",".join(map(str, range(world_size))),
        "SLURMGEN_LAUNCHER": "srun",
        "SLURMGEN_WORLD_SIZE": str(world_size),
        "SLURMGEN_SECRET": "5ec2e7" * 8,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        **env,
    }


@pytest.fixture
def step() -> Callable[..., dict[str, str]]:
    return step_variables


@pytest.fixture
def digits() -> str:
    return str(ROOT / "examples/digits/train.py")


@pytest.fixture
def env_ddp() -> str:
    return str(ROOT / "examples/env_ddp/train.py")
