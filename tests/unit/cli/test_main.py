"""The short way into a verb takes exactly what Typer would take, and leaves it the rest."""

from __future__ import annotations

from typing import Any

import pytest

from slurmgen.cli import main
from slurmgen.cli.commands import lint, render


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """What the verbs are called with in place of running."""
    calls: list[tuple[Any, dict[str, Any]]] = []

    def run(first: Any, **others: Any) -> int:
        calls.append((first, others))
        return 0

    monkeypatch.setattr(render, "run", run)
    monkeypatch.setattr(lint, "run", run)
    return calls


@pytest.mark.parametrize(
    ("line", "first", "others"),
    [
        ("render job.yaml", "job.yaml", {}),
        ("render -", "-", {}),
        ("render -c lumi job.yaml", "job.yaml", {"cluster": "lumi"}),
        ("render job.yaml --cluster=lumi", "job.yaml", {"cluster": "lumi"}),
        ("render job.yaml -o out --set a=1 --set b=-1", "job.yaml",
         {"output": "out", "overrides": ["a=1", "b=-1"]}),
        ("render --check job.sbatch job.yaml", "job.yaml", {"check": "job.sbatch"}),
        ("lint", [], {}),
        ("lint a b -", ["a", "b", "-"], {}),
        ("lint --fix a --diff", ["a"], {"fix": True, "diff": True}),
        ("lint --format=json a --slurm 22.05 -c lumi --severity error", ["a"],
         {"format_": "json", "slurm": "22.05", "cluster": "lumi", "severity": "error"}),
        ("lint --select SG1 --select=SG2,SG3 --ignore x a", ["a"],
         {"select": ["SG1", "SG2,SG3"], "ignore": ["x"]}),
        ("lint --explain all", [], {"explain": "all"}),
    ],
)  # fmt: skip
def test_a_plain_verb(
    called: list[tuple[Any, dict[str, Any]]], line: str, first: Any, others: dict[str, Any]
) -> None:
    assert main._plain(line.split()) == 0
    assert called == [(first, others)]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "plan job.yaml",
        "render",
        "render --help",
        "render a.yaml b.yaml",
        "render job.yaml -o",
        "render job.yaml -o --check",
        "render job.yaml -o=x",
        "render job.yaml --outpt x",
        "render job.yaml -- x",
        "render job.yaml --cluster a --cluster b",
        "render job.yaml --fix",
        "lint --help",
        "lint -- a",
        "lint a --fix=yes",
        "lint a -c=x",
        "lint a --format",
        "lint a --format json --format json",
        "lint a --set x=1",
    ],
)
def test_what_is_left_to_typer(called: list[tuple[Any, dict[str, Any]]], line: str) -> None:
    assert main._plain(line.split()) is None
    assert called == []
