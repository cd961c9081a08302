"""The script of every example job, and of one job on every cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.cli.report import format_text
from slurmgen.errors import InvalidInput
from slurmgen.script.pipeline import plan_job, render_job
from tests.golden.scripts import WHOLE, expected

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
JOBS = sorted((ROOT / "configs" / "jobs").glob("*.yaml"))
SITES = sorted((HERE / "clusters").glob("*.yaml"))
MORE = sorted((HERE / "jobs").glob("*.yaml"))
WRONG = sorted((HERE / "wrong").glob("*.yaml"))


def by_name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("job", [*JOBS, *MORE], ids=by_name)
def test_the_script_of_a_job(job: Path, golden: Callable[[Path, str], None]) -> None:
    text = render_job(plan_job(str(job)))
    golden(HERE / "expected" / f"{job.stem}.sbatch", expected(text, whole=job.stem in WHOLE))


@pytest.mark.parametrize("job", SITES, ids=by_name)
def test_the_script_on_a_cluster(job: Path, golden: Callable[[Path, str], None]) -> None:
    """A job file named after the built-in profile it is rendered for."""
    text = render_job(plan_job(str(job), cluster=job.stem))
    golden(HERE / "expected" / f"cluster-{job.stem}.sbatch", expected(text, whole=False))


@pytest.mark.parametrize("job", WRONG, ids=by_name)
def test_what_is_said_of_a_wrong_job(job: Path, golden: Callable[[Path, str], None]) -> None:
    with pytest.raises(InvalidInput) as caught:
        render_job(plan_job(str(job)))
    name = job.name
    diagnostics = [
        d._replace(location=d.location._replace(path=name)) for d in caught.value.diagnostics
    ]
    text = job.read_text(encoding="utf-8")
    golden(HERE / "wrong" / f"{job.stem}.txt", format_text(diagnostics, {name: text}) + "\n")


def test_the_same_job_gives_the_same_bytes() -> None:
    first, second = (render_job(plan_job(str(JOBS[0]))) for _ in range(2))
    assert first == second
