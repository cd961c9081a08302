"""Jobs that are interrupted while they run, all side by side on one sandbox.

One that is requeued spends most of its time waiting.
"""

from __future__ import annotations

import os
import re
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slurmgen.jobfile.job import JobSpec
from slurmgen.sandbox import Sandbox, Shape
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from tests.slurm.conftest import GENERIC

if TYPE_CHECKING:
    from collections.abc import Callable

# Jobs in `low` make room for those in `high`, and are told 30 seconds before.
SHAPE = Shape(
    gpus_per_node=2,
    extra_conf=(
        "PreemptType=preempt/partition_prio",
        "PreemptMode=REQUEUE",
        "PartitionName=low Nodes=ALL PriorityTier=1 GraceTime=30 PreemptMode=REQUEUE",
        "PartitionName=high Nodes=ALL PriorityTier=9 PreemptMode=OFF",
    ),
)
ENDED = {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"}


@dataclass
class Job:
    """A job of one case: its id, and what Slurm and its log say in the end."""

    once: str
    job_id: str
    folder: Path
    tasks: int
    records: list[dict[str, str]] = field(default_factory=list)

    @property
    def log(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("log*")))

    @property
    def notes(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("slurmgen-*"))

    def is_ready(self) -> bool:
        """Whether every task has come to the point at which it can be told."""
        return self.log.count("ready") >= self.tasks

    def ended(self) -> tuple[str, int, str]:
        """The state, the number of restarts and the exit code of the only task."""
        (record,) = self.records
        return record["JobState"], int(record["Restarts"]), record["ExitCode"]


class Jobs:
    """Submits, does what is to be done, and waits for all."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.folder = folder
        self.all: dict[str, Job] = {}

    def submit(self, name: str, once: str, given: dict[str, Any]) -> None:
        """once: Bash for when the job is ready; JOB is its id there, FOLDER where it runs."""
        folder = self.folder / re.sub(r"\W", "-", name)
        folder.mkdir()
        job: dict[str, Any] = {
            "time": "10m",
            "mem": "1G",
            "requeue": {},
            "output": str(folder / ("log-%a" if "array" in given else "log")),
            **given,
        }
        script = folder / "job.sbatch"
        plan = resolve(JobSpec(**job), GENERIC)
        script.write_text(render(plan))
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = self.sandbox.run(
            ["sbatch", "--parsable", str(script)], cwd=folder, extra={"PATH": path}
        )
        assert done.returncode == 0, done.stderr
        tasks = plan.layout.ntasks * (2 if "array" in given else 1)
        self.all[name] = Job(once, done.stdout.strip(), folder, tasks)

    def do(self, seconds: float = 60) -> None:
        """Once every job is ready, which takes `seconds` at most."""
        for job in self.all.values():
            if job.once:
                until(job.is_ready, job, seconds)
        # One newcomer makes all that can be preempted give way.
        for text in {
            job.once.replace("JOB", job.job_id).replace("FOLDER", str(job.folder))
            for job in self.all.values()
        }:
            self.shell(text)

    def wait(self) -> None:
        for job in self.all.values():
            until(partial(self.has_ended, job), job, 200)

    def has_ended(self, job: Job) -> bool:
        shown = self.sandbox.run(["scontrol", "show", "job", job.job_id]).stdout
        job.records = [dict(re.findall(r"(\w+)=(\S*)", text)) for text in shown.split("\n\n")][:-1]
        return all(record["JobState"] in ENDED for record in job.records)

    def shell(self, text: str) -> None:
        done = self.sandbox.run(["bash", "-ec", text])
        assert done.returncode == 0, f"{text}: {done.stderr}"


def until(met: Callable[[], bool], job: Job, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, f"{job}\n{job.log}"
        time.sleep(0.2)
