"""Where lint stops before the end it says so, whatever was asked for, and is never content."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from slurmgen.cli import report
from slurmgen.cli.commands import lint as command
from slurmgen.lint import engine, other_codes, registry
from slurmgen.lint.job import load
from slurmgen.reading import budget
from tests.lint.asking import ALONE

if TYPE_CHECKING:
    from pathlib import Path

    from slurmgen.diagnostics import Diagnostic

NAME, CODE = other_codes.STOPPED
# Four lines of directives, and one without a fault.
FINE = f"{ALONE}#SBATCH --time=1:00:00\nsrun python train.py\n"


def stopped(text: str, folder: Path | None = None) -> list[Diagnostic]:
    outcome = engine.check(load("job.sbatch", text, folder=folder), registry.rules())
    for failure in outcome.failures:
        raise failure.error
    return [found for found in outcome.diagnostics if found.code == CODE]


@pytest.mark.parametrize(
    "line",
    ["A=$A$A", "A=$A$A$A", "A=${A%x}${A#y}", "V{n}=${V{i}%x}${V{i}%y}", 'D=$(dirname "$0")$D$D'],
)
def test_values_that_double_with_each_line_are_read(line: str) -> None:
    lines = [line.replace("{n}", str(i + 1)).replace("{i}", str(i)) for i in range(60)]
    text = f"{ALONE}A=x\nV0=x\n" + "\n".join(lines) + '\nsrun python train.py "$A"\n'
    assert stopped(text) == []


def test_a_script_that_is_read_to_the_end_is_not_said_to_be_anything_else() -> None:
    assert stopped(FINE) == []


def test_the_rule_that_stopped_is_named_at_what_it_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "STEPS_A_CHARACTER", 0)
    monkeypatch.setattr(budget.Budget.__init__, "__defaults__", (3,))
    (found,) = stopped(FINE)
    assert found.message.startswith("the rule ")
    assert found.message.endswith(" stopped here, and the rest is not looked at")
    assert found.why == "the rules take more than 3 steps"
    assert found.location.line in range(1, FINE.count("\n") + 2)


def test_more_commands_than_are_followed() -> None:
    text = FINE + "echo\n" * 3000
    (found,) = stopped(text)
    assert found.message.startswith("the reader of shell code stopped here")
    # Five lines and the srun; the last of 3,000 commands is on the line before.
    assert found.location.line == FINE.count("\n") + 3000


def test_more_programs_than_are_read(tmp_path: Path) -> None:
    lines = []
    for number in range(25):
        (tmp_path / f"train{number}.py").write_text("import torch\n")
        lines.append(f"srun python train{number}.py")
    (found,) = stopped(ALONE + "\n".join(lines) + "\n", tmp_path)
    assert found.why == "the script starts more than 20 programs"
    assert found.location.line == ALONE.count("\n") + 21


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("x = 1\n" * 400_000, "train.py is too large"),
        ("x = " + "-" * 20_000 + "1\n", "train.py is nested too deeply"),
    ],
)
def test_a_program_that_is_too_much(program: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(program)
    (found,) = stopped(FINE, tmp_path)
    assert found.why == why
    assert found.location.line == FINE.count("\n")


@pytest.mark.parametrize("format_", report.FORMATS)
@pytest.mark.parametrize("options", [{}, {"severity": "error"}, {"select": ["SG101"]}])
def test_every_format_says_it_and_the_status_does(
    format_: str,
    options: dict[str, object],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = tmp_path / "job.sbatch"
    script.write_text(FINE + "echo\n" * 3000)
    assert command.run([str(script)], format_=format_, slurm="22.05", **options) == 1  # type: ignore[arg-type]
    printed = capsys.readouterr()
    assert "the rest is not looked at" in printed.out
    assert "no findings" not in printed.err
    if format_ == "json":
        assert CODE in [found["code"] for found in json.loads(printed.out)]
    elif format_ == "sarif":
        (run,) = json.loads(printed.out)["runs"]
        assert CODE in [result["ruleId"] for result in run["results"]]


def test_no_comment_answers_for_it() -> None:
    text = f"#!/bin/bash\n# slurmgen: ignore-file[{NAME}] why\n" + "echo\n" * 3001
    assert len(stopped(text)) == 1


def test_fixing_a_script_starts_each_look_with_the_whole_budget() -> None:
    job = load("job.sbatch", FINE)
    first = engine.check(job, registry.rules())
    assert engine.check(job, registry.rules()) == first


def test_code_that_is_too_long_is_read_up_to_a_line() -> None:
    line = "# " + "x" * 97 + "\n"
    text = f"{FINE}if true; then\n" + line * 4_500 + "fi\n"
    (found,) = stopped(text)
    assert found.location.column == 1
    assert 2_900 < found.location.line < 3_100
    assert load("job.sbatch", text).script.shell.errors == ()
