"""How much the tests in this folder try, and with which seed.

make chaos                           the long form
SLURMGEN_CHAOS=long pytest tests/chaos
SLURMGEN_CHAOS_SEED=7                other moments and another order
"""

from __future__ import annotations

import os
import random

LONG = os.environ.get("SLURMGEN_CHAOS", "") == "long"
SEED = int(os.environ.get("SLURMGEN_CHAOS_SEED", "1"))


def times(bounded: int, long: int) -> int:
    """How often something is tried: in the suite, and by hand."""
    return long if LONG else bounded


def chance(subject: str) -> random.Random:
    """The same numbers for the same subject and seed."""
    return random.Random(f"{subject}-{SEED}")
