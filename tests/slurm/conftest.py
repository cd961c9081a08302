"""A sandbox for the tests of one file, and jobs that are rendered, submitted and read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from slurmgen.cli.commands import check
from slurmgen.cluster.profile import Profile
from slurmgen.errors import UnavailableError
from slurmgen.jobfile.job import JobSpec
from slurmgen.sandbox import Sandbox, Shape, accounting
from slurmgen.script.plan import JobPlan, resolve
from slurmgen.script.render import render
from slurmgen.slurm.live import sbatch
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[2]
PROBE = Path(__file__).with_name("probe.py")
GENERIC = Profile(name="generic")


@dataclass(frozen=True)
class Ran:
    """A job that has ended: its script, exit status, log, and what each probe saw."""

    plan: JobPlan
    script: str
    status: int
    log: str
    seen: list[dict[str, Any]]


class Cluster:
    """Renders jobs and runs them on a sandbox; each in a folder of its own."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.folder = folder
        self.count = 0

    def start(
        self,
        job: dict[str, Any],
        *,
        script: str | None = None,
        inside: Sequence[str] = (),
        profile: Profile = GENERIC,
    ) -> tuple[JobPlan, str, Path, str]:
        """Submit; the last of what it returns is the job's id.

        The probe writes into the job's own folder, the third.

        inside: a command that runs sbatch, such as salloc.
        """
        self.count += 1
        folder = self.folder / f"job{self.count}"
        folder.mkdir()
        given = {"time": "10m", "output": f"{folder}/log", **job}
        env = {**given.get("env", {}), "PROBE_FOLDER": str(folder)}
        plan = resolve(JobSpec(**{**given, "env": env}), profile)
        text = render(plan) if script is None else script.replace("PROBE_FOLDER_HERE", str(folder))
        path = folder / "job.sbatch"
        path.write_text(text, encoding="utf-8")
        environment = self.sandbox.environment()
        bin_ = str(Path(sys.executable).parent)
        environment["PATH"] = os.pathsep.join([bin_, environment["PATH"]])
        environment["PYTHONPATH"] = str(ROOT)
        environment["PYTHONWARNINGS"] = "ignore"
        done = subprocess.run(
            [*inside, "sbatch", "--parsable", str(path)],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return plan, text, folder, done.stdout.strip()

    def finish(self, started: tuple[JobPlan, str, Path, str]) -> Ran:
        """Until the job has ended; sbatch --wait would look after 2, 10, 42 and 74 seconds."""
        plan, text, folder, job_id = started
        end = time.monotonic() + PATIENCE_S
        while True:
            states = sbatch.job_states(sbatch.Submitted(job_id, None), self.sandbox.environment())
            assert states
            if all(state.state in sbatch.ENDED for state in states):
                break
            assert time.monotonic() < end, states
            time.sleep(0.2)
        log = folder / "log"
        seen = [json.loads(path.read_bytes()) for path in sorted(folder.glob("seen-*"))]
        shown = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return Ran(plan, text, sbatch.exit_status(states), shown, seen)

    def run(
        self,
        job: dict[str, Any],
        *,
        script: str | None = None,
        inside: Sequence[str] = (),
        profile: Profile = GENERIC,
    ) -> Ran:
        return self.finish(self.start(job, script=script, inside=inside, profile=profile))


def missing_for_accounting(slurm: str = "") -> str:
    """What brings what a sandbox with accounts takes; "" where it is there.

    slurm: the version that is unpacked, where it isn't what this machine has.
    """
    try:
        accounting.find_programs(slurm)
    except UnavailableError as error:
        return str(error.fix)
    return ""


def skip_without_accounting(slurm: str = "") -> None:
    missing = missing_for_accounting(slurm)
    if missing:
        pytest.skip(f"needs a database: {missing}")


def answer(sandbox: Sandbox, script: str, *options: str, how: str = "--test-only") -> str:
    """ "" where Slurm takes the job, else what it says."""
    done = sandbox.run(["sbatch", how, *options], given=script)
    return done.stderr if done.returncode else ""


def run_check(
    folder: Path, job: dict[str, Any], cluster: str | None, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """The status and the report of `slurmgen check` about this job."""
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job))
    status = check.run(str(path), cluster=cluster)
    return status, capsys.readouterr().out


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes with four pretend GPUs each."""
    folder = tmp_path_factory.mktemp("cluster")
    with Sandbox.up(name="tests", shape=Shape(), directory=folder / "sandbox") as sandbox:
        yield Cluster(sandbox, folder)
