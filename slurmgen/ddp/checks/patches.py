"""Putting a function of ours around one of torch's, and taking it away again."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def around(owner: Any, name: str, make: Callable[[Any], Any]) -> Callable[[], None]:
    """Replace `owner.name` by what `make` returns for it; returns what puts it back.

    What others have put around it meanwhile stays.
    """
    original = getattr(owner, name)
    replacement = functools.wraps(original)(make(original))
    setattr(owner, name, replacement)

    def undo() -> None:
        if getattr(owner, name) is replacement:
            setattr(owner, name, original)

    return undo
