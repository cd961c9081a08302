"""What the pages on people's questions say of a launch, on a real Slurm.

whoami.py stands in place of each program and prints what its process was told; the logs that the
pages show are what it printed, in the order of the tasks. `make docs` writes them again.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.sandbox import Sandbox, Shape
from tests.slurm.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slurm

QUESTIONS = ROOT / "docs" / "examples" / "questions"
WHOAMI = QUESTIONS / "index" / "whoami.py"
SCRIPTS = sorted([*QUESTIONS.glob("*/*.sbatch"), *QUESTIONS.glob("*/job.yaml")])
# All five have the same program.
TRAINED = ("only-one-gpu", "other-nodes")


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    directory = tmp_path_factory.mktemp("sandbox")
    with Sandbox.up(name="docs", shape=Shape(), directory=directory) as sandbox:
        yield sandbox


# A thread of torch's that wants the interpreter back while Python ends: seldom, and not ours.
ABORTED = "terminate called without an active exception"


def submit(sandbox: Sandbox, script: Path, folder: Path) -> str:
    """The log of a job that has ended well, or that torch alone kept from it once all was done."""
    environment = {**sandbox.environment(), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    program = (
        [sys.executable, "-m", "slurmgen", "submit"] if script.suffix == ".yaml" else ["sbatch"]
    )
    done = subprocess.run(
        [*program, "--wait", script.name],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    log = folder / f"{script.stem}.log"
    said = log.read_text(encoding="utf-8") if log.exists() else ""
    assert done.returncode == 0 or ABORTED in said, done.stdout + done.stderr + said
    return said


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_what_each_task_is_told(
    sandbox: Sandbox, script: Path, tmp_path: Path, golden: Callable[[Path, str], None]
) -> None:
    folder = tmp_path / "job"
    shutil.copytree(script.parent, folder)
    for program in folder.glob("*.py"):
        shutil.copy(WHOAMI, program)
    log = submit(sandbox, script, folder)
    # Tasks print when they like, and those of two nodes in no order.
    golden(script.with_suffix(".log"), "".join(sorted(log.splitlines(keepends=True))))


@pytest.mark.torch
@pytest.mark.parametrize("page", TRAINED)
def test_the_right_job_trains(sandbox: Sandbox, page: str, tmp_path: Path) -> None:
    job = QUESTIONS / page / "job.yaml"
    folder = tmp_path / "job"
    shutil.copytree(job.parent, folder)
    log = submit(sandbox, job, folder)
    ranks = len((job.parent / "job.log").read_text(encoding="utf-8").splitlines())
    assert re.findall(r"^(\d+) ranks trained: loss \S+$", log, re.MULTILINE) == [str(ranks)], log
    assert (folder / "model.pt").is_file()


def test_the_right_programs_are_the_same() -> None:
    assert len({path.read_text(encoding="utf-8") for path in QUESTIONS.glob("*/right.py")}) == 1
