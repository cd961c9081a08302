"""A variable of a job file arrives byte for byte, or is refused; none of them is code.

What Bash does with a name is asked of the Bash at hand, whatever its version.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmgen.cluster import generic
from slurmgen.jobfile import bash_variables, reserved, script_names
from slurmgen.jobfile.job import JobSpec
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from tests import asking_bash
from tests.examples import examples
from tests.waiting import PATIENCE_S

# Names of the user's to give, whatever Bash makes of them: it finds programs by PATH.
GIVEN_ON_PURPOSE = {"PATH"}
# The Slurm of a script that runs here, in a folder of its own.
STAND_INS = {
    "srun": '#!/bin/bash\nwhile [[ $1 == --* ]]; do shift; done\nexec "$@"\n',
    "scontrol": "#!/bin/sh\necho localhost\n",
    "torchrun": '#!/bin/bash\nwhile [[ $1 == --* ]]; do shift; done\nexec "$@"\n',
}
SLURM = {
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "0",
    "SLURM_NODEID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_GTIDS": "0",
    "SLURM_STEP_NUM_TASKS": "1",
    "SLURM_JOB_NODELIST": "n1",
}
LAUNCHES: tuple[dict[str, Any], ...] = (
    {"command": ["env", "-0"]},
    {"command": "env -0"},
    {"command": ["env", "-0"], "launcher": "plain", "export": "NIL"},
    {"command": ["env", "-0"], "launcher": "spawn"},
)
MARKER = "@marker@"
# What arithmetic, prompts, patterns and start-up files would run.
VALUES = st.sampled_from(
    [
        f"a[$(touch {MARKER})]",
        f"$(touch {MARKER})",
        f"`touch {MARKER}`",
        f"x[$(touch {MARKER})]=1",
        f"() {{ :; }}; touch {MARKER}",
        f"touch {MARKER}",
        "7",
        "",
        " x  y ",
        "/dev/stdin",
    ]
) | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@cache
def names() -> list[str]:
    """Bash's own, the script's, and what could be either."""
    table = {
        name
        for group in vars(bash_variables).values()
        if isinstance(group, frozenset)
        for name in group
    }
    return sorted(asking_bash.names("bash") | table | script_names.NAMES)


NAMES = st.deferred(lambda: st.sampled_from(names())) | st.from_regex(
    r"\A[A-Za-z_][A-Za-z0-9_]{0,8}\Z", fullmatch=True
)


def ran(job: dict[str, Any], folder: Path) -> bytes:
    """What the script of a job printed, run as a batch script is."""
    for name, text in STAND_INS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    script = folder / "script"
    script.write_text(render(resolve(JobSpec(**job), generic.PROFILE)))
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), **SLURM}
    done = subprocess.run(
        ["bash", "script"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@settings(max_examples=examples(50))
@given(st.dictionaries(NAMES, VALUES, max_size=30), st.sampled_from(LAUNCHES))
def test_every_variable_that_is_accepted_arrives(
    variables: dict[str, str], launch: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        marker = folder / "marker"
        accepted = {
            name: value.replace(MARKER, str(marker))
            for name, value in variables.items()
            if reserved.refused_variable(name) is None and name not in GIVEN_ON_PURPOSE
        }
        escaped = {name: value.replace("${", "$${") for name, value in accepted.items()}
        seen = ran({**launch, "env": escaped}, folder).split(b"\0")
        assert not marker.exists()
        for name, value in accepted.items():
            assert f"{name}={value}".encode() in seen


@pytest.mark.parametrize("name", ["OPTIND", "RANDOM", "SRANDOM", "HISTCMD"])
def test_an_integer_of_bash_s_would_be_code(name: str) -> None:
    """Why these are refused: a value that is given to them runs."""
    if name not in asking_bash.variables("bash"):
        pytest.skip(f"this Bash has no {name}")
    assert asking_bash.ask("bash", name, ways=("a[$(touch @)]",)).runs


def test_what_bash_makes_its_own_is_refused() -> None:
    """Every word of the Bash at hand: one that it doesn't pass on must be in the table."""
    quick = {name: asking_bash.ask("bash", name, ("a[$(touch @)]",), ()) for name in names()}
    taken = {name for name, found in quick.items() if not found.is_harmless}
    assert taken >= {"OPTIND", "BASH_ENV", "SHLVL", "LINENO", "SECONDS", "_", "UID"}
    refused = {name for name in names() if reserved.refused_variable(name) is not None}
    assert taken - refused - GIVEN_ON_PURPOSE == set()


def test_what_changes_bash_s_ways_is_refused() -> None:
    mine = asking_bash.variables("bash") | set(_names_that_bash_reads())
    free = {name for name in mine if reserved.refused_variable(name) is None} - GIVEN_ON_PURPOSE
    assert {"HOSTNAME", "TERM", "COLUMNS", "LC_ALL"} <= free
    ways = ("$(touch @)", ".", "*", "1", "-name")
    assert {n for n in free if not asking_bash.ask("bash", n, (), ways).is_harmless} == set()


def _names_that_bash_reads() -> list[str]:
    """Variables that Bash has no value for, and goes by if they are there."""
    known = re.compile(r"BASH_|COMP|HIST|LC_|MAIL|PROMPT|READLINE|TEXT|EXEC|FUNC|GLOB|TM|CD|POSIX")
    return [n for n in names() if known.match(n)] + ["COLUMNS", "LINES", "INPUTRC", "TIMEFORMAT"]
