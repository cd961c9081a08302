"""Place, Edit, Diagnostic: the one currency of "what is wrong"."""

from __future__ import annotations

from typing import NamedTuple

KeyPath = tuple["str | int", ...]
"""The way to a value in a file: keys of mappings, positions in lists."""


ERROR = "error"
WARNING = "warning"


class Place(NamedTuple):
    """Where in a file; `line` and `column` count from 1, columns and `length` in characters.

    path: of the file; empty for the script that a rule is asked about.
    """

    line: int
    column: int
    length: int = 1
    path: str = ""

    @property
    def start(self) -> tuple[str, int, int]:
        """Path, line and column: what places are sorted by, and are the same by."""
        return self.path, self.line, self.column


class Edit(NamedTuple):
    """Replace the characters [start, end) of the script's text."""

    start: int
    end: int
    text: str


class Diagnostic(NamedTuple):
    """One thing that is wrong: where, what, why it matters and how to mend it.

    `rule` is a kebab-case name, `code` its permanent short form (never reused),
    `severity` is ERROR or WARNING, `also` has further places of the same cause, `edits` what mends
    it in the text of the file `edited`.
    """

    location: Place
    rule: str
    code: str
    severity: str
    message: str
    why: str
    fix: str
    also: tuple[Place, ...] = ()
    edits: tuple[Edit, ...] = ()
    edited: str = ""


def order(diagnostic: Diagnostic) -> tuple[tuple[str, int, int], str, str]:
    """What diagnostics are sorted by: place, then code."""
    return diagnostic.location.start, diagnostic.code, diagnostic.message
