"""Keys with their values and comments -> the entries of a job file, in its own order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.importer.yaml_text import Entry
from slurmgen.jobfile.keys import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurmgen.importer.directives import LiftedKey


def directive_entries(keys: Iterable[LiftedKey]) -> list[Entry]:
    """The entries of the directives' keys; options without a key are under `sbatch`."""
    entries: list[Entry] = []
    others: dict[str, list[LiftedKey]] = {}
    for lifted in keys:
        path = lifted.key.path
        if path[0] == "sbatch":
            others.setdefault(path[1], []).append(lifted)
        else:
            clear = KEYS[path[0]].kind.is_bare
            entries.append(
                Entry(path[0], lifted.key.value, lifted.above, lifted.beside, clear=clear)
            )
    if others:
        entries.append(Entry("sbatch", [_other(name, found) for name, found in others.items()]))
    return entries


def _other(name: str, found: list[LiftedKey]) -> Entry:
    first = found[0]
    if len(first.key.path) == 2:
        value: str | list[Entry] = first.key.value
        # Flags are written as `contiguous: true`.
        clear = value == "true"
        return Entry(name, value, first.above, first.beside, clear=clear)
    inner = [Entry(lifted.key.path[2], lifted.key.value, clear=True) for lifted in found]
    return Entry(name, inner, first.above, first.beside)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """The entries of the top level: what is asked for, then what runs."""
    order = list(KEYS)
    return sorted(entries, key=lambda entry: order.index(entry.key))
