"""Edits: never two in one place, none that breaks the script, and none left for a second run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmgen.diagnostics import WARNING, Diagnostic, Edit, Place
from slurmgen.lint.fixes import apply, fixed

if TYPE_CHECKING:
    from collections.abc import Iterable


def diagnostic(*edits: Edit) -> Diagnostic:
    return Diagnostic(
        Place(1, 1, path="job.sbatch"), "rule", "SG199", WARNING, "", "", "", edits=edits
    )


def mend(text: str, *findings: tuple[Edit, ...], errors: str = "\0") -> str:
    """The findings of the first round, and none in the next."""
    return fixed(
        text,
        lambda now: [diagnostic(*edits) for edits in findings] if now == text else [],
        lambda now: now.count(errors),
    )


def replace(text: str, old: str, new: str) -> Iterable[Diagnostic]:
    at = text.find(old)
    if at >= 0:
        yield diagnostic(Edit(at, at + len(old), new))


def test_edits_are_made_where_the_text_was() -> None:
    assert apply("abcdef", [Edit(4, 5, ""), Edit(0, 1, "xyz"), Edit(2, 2, "-")]) == "xyzb-cdf"


def test_the_first_of_two_that_touch_wins() -> None:
    assert mend("abcdef", (Edit(0, 3, "x"),), (Edit(2, 4, "y"),), (Edit(4, 5, "z"),)) == "xdzf"
    assert mend("abcdef", (Edit(2, 2, "x"),), (Edit(2, 2, "y"),)) == "abxcdef"
    assert mend("abcdef", (Edit(0, 2, "x"),), (Edit(2, 2, "y"),)) == "xcdef"


def test_the_same_edit_of_two_findings_is_made_once() -> None:
    assert mend("abc", (Edit(1, 1, "x"),), (Edit(1, 1, "x"),)) == "axbc"


def test_a_fix_is_made_whole_or_not_at_all() -> None:
    assert mend("abcdef", (Edit(0, 1, ""),), (Edit(0, 1, "x"), Edit(5, 6, "y"))) == "bcdef"
    assert mend("abcdef", (Edit(0, 2, ""), Edit(2, 2, "x"))) == "xcdef"
    assert mend("abcdef", (Edit(0, 3, ""), Edit(2, 4, "x"))) == "abcdef"


@pytest.mark.parametrize("edit", [Edit(-1, 2, ""), Edit(2, 1, ""), Edit(2, 7, "")])
def test_an_edit_outside_the_text_is_not_made(edit: Edit) -> None:
    assert mend("abcdef", (edit,)) == "abcdef"


def test_what_was_in_the_way_is_mended_in_the_next_round() -> None:
    def find(text: str) -> Iterable[Diagnostic]:
        yield from replace(text, "a", "b")
        yield from replace(text, "ab", "xx")
        yield from replace(text, "bb", "done")

    assert fixed("ab", find, lambda text: 0) == "done"


def test_a_fix_that_breaks_the_script_is_dropped_and_the_others_are_made() -> None:
    assert mend("abc", (Edit(0, 1, "("),), (Edit(2, 3, "x"),), errors="(") == "abx"
    # One that was broken before may stay so.
    assert mend("(bc", (Edit(2, 3, "x"),), errors="(") == "(bx"


def test_rules_that_undo_each_other_change_nothing() -> None:
    def find(text: str) -> Iterable[Diagnostic]:
        yield from replace(text, "a", "b")
        if "a" not in text:
            yield from replace(text, "b", "a")

    assert fixed("a", find, lambda text: 0) == "a"
    assert fixed("a", lambda text: [diagnostic(Edit(0, 0, "x"))], lambda text: 0) == "a"


@given(
    text=st.text(max_size=20),
    wanted=st.lists(
        st.lists(
            st.builds(Edit, st.integers(0, 20), st.integers(0, 20), st.text(max_size=3)), max_size=3
        ).map(tuple),
        max_size=6,
    ),
)
def test_whatever_is_wanted_the_rest_of_the_text_stays(
    text: str, wanted: list[tuple[Edit, ...]]
) -> None:
    after = mend(text, *wanted)
    touched = {i for edits in wanted for edit in edits for i in range(edit.start, edit.end)}
    kept = iter(after)
    assert all(c in kept for i, c in enumerate(text) if i not in touched)
