"""The line by which a rendered script says what it was rendered from."""

from __future__ import annotations

import re
from typing import NamedTuple

# `header` of `render.context()` writes it.
_LINE = re.compile(
    r"^# Rendered by slurmgen (?P<version>\S+) from (?P<source>.+) "
    r"\(template (?P<template>.+), cluster (?P<cluster>.+)\)\.$",
    re.MULTILINE,
)
# It is the second line; a project's template may put a few before it.
_HEAD = 2000


class Heading(NamedTuple):
    """What the line says: slurmgen's version, the job file's name, template and cluster."""

    version: str
    source: str
    template: str
    cluster: str


def read_heading(text: str) -> Heading | None:
    """The heading of a rendered script; None where it has none."""
    found = _LINE.search(text[:_HEAD])
    return Heading(*found.groups()) if found else None
