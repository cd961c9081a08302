"""A job on a site's profile asks for what the site's own example asks for.

`sites/examples.yaml` has the examples, the jobs and, where the two differ, why.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurmgen.cluster.load import load_profile
from slurmgen.errors import Refusal, Refusals
from slurmgen.jobfile.load import load_job
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from slurmgen.slurm import directives
from slurmgen.slurm.grammars.memory import parse_memory
from slurmgen.slurm.grammars.time import parse_time

HERE = Path(__file__).parent
EXAMPLES: dict[str, dict[str, Any]] = yaml.safe_load(
    (HERE / "sites" / "examples.yaml").read_text(encoding="utf-8")
)
RENDERED = [name for name, example in EXAMPLES.items() if "refused" not in example]
REFUSED = [name for name in EXAMPLES if name not in RENDERED]


def script_of(name: str) -> str:
    """What is rendered for the job beside the example; raises Refusals."""
    profile = load_profile(name, HERE / "sites")
    job = {"command": ["python", "train.py"], **EXAMPLES[name]["job"]}
    loaded = load_job(yaml.safe_dump(job), "train.yaml", defaults=profile.defaults)
    return render(resolve(loaded.spec, profile, source="train.yaml"))


def options_of(text: str) -> dict[str, Any]:
    """Options by their long names, each value as Slurm understands it."""
    return {d.option: _understood(d.option, d.value) for d in directives.read(text).directives}


def _understood(option: str, value: str | None) -> Any:
    try:
        if option == "time" and value is not None:
            return parse_time(value)
        if option.startswith("mem") and value is not None:
            return parse_memory(value)
    except Refusal:
        pass
    return value.lower() if option == "mail-type" and value else value


def asked_by(example: dict[str, Any]) -> dict[str, Any]:
    lines = [f"#SBATCH {word}" for word in example["asks"].split()]
    return options_of("\n".join(["#!/bin/bash", *lines, ""]))


def srun_words(text: str) -> dict[str, str]:
    start = text.index("\nsrun ") + 1
    words = shlex.split(text[start:].replace("\\\n", " ").partition(" bash -c ")[0])[1:]
    return {word.partition("=")[0]: word for word in words}


def launch_of(text: str) -> list[str]:
    """What starts what, as the words stand in the script's launch block."""
    words = {
        "srun": r"^srun ",
        "singularity": r"exec singularity ",
        "apptainer": r"exec apptainer ",
        "torchrun": r" -m torch\.distributed\.run ",
    }
    return [word for word, how in words.items() if re.search(how, text, re.MULTILINE)]


@pytest.mark.parametrize("name", RENDERED)
def test_the_directives(name: str) -> None:
    example = EXAMPLES[name]
    theirs, ours = asked_by(example), options_of(script_of(name))
    reasons = {key for key in example.get("differs", {}) if not key.startswith(("srun ", "launch"))}
    different = {o for o in theirs.keys() | ours.keys() if theirs.get(o, 0) != ours.get(o, 0)}
    # A reason for what does not differ would hide a later fault.
    assert different == reasons, (theirs, ours)


@pytest.mark.parametrize("name", [name for name in RENDERED if "srun" in EXAMPLES[name]])
def test_the_words_of_srun(name: str) -> None:
    example = EXAMPLES[name]
    ours = srun_words(script_of(name))
    reasons = {k.removeprefix("srun ") for k in example.get("differs", {}) if k.startswith("srun ")}
    theirs = {word.partition("=")[0]: word for word in example["srun"].split()}
    assert {name for name, word in theirs.items() if ours.get(name) != word} == reasons


@pytest.mark.parametrize("name", [name for name in RENDERED if "launch" in EXAMPLES[name]])
def test_what_starts_the_program(name: str) -> None:
    example = EXAMPLES[name]
    is_different = launch_of(script_of(name)) != example["launch"].split()
    assert is_different == ("launch" in example.get("differs", {})), launch_of(script_of(name))


@pytest.mark.parametrize("name", [name for name in RENDERED if "exports" in EXAMPLES[name]])
def test_the_variables(name: str) -> None:
    text = script_of(name)
    missing = [v for v in EXAMPLES[name]["exports"].split() if f"\nexport {v}=" not in text]
    assert missing == []


@pytest.mark.parametrize("name", REFUSED)
def test_an_example_that_breaks_the_site_s_limits(name: str) -> None:
    with pytest.raises(Refusals) as caught:
        script_of(name)
    (problem,) = caught.value.problems
    assert problem.what == EXAMPLES[name]["refused"]
