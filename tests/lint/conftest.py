"""Rules made up for a test, in the place of the real ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from slurmgen.diagnostics import WARNING, Place
from slurmgen.lint import engine, registry
from slurmgen.lint.finding import Finding
from slurmgen.lint.job import load
from slurmgen.lint.registry import Rule
from slurmgen.lint.rules import unused_suppression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from slurmgen.diagnostics import Edit
    from slurmgen.lint.job import Job

META = Rule(
    unused_suppression.NAME,
    unused_suppression.CODE,
    unused_suppression.SEVERITY,
    unused_suppression.check,
)


class Rules:
    """Stands for the registry; `word()` adds a rule that finds a word."""

    def __init__(self) -> None:
        self.rules = [META]

    def add(self, rule: Rule) -> Rule:
        self.rules.append(rule)
        registry._by_name.cache_clear()
        return rule

    def word(
        self,
        word: str,
        *,
        path: str = "",
        text: str = "",
        edit: Callable[[int], tuple[Edit, ...]] | None = None,
        severity: str = WARNING,
        hides: tuple[str, ...] = (),
        needs: str = "",
    ) -> Rule:
        """A rule `no-WORD`, with a finding wherever the word stands.

        path and text: in that file, in place of the script. edit: the fix of the finding at
        an offset.
        """

        def check(job: Job) -> Iterator[Finding]:
            searched = text or job.text
            # Not the name of the rule.
            for match in re.finditer(rf"(?<!-){word}", searched):
                at = match.start()
                before = searched[:at]
                place = Place(before.count("\n") + 1, at - before.rfind("\n"), len(word), path)
                edits = edit(at) if edit else ()
                yield Finding(place, f"{word} is here", "it is", f"drop {word}", edits=edits)

        number = 100 + len(self.rules)
        return self.add(
            Rule(f"no-{word}", f"SG{number}", severity, check, hides=hides, needs=needs)
        )

    def check(
        self, text: str, *, path: str = "job.sbatch", folder: Path | None = None
    ) -> engine.Outcome:
        """What all of them say of a script."""
        return engine.check(load(path, text, folder=folder), tuple(self.rules))

    def found(self, text: str) -> list[tuple[str, int]]:
        """Rule and line of every finding in a script."""
        return [(d.rule, d.location.line) for d in self.check(text).diagnostics]


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rules]:
    made = Rules()
    monkeypatch.setattr(registry, "rules", lambda: tuple(made.rules))
    registry._by_name.cache_clear()
    yield made
    registry._by_name.cache_clear()
