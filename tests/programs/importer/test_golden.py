"""Scripts of many styles: the job file of each, the notes on it, and the script it becomes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from slurmgen.script.pipeline import plan_job, render_job

HERE = Path(__file__).resolve().parents[2] / "golden" / "imports"
CASES = sorted(path.parent for path in HERE.glob("*/job.sbatch"))
assert len(CASES) > 24


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bash_reads_what_bash_could_read(case: Path) -> None:
    if (case / "job.sbatch").read_bytes().startswith((b"#!/bin/tcsh", b"#!/usr/bin/env python")):
        return
    rendered = render_job(plan_job(str(case / "job.yaml"))).encode()
    for script in ((case / "job.sbatch").read_bytes(), rendered):
        done = subprocess.run(["bash", "-n"], input=script, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
