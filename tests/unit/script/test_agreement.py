"""A project's template may add to the script, and must not change what the plan decided."""

from __future__ import annotations

import pytest

from slurmgen.cluster.generic import PROFILE
from slurmgen.errors import InvalidInput
from slurmgen.jobfile.job import JobSpec
from slurmgen.script.agreement import check_script
from slurmgen.script.plan import resolve
from slurmgen.script.render import render

PLAN = resolve(JobSpec(nodes=2, gpus_per_node="a100:4", command="true"), PROFILE)
SCRIPT = render(PLAN)


def with_line(line: str) -> str:
    return SCRIPT.replace("#SBATCH --cpus", f"{line}\n#SBATCH --cpus")


@pytest.mark.parametrize(
    "line", ["#SBATCH --hint=nomultithread", "##SBATCH --nodes=3", "# SBATCH -N 3"]
)
def test_what_a_template_may_add(line: str) -> None:
    check_script(with_line(line), PLAN)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("#SBATCH -Jother", "says other, not --job-name=job"),
        ("#SBATCH --nodes=4", "says 4, not --nodes=2"),
        ("#SBATCH -N 4", "not --nodes=2"),
        ("#SBATCH -N4", "says 4, not --nodes=2"),
        ("#SBATCH --ntasks-per-no=2", "says 2, not --ntasks-per-node=4"),
        ("#SBATCH -n 3", "adds --ntasks"),
        ("#SBATCH --gpus-per-task=1", "adds --gpus-per-task"),
        ("#SBATCH --mem=1G # little", "adds --mem"),
        ('#SBATCH --comment="open', "a quote is not closed"),
    ],
)
def test_what_would_change_the_plan(line: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_script(with_line(line), PLAN)
    assert said in caught.value.diagnostics[0].message


def test_a_script_that_starts_nothing() -> None:
    with pytest.raises(InvalidInput) as caught:
        check_script(SCRIPT.replace("\nsrun ", "\n# srun "), PLAN)
    assert caught.value.diagnostics[0].message == "the rendered script has no srun line"


def test_a_script_that_does_not_come_back() -> None:
    plan = resolve(JobSpec(command="true", requeue={}), PROFILE)
    check_script(render(plan), plan)
    with pytest.raises(InvalidInput) as caught:
        check_script(render(plan).replace("scontrol requeue", "true"), plan)
    assert caught.value.diagnostics[0].message == "the rendered script requeues nothing"
