"""What is wrong with several keys, or several entries of one: all of it at once."""

from __future__ import annotations

from typing import NamedTuple

from slurmgen.errors import Refusal


class Conflict(NamedTuple):
    """A Refusal, the key it is shown at and every key that takes part."""

    key: str | tuple[str | int, ...]
    involved: tuple[str, ...]
    refusal: Refusal


class Refusals(ValueError):
    """All the conflicts of one spec."""

    def __init__(self, problems: list[Conflict]) -> None:
        super().__init__("; ".join(problem.refusal.what for problem in problems))
        self.problems = problems
