"""Both quotings against the real thing: Bash, and sbatch's own reading."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmgen.errors import Refusal
from slurmgen.slurm.directives import split_words
from slurmgen.slurm.quoting import bash_expandable, bash_word, directive_value, split_expansions

# Everything an argument can hold: no NUL, no half surrogates.
ARGUMENTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
ONE_LINE = st.text(
    st.characters(min_codepoint=32, exclude_characters="\x7f", exclude_categories=["Cs"]),
    max_size=40,
)


def bash(script: str) -> bytes:
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=30, check=True)
    return done.stdout


@settings(deadline=None, max_examples=40)
@given(st.lists(ARGUMENTS, min_size=1, max_size=20))
def test_bash_reads_words_back_byte_for_byte(words: list[str]) -> None:
    script = "printf '%s\\0' " + " ".join(map(bash_word, words))
    assert "\n" not in script
    assert bash(script) == b"".join(word.encode() + b"\0" for word in words)


def test_a_word_is_no_comparison() -> None:
    """Bash takes either; Shellcheck takes `A==` for `[ A == ]` gone wrong."""
    assert [bash_word(text) for text in ("=", "=x", "x=")] == ["'='", "'=x'", "x="]


@settings(deadline=None, max_examples=25)
@given(st.lists(ARGUMENTS, min_size=1, max_size=20))
def test_only_variables_in_braces_expand(texts: list[str]) -> None:
    escaped = [text.replace("${", "$${") for text in texts]
    values = [f"${{VALUE}}{text}" for text in escaped]
    script = "VALUE='a b'; printf '%s\\0' " + " ".join(
        bash_expandable(value, required=False) for value in values
    )
    assert bash(script) == b"".join(b"a b" + text.encode() + b"\0" for text in texts)


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


def test_an_unset_variable_in_a_path_ends_the_script_with_its_name() -> None:
    word = bash_expandable("${NOT_SET_HERE}/data", required=True)
    done = subprocess.run(["bash", "-c", f"echo {word}"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "NOT_SET_HERE: is not set" in done.stderr
