"""Whatever a job says, its script keeps its plan."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmgen.cluster import generic
from slurmgen.jobfile.job import JobSpec
from slurmgen.script.agreement import check_script
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from tests.examples import examples

# What Bash, sbatch and shellcheck have opinions about comes up often.
LIVE = st.sampled_from([*"'\"\\$`#!*?[]{}()<>|&;~=%- \t\n\r", "${X}", "$(id)", "é", "\u2028"])
WORDS = st.lists(LIVE | st.characters(exclude_categories=["Cs"], exclude_characters="\0")).map(
    "".join
)
ONE_LINE = WORDS.map(lambda text: "".join(c for c in text if ord(c) >= 32 and ord(c) != 127))
PATHS = ONE_LINE.map(lambda text: "/" + text.replace("${", "$${"))
VALUES = WORDS.map(lambda text: text.replace("${", "$${"))
SHAPES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"nodes": 2, "gpus_per_node": "a100:4"},
        {"nodes": 2, "ntasks": 3},
        {"gpus_per_node": 2, "launcher": "torchrun"},
        {"gpus_per_node": 2, "launcher": "torchrun", "rdzv": "c10d"},
        {"nodes": 2, "gpus_per_node": 2, "launcher": "spawn"},
        {"launcher": "plain"},
    ]
)


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    python = draw(st.sampled_from(["venv", "conda", "uv", "container", None]))
    setup: dict[str, Any] = {"modules": {"use": [draw(PATHS)]}}
    if python == "container":
        setup[python] = {"image": draw(PATHS), "mounts": [draw(PATHS)], "workdir": draw(PATHS)}
    elif python is not None:
        setup[python] = draw(PATHS)
    return {
        **draw(SHAPES),
        "job_name": "a" + draw(ONE_LINE),
        "comment": "a" + draw(ONE_LINE),
        "setup": setup,
        "env": {"A": draw(VALUES), "B": "${HOME}" + draw(VALUES)},
        "command": ["python", draw(WORDS), draw(WORDS)],
    }


@settings(max_examples=examples(60))
@given(jobs(), ONE_LINE)
def test_any_job(job: dict[str, Any], source: str) -> None:
    plan = resolve(JobSpec(**job), generic.PROFILE, source=source or "job.yaml")
    check_script(render(plan), plan)
