"""Both quotings against the real thing: Bash, and sbatch's own reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmgen.errors import Refusal
from slurmgen.slurm.directives import split_words
from slurmgen.slurm.quoting import bash_word, directive_value, split_expansions

ONE_LINE = st.text(
    st.characters(min_codepoint=32, exclude_characters="\x7f", exclude_categories=["Cs"]),
    max_size=40,
)


def test_a_word_is_no_comparison() -> None:
    """Bash takes either; Shellcheck takes `A==` for `[ A == ]` gone wrong."""
    assert [bash_word(text) for text in ("=", "=x", "x=")] == ["'='", "'=x'", "x="]


@given(ONE_LINE)
def test_our_reading_of_a_directive_line_undoes_our_quoting(text: str) -> None:
    assert split_words(f" --comment={directive_value(text)} # why") == [f"--comment={text}"]


@pytest.mark.parametrize("text", ["a\nb", "a\r", "\x1b[31m", "a\0b", "\ud800", "a\tb"])
def test_what_would_end_a_directive_line_is_refused(text: str) -> None:
    with pytest.raises(Refusal):
        directive_value(text)


@pytest.mark.parametrize("text", ["${", "${}", "${A:-b}", "${A", "${1}", "${A b}", "${é}"])
def test_nothing_but_a_plain_name_in_braces_is_an_expansion(text: str) -> None:
    with pytest.raises(Refusal):
        split_expansions(text)
