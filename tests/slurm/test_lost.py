"""Nodes on networks of their own: a link is cut or a node gone in the middle of a training."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.sandbox import Sandbox, faults
from tests.slurm.conftest import ROOT
from tests.slurm.interrupted import SHAPE, Job, Jobs, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.torch,
    pytest.mark.skipif(os.geteuid() != 0, reason="networks of nodes take root"),
]

# gloo alone would wait for half an hour for a peer that no packet comes from.
PROGRAM = """
import time, torch, torch.distributed as dist
from slurmgen import ddp

ddp.init()
print(f"rank {ddp.rank()} ready", flush=True)
while True:
    dist.all_reduce(torch.ones(1))
    time.sleep(0.05)
"""
FAULTS: dict[str, Callable[[Sandbox], object]] = {
    "a cut link": lambda sandbox: faults.cut(sandbox, "n1", "n2"),
    "a node cut off": lambda sandbox: faults.cut(sandbox, "n2"),
    "a node without power": lambda sandbox: faults.kill(sandbox, "n2"),
}


@pytest.fixture(params=FAULTS)
def lost(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Job, dict[str, Any]]]:
    """A job of a rank on each of two nodes that are torn apart, and its failure file."""
    folder = tmp_path_factory.mktemp("lost")
    program = folder / "train.py"
    program.write_text(PROGRAM)
    with Sandbox.up(name="lost", shape=SHAPE, directory=folder / "sandbox", netns=True) as sandbox:
        jobs = Jobs(sandbox, folder)
        given = {
            "nodes": 2,
            "ntasks_per_node": 1,
            "ddp": str(program),
            "env": {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "SLURMGEN_LOST_S": "5"},
            "requeue": False,
        }
        jobs.submit("lost", "", given)
        job = jobs.all["lost"]
        until(job.is_ready, job, 120)
        FAULTS[request.param](sandbox)
        until(lambda: bool(list(job.folder.glob("*.failure.json"))), job, 30)
        # Slurm itself waits for the node that it can't reach, but the script has come to its end.
        until(lambda: _state(jobs, job) != "RUNNING", job, 60)
        (path,) = job.folder.glob("*.failure.json")
        yield job, json.loads(path.read_text())


def test_the_job_ends_and_says_what_is_lost(lost: tuple[Job, dict[str, Any]]) -> None:
    job, failure = lost
    first = failure["first"]
    assert (first["rank"], first["node"], first["kind"]) == (1, "n2", "lost"), job.log
    assert job.records[0]["ExitCode"] == "69:0", job.log
    assert job.log.count("first failure: rank 1 on n2") == 1


def _state(jobs: Jobs, job: Job) -> str:
    jobs.has_ended(job)
    return job.records[0]["JobState"]
