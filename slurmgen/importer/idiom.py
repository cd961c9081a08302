"""A script whose code is what a job file's own keys say -> that job file.

The rendered script has more directives than the original where Slurm's default is written
out (`--nodes=1`), and its own launch block. It is taken only where sbatch reads the same
counts from both, and each option that is given is there with the same value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.importer import check, program, rendered
from slurmgen.importer.code_as_keys import Parts, entries
from slurmgen.importer.directives import LiftedKey
from slurmgen.importer.document import directive_entries, in_order
from slurmgen.importer.keys import Key
from slurmgen.importer.started_program import NotIdiomaticError
from slurmgen.importer.yaml_text import Entry, is_printable, write
from slurmgen.launchers import TASKS
from slurmgen.reading.script import BatchScript

if TYPE_CHECKING:
    from slurmgen.importer.directives import Lifted

# Bash by itself, with options of `set` at most.
_BASH = re.compile(r"#![ \t]*(?:/usr)?/bin/(?:env[ \t]+)?bash(?:[ \t]+-[eux]+)?[ \t]*")


def idiomatic(
    script: BatchScript, lifted: Lifted, *, name: str
) -> tuple[str, list[tuple[int, str]]]:
    """The job file and notes on it.

    Raises NotIdiomaticError where the code is to be kept as it stands.
    """
    if lifted.kept or script.block.translated:
        raise NotIdiomaticError("there are directives without keys")
    if not _BASH.fullmatch(script.lines[0]):
        raise NotIdiomaticError("it is run by another interpreter than Bash by itself")
    own = rendered.is_rendered(script)
    parts = rendered.read(script, lifted) if own else program.read(script, lifted.rest_line)
    if not all(map(is_printable, sum(parts.above.values(), ()))):
        raise NotIdiomaticError("a comment holds what YAML can't")
    text = _job_file(script, lifted, parts, name)
    try:
        after = check.script_of(text)
    except check.RefusedError as error:
        raise NotIdiomaticError(f"it would be refused: {error}") from None
    is_same = (
        rendered.is_same(script.text, after) if own else _is_same(script, BatchScript(after), name)
    )
    if not is_same:
        raise NotIdiomaticError("rendered again it would ask Slurm for something else")
    return text, [*lifted.notes, *parts.dropped]


def _job_file(script: BatchScript, lifted: Lifted, parts: Parts, name: str) -> str:
    keys = list(lifted.keys)
    if not any(key.key.path == ("job_name",) for key in keys):
        keys.insert(0, LiftedKey(Key(("job_name",), name)))
    if not script.requests[0].gives("cpus-per-task"):
        keys.append(LiftedKey(Key(("cpus_per_task",), "default")))
    found: list[Entry] = []
    orphans: tuple[str, ...] = ()
    for entry in directive_entries(keys):
        beside = (entry.beside,) if entry.beside else ()
        if _follows(entry, script, parts):
            orphans += (*entry.above, *beside)
        else:
            found.append(entry._replace(above=(*orphans, *entry.above)))
            orphans = ()
    if orphans:
        found[-1] = found[-1]._replace(above=(*found[-1].above, *orphans))
    return write(
        in_order([*found, *entries(parts)]), top=lifted.top, end=parts.above.get("end", ())
    )


def _follows(entry: Entry, script: BatchScript, parts: Parts) -> bool:
    """Whether the key says what follows from the others anyway, and is rendered all the same."""
    request = script.requests[0]
    if entry.key == "nodes":
        return entry.value == "1"
    if entry.key == "ntasks_per_node":
        if parts.launcher.ranks != TASKS or request.gives("ntasks") or entry.value == "1":
            return True
        return bool(request.node_gpus)
    return False


def _is_same(before: BatchScript, after: BatchScript, name: str) -> bool:
    """Whether both ask for the same, what is written out besides being Slurm's default."""
    first, second = check.effective(before.block), check.effective(after.block)
    asked, asks = before.requests[0], after.requests[0]
    defaults: dict[str, object] = {"job-name": name, "nodes": asked.total_nodes}
    # Else Slurm may well put 4 and 1 of 5 tasks on two nodes.
    if asked.total_nodes in (1, asked.total_tasks):
        defaults["ntasks-per-node"] = asked.tasks_per_node
    for key, value in second.items():
        if key not in first and (key[1] not in defaults or defaults[key[1]] != value):
            return False
    if any(key not in second or second[key] != value for key, value in first.items()):
        return False
    return all(
        getattr(asked, count) == getattr(asks, count)
        for count in ("total_nodes", "total_tasks", "tasks_per_node", "node_gpus", "cpus_per_task")
    )
