"""What a rule yields: a Finding at a Place, and the Edits that would mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from slurmgen.diagnostics import Edit, Place


class Finding(NamedTuple):
    """One cause, at the place where it is mended.

    message: one clause, no full stop. why: what happens then. fix: an instruction.
    severity: None means the rule's own. also: further places of the same cause.
    edits: what `--fix` does, only where nothing has to be guessed.
    """

    place: Place
    message: str
    why: str
    fix: str
    severity: str | None = None
    also: tuple[Place, ...] = ()
    edits: tuple[Edit, ...] = ()


class Stop(NamedTuple):
    """Where lint stopped before the end: what (a rule, a reader), at which place, and why."""

    what: str
    place: Place
    why: str
