"""What the shell starts with, what set changes, and what a loop runs over."""

from __future__ import annotations

import pytest

from slurmgen.reading.script import BatchScript


@pytest.mark.parametrize(
    ("shebang", "options"),
    [
        ("#!/bin/bash", set()),
        ("#!/bin/bash -e", {"errexit"}),
        ("#! /bin/bash -eu", {"errexit", "nounset"}),
        ("#!/usr/bin/env -S bash -euo pipefail", {"errexit", "nounset", "pipefail"}),
        ("#!/bin/bash --login", set()),
        ("#!/bin/bash -l -e", {"errexit"}),
    ],
)
def test_options_of_the_shebang_are_on_from_the_start(shebang: str, options: set[str]) -> None:
    (command,) = BatchScript(f"{shebang}\npython train.py\n").shell.commands
    assert command.options == options


def test_what_set_turns_on_it_turns_off() -> None:
    commands = BatchScript("#!/bin/bash -e\nset +e\na\nset -eo pipefail\nb\n").shell.commands
    on = {command.name: command.options for command in commands}
    assert on["a"] == set()
    assert on["b"] == {"errexit", "pipefail"}


@pytest.mark.parametrize(("values", "text"), [("a", "a"), ("{0..3}", "$i"), ("*.yaml", "$i")])
def test_the_variable_of_a_loop_over_one_word(values: str, text: str) -> None:
    script = BatchScript(f"for i in {values}; do\n  echo $i\ndone\n")
    (command,) = script.shell.commands
    assert command.words[-1].text == text


def test_positional_words_are_kept_by_options_and_lost_by_others() -> None:
    text = 'f() {\n  set -o pipefail\n  a "$1"\n  set -- y\n  b "$1"\n}\nf x\n'
    words = {c.name: c.words[-1].text for c in BatchScript(text).shell.commands}
    assert (words["a"], words["b"]) == ("x", "$1")
