"""Whatever a job says, its script is Bash and has no shellcheck finding."""

from __future__ import annotations

import subprocess
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmgen.cluster import generic
from slurmgen.jobfile.job import JobSpec
from slurmgen.script.agreement import check_script
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from tests.examples import examples
from tests.property.test_scripts import ONE_LINE, jobs


@settings(max_examples=examples(60))
@given(st.lists(jobs(), min_size=1, max_size=4), ONE_LINE)
def test_any_job(given_jobs: list[dict[str, Any]], source: str) -> None:
    scripts = []
    for job in given_jobs:
        plan = resolve(JobSpec(**job), generic.PROFILE, source=source or "job.yaml")
        scripts.append(render(plan))
        check_script(scripts[-1], plan)
    for script in scripts:
        done = subprocess.run(["bash", "-n"], input=script.encode(), capture_output=True)
        assert done.returncode == 0, done.stderr
    done = subprocess.run(
        ["shellcheck", "-"], input=scripts[0].encode(), capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stdout.decode()
