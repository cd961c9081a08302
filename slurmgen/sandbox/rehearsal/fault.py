"""One thing that a rehearsal has shown to be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurmgen.diagnostics import KeyPath


class Fault(NamedTuple):
    """What, why and how to mend it; see diagnostics.py for the words.

    line: of the script, 0 for that which starts the program. key: of the job file, where one
    is concerned more than a line.
    """

    rule: str
    message: str
    why: str
    fix: str
    line: int = 0
    key: KeyPath | None = None
    severity: str = ERROR


def listing(names: Iterable[object], most: int = 4) -> str:
    """`a, b and 6 more`."""
    texts = [str(name) for name in names]
    if len(texts) <= most + 1:
        return ", ".join(texts[:-1]) + " and " + texts[-1] if len(texts) > 1 else "".join(texts)
    return f"{', '.join(texts[:most])} and {len(texts) - most} more"


def counted(count: int, noun: str) -> str:
    """`1 rank`, `2 ranks`."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{count} {noun if count == 1 else plural}"
