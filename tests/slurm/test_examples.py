"""Every job of configs/jobs on a real Slurm, submitted as a person would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.sandbox import Sandbox, Shape
from tests.slurm.conftest import ROOT

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
