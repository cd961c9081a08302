"""Trainings that are interrupted on a real Slurm: every loss of every rank, to the last bit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.sandbox import Sandbox
from tests.slurm.conftest import ROOT
from tests.slurm.interrupted import SHAPE, Job, Jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slurm, pytest.mark.torch]

PROGRAM = Path(__file__).with_name("trains.py")
LAUNCHERS: dict[str, dict[str, Any]] = {
    "srun": {"nodes": 2, "ntasks_per_node": 1},
    "plain": {"launcher": "plain"},
}
# It takes its steps, and MOMENT is a random part of a second or two.
_GO = "touch FOLDER/go; sleep MOMENT"
# A job that failed is put back by hand.
_BACK = (
    "until scontrol show job JOB | grep -q JobState=FAILED; do sleep 0.2; done;"
    " scontrol requeue JOB"
)
# What is done to a job once its program is in the middle of its training (JOB: its id, FOLDER:
# its working directory), and more keys of its job file.
TRIGGERS: dict[str, tuple[str, dict[str, Any]]] = {
    "the signal": (f"{_GO}; scancel --signal=USR1 JOB", {}),
    "the signal to the batch shell": (f"{_GO}; scancel --batch --signal=USR1 JOB", {}),
    "TERM to the program": (f"{_GO}; scancel --signal=TERM JOB", {}),
    "scontrol requeue": (f"{_GO}; scontrol requeue JOB", {}),
    "the time limit": ("", {"time": "3m", "requeue": {"signal": "USR1@60"}}),
    "preemption": (
        "sbatch --partition=high --nodes=2 --gres=gpu:2 --mem=100M --output=/dev/null --wrap=true",
        {"partition": "low", "gpus_per_node": 1},
    ),
    "KILL of rank 0": (f"{_GO}; kill -9 $(cat FOLDER/pid.0); {_BACK}", {}),
    "KILL of the last rank": (f"{_GO}; kill -9 $(cat FOLDER/pid.* | tail -n 1); {_BACK}", {}),
    "KILL of all": (f"{_GO}; scancel --signal=KILL JOB.0; {_BACK}", {}),
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Job]]:
    folder = tmp_path_factory.mktemp("resume")
    moments = random.Random(5)
    with Sandbox.up(name="resume", shape=SHAPE, directory=folder / "sandbox") as sandbox:
        jobs = Jobs(sandbox, folder)
        for launcher, size in LAUNCHERS.items():
            for trigger, (once, more) in {"nothing": ("", {}), **TRIGGERS}.items():
                word = "untouched" if trigger == "nothing" else "interrupted"
                given = {
                    "ddp": str(PROGRAM),
                    "args": [word],
                    "env": {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
                    **size,
                    **more,
                }
                moment = f"{moments.uniform(0, 1.5):.2f}"
                jobs.submit(f"{launcher}: {trigger}", once.replace("MOMENT", moment), given)
        jobs.do(300)
        jobs.wait()
        yield jobs.all


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_losses_are_those_of_an_untouched_run(
    jobs: dict[str, Job], launcher: str, trigger: str
) -> None:
    whole, job = jobs[f"{launcher}: nothing"], jobs[f"{launcher}: {trigger}"]
    assert whole.ended() == ("COMPLETED", 0, "0:0"), whole.log
    assert job.ended() == ("COMPLETED", 1, "0:0"), job.log
    assert "goes on after step" in job.log
    ranks = range(2 if launcher == "srun" else 1)
    for rank in ranks:
        expected = _losses(whole, rank)
        assert len(expected) == 72
        assert _losses(job, rank) == expected


def _losses(job: Job, rank: int) -> dict[int, str]:
    """What each step gave; one that was taken twice, since a kill undid it, gave the same."""
    losses: dict[int, str] = {}
    for line in (job.folder / f"losses.{rank}").read_text().splitlines():
        step, rest = line.split(" ", 1)
        assert losses.setdefault(int(step), rest) == rest
    return losses
