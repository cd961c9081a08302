"""Work as a count, since time says more of the machine than of the code."""

from __future__ import annotations

import sys
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def calls(work: Callable[[], object]) -> int:
    """How many functions `work` calls, of Python and of C.

    What a single call does inside C is not seen; `benchmarks/growth.py` times that.
    """
    counted = count()

    def seen(_frame: object, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            next(counted)

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return next(counted)
