"""Keys with their values and comments -> the entries of a job file, in its own order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.importer.keys import CLEAR
from slurmgen.importer.yaml_text import Entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurmgen.importer.lifted import LiftedKey

# As README shows a job file: what is asked for, then what runs.
_ORDER = """
    job_name comment account partition qos reservation constraint nodes ntasks ntasks_per_node
    gpus_per_node gpu_form gres cpus_per_task cpus_per_gpu mem mem_per_cpu mem_per_gpu exclusive
    nodelist exclude licenses time time_min begin deadline array dependency signal mail_type
    mail_user output error input open_mode chdir export requeue sbatch
    launcher rdzv nproc_per_node setup env command script
""".split()


def directive_entries(keys: Iterable[LiftedKey]) -> list[Entry]:
    """The entries of the directives' keys; options without a key are under `sbatch`."""
    entries: list[Entry] = []
    others: dict[str, list[LiftedKey]] = {}
    for lifted in keys:
        path = lifted.key.path
        if path[0] == "sbatch":
            others.setdefault(path[1], []).append(lifted)
        else:
            entries.append(
                Entry(
                    path[0], lifted.key.value, lifted.above, lifted.beside, clear=path[0] in CLEAR
                )
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
    """The entries of the top level, each where people look for it."""
    return sorted(entries, key=lambda entry: _ORDER.index(entry.key))
