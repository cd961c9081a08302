"""Both quotings against the real thing: Bash, and sbatch's own reading."""

from __future__ import annotations

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmgen.slurm.quoting import bash_expandable, bash_word
from tests.examples import examples

# Everything an argument can hold: no NUL, no half surrogates.
ARGUMENTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


def bash(script: str) -> bytes:
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=30, check=True)
    return done.stdout


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(ARGUMENTS, min_size=1, max_size=20))
def test_bash_reads_words_back_byte_for_byte(words: list[str]) -> None:
    script = "printf '%s\\0' " + " ".join(map(bash_word, words))
    assert "\n" not in script
    assert bash(script) == b"".join(word.encode() + b"\0" for word in words)


@settings(deadline=None, max_examples=examples(25))
@given(st.lists(ARGUMENTS, min_size=1, max_size=20))
def test_only_variables_in_braces_expand(texts: list[str]) -> None:
    escaped = [text.replace("${", "$${") for text in texts]
    values = [f"${{VALUE}}{text}" for text in escaped]
    script = "VALUE='a b'; printf '%s\\0' " + " ".join(
        bash_expandable(value, required=False) for value in values
    )
    assert bash(script) == b"".join(b"a b" + text.encode() + b"\0" for text in texts)


def test_an_unset_variable_in_a_path_ends_the_script_with_its_name() -> None:
    word = bash_expandable("${NOT_SET_HERE}/data", required=True)
    done = subprocess.run(["bash", "-c", f"echo {word}"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "NOT_SET_HERE: is not set" in done.stderr
