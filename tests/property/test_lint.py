"""Whatever has become of a script, no rule breaks on it and no fix goes on for ever."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmgen.lint import engine, fixes, registry
from slurmgen.lint.job import load
from tests.examples import examples

if TYPE_CHECKING:
    from slurmgen.diagnostics import Diagnostic

CASES = sorted(Path(__file__).parents[1].glob("lint/cases/*/job.sbatch"))
TEXTS = [path.read_bytes().decode() for path in CASES]
ODD = ("'", '"', "`", "$(", "${", "$((", ")", "}", "\\", "\n", "\r", "#", "=", "<<EOF\n", "&", "|",
       ";", "[[", "é", "😀", "\t", "\x00", "\ufeff", "-", "--", "$SLURM_", "9" * 40)  # fmt: skip


@st.composite
def scripts(draw: st.DrawFn) -> str:
    """A script of the cases with lines lost, doubled, moved and damaged."""
    lines = draw(st.sampled_from(TEXTS)).split("\n")
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        other = draw(st.integers(0, len(lines) - 1))
        line = lines[at]
        column = draw(st.integers(0, len(line)))
        kind = draw(st.sampled_from(("lose", "double", "swap", "insert", "cut", "mix")))
        if kind == "lose" and len(lines) > 1:
            del lines[at]
        elif kind == "double":
            lines.insert(other, line)
        elif kind == "swap":
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == "insert":
            lines[at] = f"{line[:column]}{draw(st.sampled_from(ODD))}{line[column:]}"
        elif kind == "cut":
            lines[at] = line[:column]
        else:
            foreign = draw(st.sampled_from(TEXTS)).split("\n")
            lines[at] = draw(st.sampled_from(foreign))
    return "\n".join(lines)


def find(text: str) -> tuple[Diagnostic, ...]:
    outcome = engine.check(load("job.sbatch", text), registry.rules())
    for failure in outcome.failures:
        raise failure.error
    return outcome.diagnostics


def errors(text: str) -> int:
    return len(load("job.sbatch", text).script.shell.errors)


@settings(max_examples=examples(200))
@given(scripts())
def test_no_rule_breaks_and_every_place_is_in_the_script(text: str) -> None:
    lines = text.split("\n")
    for diagnostic in find(text):
        line, column = diagnostic.location.start[1:]
        assert 1 <= line <= len(lines), diagnostic
        assert 1 <= column <= len(lines[line - 1]) + 1, diagnostic
        assert diagnostic.location.length >= 1, diagnostic
        assert "\n" not in diagnostic.message, diagnostic


@settings(max_examples=examples(100))
@given(scripts())
def test_a_second_fix_changes_nothing(text: str) -> None:
    after = fixes.fixed(text, find, errors)
    assert fixes.fixed(after, find, errors) == after
    assert errors(after) <= errors(text)
