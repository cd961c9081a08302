"""What a shell script does, as far as it can be read without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slurmgen.reading.shell.evaluate import evaluate
from slurmgen.reading.shell.text import ShellText
from tests.work import calls

if TYPE_CHECKING:
    from slurmgen.reading.shell.commands import Command, ShellProgram


def read(text: str) -> ShellProgram:
    return evaluate(ShellText.whole(text))


def only(text: str, name: str) -> Command:
    (command,) = [c for c in read(text).commands if c.name == name]
    return command


def words(command: Command) -> list[str]:
    return [word.text for word in command.words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prog a 'b c' \"d e\"", ["prog", "a", "b c", "d e"]),
        ('prog a\\ b "q\\"\\$x" \'n\\n\'', ["prog", "a b", 'q"$x', "n\\n"]),
        ("prog $'a\\tb'", ["prog", "a\tb"]),
        ("prog --lr=1e-3 \\\n  --out x", ["prog", "--lr=1e-3", "--out", "x"]),
        ("A=1\nprog $A ${A} \"$A\" '$A'", ["prog", "1", "1", "1", "$A"]),
        ("A='x  y'\nprog $A", ["prog", "x", "y"]),
        ("A='x  y'\nprog \"$A\"", ["prog", "x  y"]),
        ("A='-n 4'\nprog a$A b", ["prog", "a-n", "4", "b"]),
        ("args=(--a 'b c')\nargs+=(--d)\nprog \"${args[@]}\"", ["prog", "--a", "b c", "--d"]),
        ("prog ${PORT:-29500} $1", ["prog", "${PORT:-29500}", "$1"]),
        ("PORT=1\nprog ${PORT:-29500}", ["prog", "1"]),
        ("for s in 0 1; do prog $s; done", ["prog", "$s"]),
        ("for s in 7; do prog $s; done", ["prog", "7"]),
        ("A=1 B=2\nprog $A $B", ["prog", "1", "2"]),
        ("A=1\nunset A\nprog $A", ["prog", "$A"]),
        ("A=1\nread A\nprog $A", ["prog", "$A"]),
        ("f() { prog $1; }\nf x", ["prog", "x"]),
        ("A=a\nA+=b\nprog $A", ["prog", "ab"]),
        ("A=1\n(A=2)\nprog $A", ["prog", "1"]),
        ('prog "" x', ["prog", "", "x"]),
        ("eval 'prog a; b'", ["prog", "a"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(only(text, "prog")) == expected


def test_an_expansion_keeps_its_place_and_the_shell_that_makes_it() -> None:
    text = 'L="torchrun --rank $SLURM_PROCID"\nsrun $L train.py\n'
    (piece,) = [p for w in only(text, "srun").words for p in w.variables()]
    assert (piece.name, piece.where) == ("SLURM_PROCID", "batch")
    assert text[piece.start : piece.end] == "$SLURM_PROCID"


def test_exports() -> None:
    text = "A=1\nexport B=2 C\nC=3\nexport A\nset -a\nD=4\nset +a\nE=5\nF=6 prog\n"
    environment = only(text, "prog").environment
    assert {name: a.value.text for name, a in environment.items()} == {
        "A": "1",
        "B": "2",
        "D": "4",
        "F": "6",
    }


def test_options_of_set() -> None:
    assert only("set -euo pipefail\nset +u\nprog", "prog").options == {"errexit", "pipefail"}


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("prog &", "background", True),
        ("(cd x; prog) &", "background", True),
        ("{ prog; } &", "background", True),
        ("run() { prog; }\nrun &", "background", True),
        ("prog\nother &", "background", False),
        ("prog | tee log", "piped", True),
        ("cat x | prog", "piped", False),
        ("cat x | prog", "fed", True),
        ("while read l; do prog; done < x", "loop", True),
        ("x=$(prog)", "substitution", True),
        ("if prog; then :; fi", "condition", True),
        ("if a; then prog; fi", "conditional", True),
        ("f() { prog; }\ntrap f TERM", "function", "f"),
        ("f() { prog; }\ntrap f TERM", "handler", True),
        ("cat <<EOF | prog\nx\nEOF", "fed", True),
    ],
)
def test_context(text: str, field: str, value: object) -> None:
    assert getattr(only(text, "prog").context, field) == value


def test_what_stands_behind_or_catches_a_failure() -> None:
    assert only("prog || echo no", "prog").caught
    assert not only("prog && echo yes", "prog").caught


def test_a_here_document_is_data_of_its_command() -> None:
    command = only("A=1\nprog <<EOF\n$A $B\n#SBATCH x\nEOF\n", "prog")
    (redirect,) = command.redirects
    assert redirect.body is not None
    assert "#SBATCH x" in redirect.body.text


def test_a_syntax_error_does_not_hide_what_follows() -> None:
    program = read("if [ x; then\nprog a\n)\nother\n")
    assert program.errors
    assert {"prog", "other"} <= {c.name for c in program.commands}


def test_values_behind_values_do_not_nest_without_end() -> None:
    program = read("".join(f"A{i}=${{A{i - 1}%x}}\n" for i in range(3000)))
    last = program.assignments[-1].value
    assert last.uses("NOT_THERE") is None
    assert last.uses("A2998") is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "\0" * 100_000,
        ")" * 50_000,
        "<<EOF\n" * 20_000,
        "A=$A$A\n" * 4000,
        "$(" * 20_000,
        "(" * 20_000,
        'bash -c "' * 5000,
        'eval "$A";' * 5000,
        "a && " * 20_000 + "b",
        "f() { f; }\nf\n" * 500,
        "é\u2028\udc80" * 1000,
        "prog " + "a " * 300_000,
        "".join(f"A{i}=${{A{i - 1}%x}}\n" for i in range(3000)),
    ],
)
def test_nothing_takes_long(text: str) -> None:
    # Ten times what it takes: this tells quadratic from linear, not fast from slow.
    assert calls(lambda: read(text)) < 8_000_000
