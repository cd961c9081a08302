"""`from slurmgen import Job, render, submit, lint`: what the command line does, from Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slurmgen import Job, render

ROOT = Path(__file__).resolve().parents[2]
GOOD = "nodes: 2\ngpus_per_node: 4\ntime: 1h\ncommand: python train.py\n"

PROGRAM = """
from pathlib import Path

from slurmgen import Job, __version__, lint, render, submit
from slurmgen.diagnostics import Diagnostic
from slurmgen.errors import InvalidInput
from slurmgen.script.plan import JobPlan


def ranks(path: Path) -> int:
    job = Job.load(path, cluster="generic", set={"nodes": 3, "env.SEED": 1})
    plan: JobPlan = job.plan
    text: str = render(job) + render("job.yaml", cluster=Path("clusters/here.yaml"))
    found: list[Diagnostic] = lint(text) + lint(path) + lint(job)
    return plan.world_size + len(found)


def start() -> str:
    try:
        return submit(Job(nodes=2, gpus_per_node="a100:4", command=["python", "train.py"]))
    except InvalidInput as error:
        return error.diagnostics[0].location.path + __version__
"""


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "job.yaml").write_text(GOOD)
    return tmp_path / "job.yaml"


def test_a_job_file(job_file: Path) -> None:
    job = Job.load(job_file)
    assert (job.plan.world_size, str(job.spec.time), job.cluster) == (8, "01:00:00", "generic")
    command = [sys.executable, "-m", "slurmgen", "render", "job.yaml"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    printed = subprocess.run(command, cwd=job_file.parent, env=env, capture_output=True, text=True)
    assert render(job) == render(job_file) == render(str(job_file)) == printed.stdout
    assert repr(job) == "<Job job on generic>"


def test_the_types_hold_for_a_program_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {**os.environ, "MYPYPATH": str(ROOT)}

    def mypy() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "program.py"]
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
        )

    done = mypy()
    assert done.returncode == 0, done.stdout
    (tmp_path / "program.py").write_text(PROGRAM.replace("return submit(", "return 1 + submit("))
    assert "Unsupported operand types" in mypy().stdout
    for right, wrong in (("nodes=2", "nods=2"), ("nodes=2", "nodes=[2]")):
        (tmp_path / "program.py").write_text(PROGRAM.replace(right, wrong))
        assert wrong.partition("=")[0] in mypy().stdout
