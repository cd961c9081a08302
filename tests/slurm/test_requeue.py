"""`requeue: {…}` on a real Slurm: what brings a job back, and what must not.

All jobs run side by side: a requeued one spends most of its time waiting.
"""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.cluster.profile import Profile
from slurmgen.plan import resolve
from slurmgen.render import render
from slurmgen.sandbox import Sandbox, Shape
from slurmgen.spec.job import JobSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slurm

PROGRAM = Path(__file__).with_name("saves.py")
GENERIC = Profile(name="generic")
# Jobs in `low` are preempted by those in `high`, and told 30 seconds before.
SHAPE = Shape(
    gpus_per_node=1,
    extra_conf=(
        "PreemptType=preempt/partition_prio",
        "PreemptMode=REQUEUE",
        "PartitionName=low Nodes=ALL PriorityTier=1 GraceTime=30 PreemptMode=REQUEUE",
        "PartitionName=high Nodes=ALL PriorityTier=9 PreemptMode=OFF",
    ),
)
LAUNCHERS: dict[str, dict[str, Any]] = {
    "srun": {"nodes": 2, "ntasks_per_node": 2},
    "plain": {"launcher": "plain"},
}


@dataclass
class Case:
    """A job, what is done to it once its program runs, and how it ended.

    once: a command in which JOB is the job's id. job: more keys of the job file.
    """

    once: str = ""
    job: dict[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    job_id: str = ""
    folder: Path = Path()

    @property
    def log(self) -> str:
        logs = sorted(self.folder.glob("log*"))
        return "\n".join(path.read_text() for path in logs)


USR1_AND_USR2 = {"requeue": {"signal": "USR2@90"}}
BACK = {
    "the job's signal": Case("scancel --signal=USR1 JOB"),
    "USR2": Case("scancel --signal=USR2 JOB", USR1_AND_USR2),
    "the signal to the batch shell": Case("scancel --batch --signal=USR1 JOB"),
    "the signal to both": Case("scancel --full --signal=USR1 JOB"),
    "TERM to the program": Case("scancel --signal=TERM JOB"),
    "scontrol requeue": Case("scontrol requeue JOB"),
    "the time limit": Case(job={"time": "2m", "requeue": {"signal": "USR1@50"}}),
}
STAYS = {
    "scancel": Case("scancel JOB"),
    "scancel of a stopped job": Case("scancel --signal=STOP JOB; sleep 1; scancel JOB"),
    "TERM to the batch shell": Case("scancel --batch --signal=TERM JOB"),
    "TERM to both": Case("scancel --full --signal=TERM JOB"),
    "another status": Case("scancel --signal=USR1 JOB", command=("3",)),
    "no restart left": Case(
        "scancel --signal=USR1 JOB", {"requeue": {"max_restarts": 1}, "env": {"RUNS": "9"}}
    ),
}
ALONE = {
    "array": Case("scancel --signal=USR1 JOB_1", {"array": "0-1", "env": {"RUNS": "2"}}),
    "cancelled array": Case("scancel JOB_1", {"array": "0-1"}),
    "at once": Case(job={"env": {"AT_ONCE": "1", "RUNS": "99"}}),
    "at once with progress": Case(job={"env": {"AT_ONCE": "1", "PROGRESS": "1", "RUNS": "8"}}),
    "input": Case(
        "scancel --signal=USR1 JOB",
        {"input": str(PROGRAM), "command": f"head -n 1\n{sys.executable} {PROGRAM}"},
    ),
    "preempted": Case(job={"partition": "low", "nodes": 2, "gpus_per_node": 1}),
    "plain preempted": Case(),
}


def all_cases() -> Iterator[tuple[str, str, Case]]:
    for launcher in LAUNCHERS:
        for name, case in (BACK | STAYS).items():
            yield f"{launcher}: {name}", launcher, Case(case.once, case.job, case.command)
    for name, case in ALONE.items():
        if name != "plain preempted":
            yield name, "" if name == "preempted" else "plain", case


@dataclass
class Cluster:
    sandbox: Sandbox
    folder: Path

    def submit(self, name: str, launcher: str, case: Case) -> None:
        case.folder = self.folder / re.sub(r"\W", "-", name)
        case.folder.mkdir()
        job: dict[str, Any] = {
            "time": "10m",
            "mem": "1G",
            "requeue": {},
            "output": str(case.folder / ("log-%a" if "array" in case.job else "log")),
            "command": [sys.executable, str(PROGRAM), *case.command],
            **LAUNCHERS.get(launcher, {}),
            **case.job,
        }
        script = case.folder / "job.sbatch"
        script.write_text(render(resolve(JobSpec(**job), GENERIC)))
        done = self.sandbox.run(["sbatch", "--parsable", str(script)], cwd=case.folder)
        assert done.returncode == 0, done.stderr
        case.job_id = done.stdout.strip()

    def show(self, job_id: str) -> list[dict[str, str]]:
        """What Slurm knows of a job, for each task of an array."""
        shown = self.sandbox.run(["scontrol", "show", "job", job_id]).stdout
        return [dict(re.findall(r"(\w+)=(\S*)", text)) for text in shown.strip().split("\n\n")]

    def shell(self, text: str) -> None:
        done = self.sandbox.run(["bash", "-ec", text])
        assert done.returncode == 0, done.stderr


def until(met: Callable[[], bool], what: Callable[[], str], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, what()
        time.sleep(0.2)


ENDED = {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"}
