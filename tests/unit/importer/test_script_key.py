"""`script`: a job file that keeps a batch script as it is, and asks for what its keys say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from slurmgen.cli.commands import plan as plan_verb
from slurmgen.cli.commands import run as run_verb
from slurmgen.cluster.profile import Gpus, Profile
from slurmgen.errors import InvalidInput, UsageError
from slurmgen.jobfile.job import JobSpec
from slurmgen.script.agreement import check_script
from slurmgen.script.plan import resolve
from slurmgen.script.render import render

if TYPE_CHECKING:
    from pathlib import Path

GENERIC = Profile(name="generic")


def lines(profile: Profile = GENERIC, **job: Any) -> list[str]:
    """The script without slurmgen's header."""
    text = render(resolve(JobSpec(**job), profile))
    shebang, _, _, *rest = text.split("\n")
    return [shebang, *rest]


def test_the_keys_that_are_given_and_no_other() -> None:
    assert lines(script="echo a\n") == ["#!/bin/bash", "", "echo a", ""]
    assert lines(script="#!/bin/zsh -f\necho a", nodes=1, ntasks=8, requeue=False) == [
        "#!/bin/zsh -f",
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks=8",
        "#SBATCH --no-requeue",
        "",
        "echo a",
        "",
    ]


@pytest.mark.parametrize(
    ("job", "directives"),
    [
        ({"gpus_per_node": "a100:4"}, ["--gres=gpu:a100:4"]),
        ({"gpus_per_node": 4, "gres": "nvme:1"}, ["--gres=gpu:4,nvme:1"]),
        ({"gpus_per_node": 4, "gpu_form": "gpus-per-node", "gres": "nvme"},
         ["--gpus-per-node=4", "--gres=nvme"]),
        ({"cpus_per_gpu": 4, "mem_per_gpu": "4G"}, ["--cpus-per-gpu=4", "--mem-per-gpu=4G"]),
        ({"exclusive": True}, ["--exclusive"]),
        ({"cpus_per_task": "default", "ntasks": 2}, ["--ntasks=2"]),
        ({"exclusive": "user"}, ["--exclusive=user"]),
        ({"nodes": 3, "ntasks_per_node": 2, "output": "%a"},
         ["--nodes=3", "--ntasks-per-node=2", "--output=%a"]),
        ({"sbatch": {"contiguous": "true", "hint": "nomultithread"}},
         ["--contiguous", "--hint=nomultithread"]),
    ],
)  # fmt: skip
def test_directives(job: dict[str, Any], directives: list[str]) -> None:
    found = [line for line in lines(script="true\n", **job) if line.startswith("#SBATCH")]
    assert found == [f"#SBATCH {directive}" for directive in directives]


def test_gpu_form_comes_before_the_profile() -> None:
    profile = Profile(name="site", gpus=Gpus(form="gpus-per-node"))
    for job in ({"script": "true\n"}, {"command": "true"}):
        by_site = lines(profile, gpus_per_node=2, **job)
        assert "#SBATCH --gpus-per-node=2" in by_site
        by_job = lines(profile, gpus_per_node=2, gpu_form="gres", **job)
        assert "#SBATCH --gres=gpu:2" in by_job


def test_ntasks_is_rendered_where_it_is_given() -> None:
    assert "#SBATCH --ntasks=2" in lines(command="true", ntasks=2)
    assert not any("--ntasks=2" in line for line in lines(command="true", ntasks_per_node=2)[:9])


@pytest.mark.parametrize(
    "job",
    [
        {"command": "true"}, {"ddp": "train.py"}, {"launcher": "srun"}, {"env": {"A": "1"}},
        {"setup": {"modules": ["a"]}}, {"nproc_per_node": 2}, {"rdzv": "static"},
    ],
)  # fmt: skip
def test_nothing_is_rendered_into_a_script(job: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="and script are both given"):
        JobSpec(script="true\n", **job)


@pytest.mark.parametrize("script", ["", " \n", "a\r\nb\n", "a\0b", "\ud800"])
def test_no_script(script: str) -> None:
    with pytest.raises(ValidationError):
        JobSpec(script=script)


def test_a_template_may_not_lose_the_script() -> None:
    plan = resolve(JobSpec(script="#SBATCH --gpus=8\n#SBATCH -N 3\nrun\n", nodes=2), GENERIC)
    text = render(plan)
    check_script(text, plan)
    with pytest.raises(InvalidInput):
        check_script(text.replace("run", "walk"), plan)
    with pytest.raises(InvalidInput):
        check_script(text.replace("#!/bin/bash", "#!/bin/bash\n#SBATCH --ntasks=4"), plan)


def test_what_needs_ranks_says_so(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("script: |\n  echo a\n")
    for verb in (plan_verb.run, run_verb.run):
        with pytest.raises(UsageError, match="a script of its own"):
            verb(str(path))
