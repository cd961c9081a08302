"""A rank that fails on a real Slurm: the job ends soon, with its status, and says which it was."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.slurm.conftest import Cluster, Ran

pytestmark = [pytest.mark.slurm, pytest.mark.torch]

# The others wait for the rank that fails, in a collective.
PROGRAM = """
import os, pathlib, signal, sys, time
import torch, torch.distributed as dist
from slurmgen import ddp

ddp.init()
ones = torch.ones(1)
for step in range(3):
    dist.all_reduce(ones)
if ddp.rank() == {rank}:
    pathlib.Path({mark!r}).write_text(repr(time.time()))
    {statement}
dist.all_reduce(ones)
"""


def fail(cluster: Cluster, folder: Path, rank: int, statement: str) -> tuple[Ran, dict[str, Any]]:
    """A job of 4 ranks on 2 nodes, and what its failure file says."""
    program, mark = folder / "train.py", folder / "failed-at"
    program.write_text(PROGRAM.format(rank=rank, statement=statement, mark=str(mark)))
    ran = cluster.run({"nodes": 2, "ntasks_per_node": 2, "ddp": str(program)})
    assert mark.exists(), ran.log
    # Generous: the machine is shared, and Slurm itself takes some of it. The job has an hour.
    assert time.time() - float(mark.read_text()) < 180, ran.log
    (path,) = (cluster.folder / f"job{cluster.count}").glob("slurmgen-*.failure.json")
    failure: dict[str, Any] = json.loads(path.read_text())
    return ran, failure


@pytest.mark.parametrize("rank", [0, 3])
def test_a_killed_rank(cluster: Cluster, tmp_path: Path, rank: int) -> None:
    ran, failure = fail(cluster, tmp_path, rank, "os.kill(os.getpid(), signal.SIGKILL)")
    assert ran.status == 137, ran.log
    first = failure["first"]
    assert (first["rank"], first["node"], first["local_rank"], first["signal"]) == (
        *(rank, f"n{rank // 2 + 1}", rank % 2),
        "KILL",
    )
    said = f"first failure: rank {rank} on n{rank // 2 + 1} (local rank {rank % 2}): killed by"
    assert ran.log.count(said) == 1, ran.log


def test_an_exception_and_not_those_it_caused(cluster: Cluster, tmp_path: Path) -> None:
    ran, failure = fail(cluster, tmp_path, 2, "raise KeyError('no such column')")
    assert ran.status == 1, ran.log
    assert failure["first"]["rank"] == 2
    assert failure["first"]["traceback"].endswith("KeyError: 'no such column'\n")


def test_a_status_of_its_own(cluster: Cluster, tmp_path: Path) -> None:
    ran, failure = fail(cluster, tmp_path, 1, "sys.exit(3)")
    assert ran.status == 3, ran.log
    assert (failure["first"]["rank"], failure["first"]["status"]) == (1, 3)


def test_an_abort_without_a_traceback(cluster: Cluster, tmp_path: Path) -> None:
    ran, failure = fail(cluster, tmp_path, 3, "os.abort()")
    assert ran.status == 134, ran.log
    assert (failure["first"]["rank"], failure["first"]["signal"]) == (3, "ABRT")
    # Of faulthandler, since Python itself says nothing.
    assert any("Fatal Python error: Aborted" in line for line in failure["first"]["stderr"])


def test_a_supervisor_that_is_gone(cluster: Cluster, tmp_path: Path) -> None:
    ran, failure = fail(
        cluster, tmp_path, 0, "os.kill(os.getppid(), signal.SIGKILL); time.sleep(300)"
    )
    assert ran.status != 0
    assert (failure["first"]["rank"], failure["first"]["kind"]) == (0, "lost")
    assert "lost contact with rank 0 on n1" in ran.log
