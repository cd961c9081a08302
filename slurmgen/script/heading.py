"""What a rendered script says of where it came from: by its stamp, or as scripts did before."""

from __future__ import annotations

import re
from typing import NamedTuple

from slurmgen.script import stamp_reader

# Scripts that have no stamp yet are known by the line that people read.
_LINE = re.compile(
    r"^# Rendered by slurmgen (?P<version>\S+) from (?P<source>.+) "
    r"\(template (?P<template>.+), cluster (?P<cluster>.+)\)\.$",
    re.MULTILINE,
)
# It is the second line; a project's template may put a few before it.
_HEAD = 2000


class Heading(NamedTuple):
    """slurmgen's version, the job file's name, template and cluster."""

    version: str
    source: str
    template: str
    cluster: str


def read_heading(text: str) -> Heading | None:
    """The heading of a rendered script; None where it has none."""
    said = stamp_reader.read(text)
    if said is not None:
        return Heading(said.version, said.source, said.template, said.cluster)
    found = _LINE.search(text[:_HEAD])
    return Heading(*found.groups()) if found else None
