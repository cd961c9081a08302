"""The table of verbs, and the fast way in: what the parser would take, and the rest left to it."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen import launchers
from slurmgen.cli import parser, quick, verbs
from slurmgen.cli.commands import lint, render

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the verbs are called with in place of running."""
    calls: list[dict[str, Any]] = []

    def run(**values: Any) -> int:
        calls.append(values)
        return 0

    monkeypatch.setattr(render, "run", run)
    monkeypatch.setattr(lint, "run", run)
    return calls


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("render", {"jobs": ()}),
        ("render job.yaml", {"jobs": ("job.yaml",)}),
        ("render a.yaml b.yaml --write", {"jobs": ("a.yaml", "b.yaml"), "write": True}),
        ("render -", {"jobs": ("-",)}),
        ("render -c lumi job.yaml", {"jobs": ("job.yaml",), "cluster": "lumi"}),
        ("render job.yaml --cluster=lumi", {"jobs": ("job.yaml",), "cluster": "lumi"}),
        ("render job.yaml -o out --set a=1 --set b=-1",
         {"jobs": ("job.yaml",), "output": "out", "overrides": ("a=1", "b=-1")}),
        ("render --check job.sbatch job.yaml", {"jobs": ("job.yaml",), "check": "job.sbatch"}),
        ("lint", {"files": ()}),
        ("lint a b -", {"files": ("a", "b", "-")}),
        ("lint --fix a --diff", {"files": ("a",), "fix": True, "diff": True}),
        ("lint --format=json a --slurm 22.05 -c lumi --severity error",
         {"files": ("a",), "format_": "json", "slurm": "22.05", "cluster": "lumi",
          "severity": "error"}),
        ("lint --select SG1 --select=SG2,SG3 --ignore x a",
         {"files": ("a",), "select": ("SG1", "SG2,SG3"), "ignore": ("x",)}),
        ("lint --explain all", {"files": (), "explain": "all"}),
    ],
)  # fmt: skip
def test_a_plain_verb(called: list[dict[str, Any]], line: str, values: dict[str, Any]) -> None:
    assert quick.run(line.split()) == 0
    assert called == [values]


@pytest.mark.parametrize("line", ["render a.yaml -c lumi", "lint a --select x --fix", "lint"])
def test_the_parser_hands_over_what_the_fast_way_does(
    called: list[dict[str, Any]], line: str
) -> None:
    quick.run(line.split())
    with pytest.raises(SystemExit) as ended:
        parser.tree().main(line.split(), prog_name="slurmgen")
    assert ended.value.code == 0
    short, whole = called
    assert short.items() <= whole.items()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "plan job.yaml",
        "render --nosuch --help",
        "render --check",
        "render job.yaml -o",
        "render job.yaml -o --check",
        "render job.yaml -o=x",
        "render job.yaml --outpt x",
        "render job.yaml -- x",
        "render job.yaml --cluster a --cluster b",
        "render job.yaml --fix",
        "lint a --help",
        "lint -- a",
        "lint a --fix=yes",
        "lint a -c=x",
        "lint a --format",
        "lint a --format json --format json",
        "lint a --set x=1",
    ],
)
def test_what_is_left_to_the_parser(called: list[dict[str, Any]], line: str) -> None:
    assert quick.run(line.split()) is None
    assert called == []


def declared(verb: verbs.Verb) -> Iterator[verbs.Verb]:
    for below in verb.verbs:
        yield from declared(below)
    if not verb.verbs:
        yield verb


@pytest.mark.parametrize("verb", list(declared(verbs.ALL)), ids=lambda verb: verb.function)
def test_a_function_takes_what_its_verb_declares(verb: verbs.Verb) -> None:
    module, _, name = verb.function.partition(".")
    function = getattr(import_module(f"slurmgen.cli.commands.{module}"), name)
    inspect.signature(function).bind(**{p.name: p.default for p in verb.parameters})


def test_launchers_are_named() -> None:
    (option,) = (option for option in verbs.INIT.options if option.name == "launcher")
    assert option.metavar == "|".join(launchers.NAMES)
