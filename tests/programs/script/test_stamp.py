"""The stamp of a rendered script: what it says, and what is made of it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.script.pipeline import plan_job, render_job

if TYPE_CHECKING:
    from pathlib import Path

KEPT = """\
nodes: 2
gpus_per_node: 4
launcher: torchrun
env:
  TOKEN: s3cret
  DATA: ${SCRATCH}/it's # here
command: |
  python prepare.py
  python train.py
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(KEPT)
    return path


def rendered(job: Path, **options: Any) -> str:
    return render_job(plan_job(str(job), **options))


def test_bash_passes_over_it(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text('launcher: plain\ncommand: x\ncomment: "`id` $(id) \\\\ \'\\""\n')
    script = rendered(path)
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=60)
