"""What each rule says of every script here, word for word: `said/RULE.txt`.

One place to read a rule's sentences in, and where a change of one shows. `make golden` writes it
again; a rule that says nothing any more loses its file.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from slurmgen.lint import documentation, registry
from tests.lint.test_cases import CASES, lint
from tests.lint.test_rules import found_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slurmgen.diagnostics import Diagnostic

SAID = Path(__file__).parent / "said"


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By rule: all that is found in the rules' examples, and in the cases beside this file."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, folder, diagnostics in _found(tmp_path_factory.mktemp("said")):
        for one in diagnostics:
            found[one.rule].append(_shown(name, folder, one))
    return {rule: "\n".join(parts) for rule, parts in found.items()}


def _found(tmp_path: Path) -> Iterator[tuple[str, Path, tuple[Diagnostic, ...]]]:
    for rule in registry.rules():
        folder = tmp_path / rule.name
        files = documentation.read(rule).files("Example")
        yield f"example of {rule.name}", folder, found_in(rule, files, folder)
    for case in CASES:
        facts = yaml.safe_load((case / "case.yaml").read_text())
        yield case.name, case, lint(case, facts, tmp_path)


def _shown(name: str, folder: Path, found: Diagnostic) -> str:
    """A finding on a few lines, each thing that a person is told on one."""
    places = [found.location, *found.also]
    where = [
        f"{Path(place.path).relative_to(folder) if Path(place.path).is_absolute() else place.path}"
        f":{place.line}:{place.column}+{place.length}"
        for place in places
    ]
    lines = [
        f"{name}: {where[0]}: {found.severity}: {found.message}",
        f"  why: {found.why}",
        f"  fix: {found.fix}",
        *(f"  also: {place}" for place in where[1:]),
        *(f"  edit: {edit!r}" for edit in found.edits),
    ]
    text = "\n".join(lines) + "\n"
    return text.replace(str(folder), "FOLDER")


@pytest.mark.parametrize("rule", [rule.name for rule in registry.rules()])
def test_what_a_rule_says(
    rule: str, said: dict[str, str], golden: Callable[[Path, str], None]
) -> None:
    assert rule in said
    golden(SAID / f"{rule}.txt", said[rule])


def test_nothing_else_is_said(said: dict[str, str]) -> None:
    assert {path.stem for path in SAID.glob("*.txt")} == {rule.name for rule in registry.rules()}
    # What is no rule's: scripts that can't be read, suppressions, where lint stopped.
    assert set(said) - {rule.name for rule in registry.rules()} == set()
