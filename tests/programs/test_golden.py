"""The expected scripts are Bash, and shellcheck finds nothing in them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from slurmgen.script.pipeline import plan_job, render_job
from tests.golden.test_golden import JOBS, MORE, SITES, by_name
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path


def check(script: str) -> None:
    text = script.encode()
    done = subprocess.run(["shellcheck", "-"], input=text, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout.decode()
    subprocess.run(["bash", "-n"], input=text, check=True, timeout=PATIENCE_S)


@pytest.mark.parametrize("job", [*JOBS, *MORE], ids=by_name)
def test_the_script_of_a_job(job: Path) -> None:
    check(render_job(plan_job(str(job))))


@pytest.mark.parametrize("job", SITES, ids=by_name)
def test_the_script_on_a_cluster(job: Path) -> None:
    check(render_job(plan_job(str(job), cluster=job.stem)))
