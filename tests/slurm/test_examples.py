"""Every job of configs/jobs on a real Slurm, submitted as a person would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.sandbox import Sandbox, Shape
from tests.slurm.conftest import ROOT
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slurm, pytest.mark.torch]

JOBS = sorted((ROOT / "configs" / "jobs").glob("*.yaml"))
# How often a line of the log says that a rank met the others, or that a program has trained.
MET = re.compile(r"^rank \d+ of \d+ on \S+ local \d+ sum \d+$", re.MULTILINE)
TRAINED = re.compile(r"^checkpoint \S+$", re.MULTILINE)
EXPECTED = {
    "quickstart": (TRAINED, 1),
    "spawn": (TRAINED, 1),
    "single-gpu": (TRAINED, 1),
    "data-parallel": (TRAINED, 1),
    "resume": (TRAINED, 1),
    "sweep": (TRAINED, 4),
    "torchrun": (MET, 8),
    "torchrun-c10d": (MET, 8),
    "env-script": (MET, 8),
    "cpu-ranks": (MET, 5),
}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    directory = tmp_path_factory.mktemp("sandbox")
    with Sandbox.up(name="examples", shape=Shape(), directory=directory) as sandbox:
        yield sandbox


@pytest.mark.matrix
@pytest.mark.parametrize("job", JOBS, ids=lambda path: path.stem)
def test_an_example_trains(sandbox: Sandbox, job: Path, tmp_path: Path) -> None:
    """In a folder of its own, where only the examples are as in the checkout."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {**sandbox.environment(), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "slurmgen", "submit", "--wait", str(job)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    log = "\n".join(path.read_text() for path in sorted((tmp_path / "logs").iterdir()))
    assert done.returncode == 0, done.stderr + log
    pattern, times = EXPECTED[job.stem]
    assert len(pattern.findall(log)) == times, log
    if job.stem == "quickstart":
        losses = [float(loss) for loss in re.findall(r"^epoch .* loss (\S+)", log, re.MULTILINE)]
        assert losses == sorted(losses, reverse=True)
        assert re.search(r"accuracy 0\.9", log), log


def test_a_training_that_is_told_to_save_goes_on_where_it_was(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """The losses of an interrupted job and of another one that was left alone."""
    losses = []
    for told in (False, True):
        folder = tmp_path / str(told)
        folder.mkdir()
        (folder / "examples").symlink_to(ROOT / "examples")
        log = _train(sandbox, folder, told=told)
        assert ("exit status 75" in log) is told, log
        losses.append(re.findall(r"^epoch (\S+) loss (\S+) accuracy (\S+)", log, re.MULTILINE))
    assert len(losses[0]) == 3
    assert losses[0] == losses[1]


def _train(sandbox: Sandbox, folder: Path, *, told: bool) -> str:
    environment = {**sandbox.environment(), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    job = ROOT / "configs" / "jobs" / "resume.yaml"
    sizes = ["--set", "nodes=1", "--set", "gpus_per_node=2"]
    done = subprocess.run(
        [sys.executable, "-m", "slurmgen", "submit", *sizes, str(job)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    number = done.stdout.strip()
    log = folder / "logs" / f"resume-{number}.out"
    end = time.monotonic() + PATIENCE_S
    # A job that goes back into the queue has ended for a moment: the last run has to have begun.
    # Nobody hurries it (StartTime=now): 24.11 may refuse to launch it as "Job credential revoked".
    runs = 1 + told
    while time.monotonic() < end:
        text = log.read_text() if log.exists() else ""
        state = sandbox.run(["scontrol", "-o", "show", "job", number]).stdout
        ended = "JobState=COMPLETED" in state or "JobState=FAILED" in state
        if ended and text.count("rank(s) on") == runs:
            return log.read_text()
        if told and "epoch 1/3" in text:
            told = False
            sandbox.run(["scancel", "--signal=USR1", number])
        time.sleep(0.3)
    raise AssertionError(state + text)
