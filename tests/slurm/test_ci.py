"""The workflow that docs/ci.md shows, step by step in a new repository."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.docs import pages
from tests.slurm.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slurm

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
# What needs an Ubuntu of its own.
INSTALLS = ("sudo ", "pip install ")
WRONG = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=1:00:00
python train.py
"""


def steps() -> list[str]:
    (workflow,) = [b for b in pages.blocks(PAGE) if b.name == ".github/workflows/slurm.yml"]
    (job,) = yaml.safe_load(workflow.text)["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step]


def run(step: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """As the runner does, which writes the step into a file for `bash -e`."""
    path = os.pathsep.join([str(folder.parent / "bin"), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-e", "-c", step],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """What `slurmgen init` makes, in git."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "slurmgen"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m slurmgen "$@"\n')
    program.chmod(0o755)
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "train.py").write_text("import torch.distributed\n")
    for step in ("git init --quiet", "slurmgen init --yes", "git add --all"):
        assert run(step, folder).returncode == 0
    return folder


def test_a_new_project_passes(repository: Path) -> None:
    tried = [step for step in steps() if not step.startswith(INSTALLS)]
    assert len(tried) == 3
    for step in tried:
        done = run(step, repository)
        assert done.returncode == 0, step + done.stdout + done.stderr
    assert "nothing is wrong" in done.stdout
    assert run("git diff --exit-code", repository).returncode == 0


def test_a_wrong_script_fails(repository: Path) -> None:
    (repository / "wrong.sbatch").write_text(WRONG)
    run("git add wrong.sbatch", repository)
    done = run(steps()[-1], repository)
    assert done.returncode != 0
    assert "nothing runs on n2" in done.stdout
    # The other one all the same.
    assert "nothing is wrong" in done.stdout


def test_the_packages_are_those_that_a_sandbox_takes() -> None:
    (install,) = [step for step in steps() if "apt-get install" in step]
    assert {"slurmctld", "slurmd", "slurm-client", "munge"} <= set(install.split())
