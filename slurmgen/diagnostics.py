"""Location, Severity, Diagnostic: the one currency of "what is wrong"."""

from __future__ import annotations

from typing import NamedTuple

KeyPath = tuple["str | int", ...]
"""The way to a value in a file: keys of mappings, positions in lists."""


class Location(NamedTuple):
    """A place in a file; `line` and `column` count from 1, columns in characters."""

    path: str
    line: int
    column: int


ERROR = "error"
WARNING = "warning"


class Place(NamedTuple):
    """Where in a file; `line` and `column` count from 1, columns in characters.

    path: None means the script that is linted.
    """

    line: int
    column: int
    length: int = 1
    path: str | None = None


class Edit(NamedTuple):
    """Replace the characters [start, end) of the script's text."""

    start: int
    end: int
    text: str


class Diagnostic(NamedTuple):
    """One thing that is wrong: where, what, why it matters and how to mend it.

    `rule` is a kebab-case name, `code` its permanent short form (never reused),
    `severity` is ERROR or WARNING, `length` the number of characters to underline, `also`
    further places of the same cause, `edits` what mends it in the text of the file `edited`.
    """

    location: Location
    rule: str
    code: str
    severity: str
    message: str
    why: str
    fix: str
    length: int = 1
    also: tuple[Location, ...] = ()
    edits: tuple[Edit, ...] = ()
    edited: str = ""


def order(diagnostic: Diagnostic) -> tuple[Location, str, str]:
    """What diagnostics are sorted by: place, then code."""
    return diagnostic.location, diagnostic.code, diagnostic.message
