"""`# slurmgen: ignore[…]`: what it silences, and what is said of one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slurmgen.lint import engine, fixes, suppressions
from slurmgen.lint.job import load

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lint.conftest import Rules

HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n"


@pytest.fixture(autouse=True)
def zeta(rules: Rules) -> None:
    rules.word("zeta")
    rules.word("beta")


@pytest.mark.parametrize(
    "body",
    [
        "zeta  # slurmgen: ignore[no-zeta] a reason\n",
        "zeta  # slurmgen: ignore[SG101] a reason\n",
        "zeta  # slurmgen: ignore[sg101] a reason\n",
        "zeta  #slurmgen:ignore[no-zeta] a reason\n",
        "zeta # it is so  # slurmgen: ignore[no-zeta] a reason\n",
        "# slurmgen: ignore[no-zeta] a reason\nzeta\n",
        "\t # slurmgen: ignore[no-zeta] a reason\n\tzeta\n",
        "# slurmgen: ignore[no-zeta] a reason\nzeta",
        "# slurmgen: ignore[no-zeta] a reason\r\nzeta\r\n",
        "zeta beta  # slurmgen: ignore[no-zeta,no-beta] a reason\n",
        "zeta beta  # slurmgen: ignore[ SG101  no-beta ] a reason\n",
        "zeta beta  # slurmgen: ignore[no-zeta] one # slurmgen: ignore[no-beta] two\n",
        "# slurmgen: ignore[no-zeta] one\n# slurmgen: ignore[no-beta] two\nzeta beta\n",
        # Over several lines: before the first, or behind the last.
        "# slurmgen: ignore[no-zeta] a reason\nsrun \\\n  a \\\n  zeta\n",
        "srun \\\n  zeta \\\n  a  # slurmgen: ignore[no-zeta] a reason\n",
        "# slurmgen: ignore[no-zeta] a reason\nsrun bash -c '\n  zeta\n'\n",
        "srun bash -c '\n  zeta  # slurmgen: ignore[no-zeta] a reason\n'\n",
        # Where the directive's own comment begins.
        "#SBATCH --comment=zeta # slurmgen: ignore[no-zeta] a reason\n",
        "# slurmgen: ignore[no-zeta] a reason\n#SBATCH --comment=zeta\n",
        "# slurmgen: ignore-file[no-zeta] a reason\nzeta\nzeta\n",
        "# slurmgen: ignore-file[no-zeta] one\n# slurmgen: ignore-file[no-beta] two\nbeta\nzeta\n",
    ],
)
def test_it_silences(rules: Rules, body: str) -> None:
    assert rules.found(HEAD + body) == []


@pytest.mark.parametrize(
    "body",
    [
        "true  # slurmgen: ignore[no-zeta] a reason\nzeta\n",
        "# slurmgen: ignore[no-zeta] a reason\n\nzeta\n",
        "# slurmgen: ignore[no-zeta] a reason\ntrue\nzeta\n",
        "zeta\n# slurmgen: ignore[no-zeta] a reason\n",
        "zeta  # slurmgen: ignore[no-beta] a reason\n",
        "zeta  # slurmgen: ignore-file[no-zeta] a reason\n",
        "zeta  # slurmgen: ignore a reason\n",
        "zeta  # slurmgen: ignore[] a reason\n",
        "zeta  # slurmgen: noqa\n",
        "zeta  # slurmgen: ignore[no-zetta] a reason\n",
    ],
)
def test_it_does_not_silence_and_is_found(rules: Rules, body: str) -> None:
    found = [name for name, _ in rules.found(HEAD + body)]
    assert sorted(found) == ["no-zeta", "unused-suppression"]


@pytest.mark.parametrize(
    "body",
    [
        "zeta#slurmgen: ignore[no-zeta] no comment at all\n",
        "zeta  # slurmgen 0.1 wrote this\n",
        "zeta  # see slurmgen: ignore\n",
    ],
)
def test_what_is_no_such_comment(rules: Rules, body: str) -> None:
    assert rules.found(HEAD + body) == [("no-zeta", 3)]


def problems(rules: Rules, body: str) -> list[tuple[str, str]]:
    """Message and fix of what is said of comments."""
    outcome = rules.check(HEAD + body)
    return [(d.message, d.fix) for d in outcome.diagnostics if d.code == "SG020"]


def test_a_reason_is_asked_for(rules: Rules) -> None:
    assert problems(rules, "zeta  # slurmgen: ignore[no-zeta]\n") == [
        ("the suppression gives no reason", "write the reason behind the bracket")
    ]
    assert rules.found(HEAD + "zeta  # slurmgen: ignore[no-zeta]\n") == [("unused-suppression", 3)]


def test_an_unknown_rule_is_guessed(rules: Rules) -> None:
    ((message, fix),) = problems(rules, "zeta  # slurmgen: ignore[no-zeta, no-betta] so\n")
    assert message == 'there is no rule "no-betta"'
    assert fix == "write no-beta (SG102)"


def test_only_what_was_asked_can_be_unused(rules: Rules) -> None:
    job = load("job.sbatch", HEAD + "true  # slurmgen: ignore[no-zeta] so\n")
    meta, zeta, beta = rules.rules
    assert len(engine.check(job, [meta, zeta]).diagnostics) == 1
    assert engine.check(job, [meta, beta]).diagnostics == ()
    assert engine.check(job, [zeta, beta]).diagnostics == ()
    assert engine.check(job, [meta, zeta._replace(needs="a profile")]).diagnostics == ()
    assert engine.check(job, [meta, zeta._replace(version_needed=True)]).diagnostics == ()


def test_one_for_a_hidden_finding_is_used(rules: Rules) -> None:
    rules.word("alpha", hides=("no-zeta",))
    assert rules.found(HEAD + "alpha\nzeta  # slurmgen: ignore[no-zeta] so\n") == [("no-alpha", 3)]


def test_a_rule_that_broke_may_have_been_meant(rules: Rules) -> None:
    meta, zeta, _ = rules.rules

    def check(job: object) -> None:
        raise ZeroDivisionError

    job = load("job.sbatch", HEAD + "true  # slurmgen: ignore[no-zeta] so\n")
    broken = zeta._replace(check=check)  # type: ignore[arg-type]
    rules.rules[1] = broken
    assert engine.check(job, [meta, broken]).diagnostics == ()


def test_it_can_be_suppressed_itself(rules: Rules) -> None:
    body = "true  # slurmgen: ignore[no-zeta, unused-suppression] kept for the next release\n"
    assert rules.found(HEAD + body) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# slurmgen: ignore[no-zeta] so\ntrue\n", "true\n"),
        ("true  # slurmgen: ignore[no-zeta] so\n", "true\n"),
        ("true\t# slurmgen: ignore[no-zeta] so\r\nx\n", "true\r\nx\n"),
        ("true  # slurmgen: ignore[no-zeta] so", "true"),
        (
            "beta  # slurmgen: ignore[no-zeta, SG102] so\n",
            "beta  # slurmgen: ignore[SG102] so\n",
        ),
        (
            "beta # slurmgen: ignore[no-zeta] one # slurmgen: ignore[no-beta] two\n",
            "beta # slurmgen: ignore[no-beta] two\n",
        ),
        ("true # why\n# slurmgen: ignore-file[SG101] so\n", None),
        ("zeta # slurmgen: ignore[no-zeta]\n", None),
    ],
)
def test_one_that_is_unused_can_be_taken_out(rules: Rules, before: str, after: str | None) -> None:
    mended = fixes.fixed(HEAD + before, lambda text: rules.check(text).diagnostics, lambda text: 0)
    assert mended == HEAD + (before if after is None else after)


PROGRAM = """\
import os
# slurmgen: ignore[no-zeta] one
zeta = 1
f(
    zeta,
    2,  # slurmgen: ignore[no-zeta] two
)
if zeta:  # slurmgen: ignore[no-zeta] three
    zeta
    # slurmgen: ignore[no-beta] of another job
    pass
"""


def test_it_works_in_a_program(rules: Rules, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    rules.word("zeta", path=str(path), text=PROGRAM)
    outcome = rules.check(HEAD + "python train.py\n", folder=tmp_path)
    assert [(d.location.path, d.location.line) for d in outcome.diagnostics] == [(str(path), 9)]
    assert outcome.texts[str(path)] == PROGRAM
    path.write_text("# slurmgen: ignore-file[no-zeta] all of it\n" + PROGRAM)
    assert rules.check(HEAD + "python train.py\n", folder=tmp_path).diagnostics == ()


def test_it_works_in_a_batch_script_in_python(rules: Rules) -> None:
    script = (
        "#!/usr/bin/env python3\n#SBATCH --nodes=2\n# slurmgen: ignore[no-zeta] so\nf(\n  zeta)\n"
    )
    assert rules.found(script) == []
    assert rules.found(script + "  zeta)\n") == [("no-zeta", 6)]


def test_many_comments_are_read_in_time_that_grows_with_them(rules: Rules) -> None:
    text = "zeta  # slurmgen: ignore[no-zeta] so\n" * 2000
    assert len(suppressions.read(text)) == 2000
    assert rules.found(HEAD + text) == []
