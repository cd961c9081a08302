"""How much work it may be to read a script: counted in steps, so that it is the same everywhere.

What reads scripts is written so that the work grows with the length of the text, and nobody's
script comes near the end of a budget. It is the fence behind that: past it whoever asked is told
that not everything was looked at, and nobody waits.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# A step takes about a microsecond of CPU time. The scripts in tests/lint take less than one for
# each of their characters.
STEPS = 500_000
STEPS_A_CHARACTER = 10


class OverBudgetError(Exception):
    """More steps than the budget has. Never leaves whoever made the budget."""


class Budget:
    """The steps that are left for one script and its programs."""

    def __init__(self, characters: int, steps: int = STEPS) -> None:
        self.steps = steps + characters * STEPS_A_CHARACTER
        self.spent = 0

    @contextmanager
    def use(self) -> Iterator[None]:
        """Count what is spent inside against this budget."""
        before = _current.set(self)
        try:
            yield
        finally:
            _current.reset(before)

    def spend(self, steps: int) -> None:
        """Raises OverBudgetError where fewer are left."""
        self.spent += steps
        if self.spent > self.steps:
            raise OverBudgetError


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


def spend(steps: int) -> None:
    """Count steps against the budget in use, if any; raises OverBudgetError past its end."""
    budget = _current.get()
    if budget is not None:
        budget.spend(steps)
