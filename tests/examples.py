"""How many examples a property is tried with."""

from __future__ import annotations

from hypothesis import settings

# Of Hypothesis itself, for which tests state their numbers.
_USUAL = 100


def examples(number: int) -> int:
    """`number`, or in `make quick` as many fewer as its profile says (tests/conftest.py)."""
    profile = settings.default
    assert profile is not None
    return max(1, number * profile.max_examples // _USUAL)
