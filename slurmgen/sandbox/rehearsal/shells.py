"""What the shells of the job showed: variables that were empty, lines that they gave up. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.reading.script import BatchScript
from slurmgen.reading.shell.words import ARITHMETIC, BATCH, VARIABLE
from slurmgen.sandbox.rehearsal.fault import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slurmgen.reading.shell.words import Piece
    from slurmgen.sandbox.rehearsal.records import Note
    from slurmgen.sandbox.rehearsal.run import Job
    from slurmgen.slurm.request import Request

# Errors after which Bash gives up a line, and goes on with the next one.
_GIVEN_UP = re.compile(
    r"slurm_script: line (?P<line>\d+): (?P<text>.*(?:value too great for base|division by 0|"
    r"operand expected|bad substitution|ambiguous redirect|unary operator expected|"
    r"integer expression expected).*)"
)
# What only shows a variable, or asks whether there is one.
_SHOWING = frozenset("echo printf : [ [[ test logger export declare typeset local unset".split())
_OPTION = {"ARRAY": "array", "CPUS_PER_TASK": "cpus-per-task", "GPUS_PER_NODE": "gpus-per-node"}


def check(request: Request, job: Job, notes: Sequence[Note]) -> Iterator[Fault]:
    """request: of the job's first component."""
    yield from _given_up(job)
    yield from _unset(request, notes)
    for note in notes:
        address = str(note.content.get("address") or "")
        if note.kind == "launcher" and any(character.isspace() for character in address.strip()):
            yield several_addresses(address)
            return


def several_addresses(address: str) -> Fault:
    return Fault(
        "address-wrong",
        f"MASTER_ADDR is {address!r}, which is no address",
        "`hostname -I` prints every address of the machine, with blanks between them",
        'write $(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
    )


def _given_up(job: Job) -> Iterator[Fault]:
    found = _GIVEN_UP.search(job.log)
    if found is None:
        return
    if "too great for base" in found["text"]:
        yield Fault(
            "number-octal",
            f"Bash gives up the line: {found['text']}",
            "in $(( )) a number that begins with 0 is octal: one in ten job ids ends so",
            "write $((10000 + SLURM_JOB_ID % 10000)), or 10# before the number",
            line=int(found["line"]),
        )
        return
    yield Fault(
        "line-given-up",
        f"Bash gives up the line: {found['text']}",
        "the script goes on without what it was to do",
        "look at the variables in it: one may be empty",
        line=int(found["line"]),
    )


def _unset(request: Request, notes: Sequence[Note]) -> Iterator[Fault]:
    seen = set()
    for note in notes:
        if note.kind != "unset" or not note.script.endswith("/slurm_script"):
            continue
        name, _, command = str(note.content["text"]).partition(" ")
        if name in seen or not _expands(command, name):
            continue
        seen.add(name)
        option = next((option for part, option in _OPTION.items() if part in name), None)
        is_asked = option is not None and not request.gives(option)
        yield Fault(
            "variable-unset",
            f"Slurm has not set {name}: an empty word, or none, takes its place",
            f"it is there only with --{option}" if is_asked else "this job has no such variable",
            (f"give --{option}, or " if is_asked else "") + f"write a default: ${{{name}:-0}}",
            line=note.line,
            severity=WARNING,
        )


def _expands(command: str, name: str) -> bool:
    """Whether this very shell puts the variable into a word of a command that uses it."""
    shell = BatchScript(command).shell
    return any(
        _is_bare(piece, name)
        for found in shell.commands
        if found.words and found.words[0].text not in _SHOWING
        for word in found.words
        for piece in word.expansions(BATCH)
    )


def _is_bare(piece: Piece, name: str) -> bool:
    if piece.kind == VARIABLE:
        return piece.name == name and not piece.operator
    return (
        piece.kind == ARITHMETIC
        and re.search(rf"\$\{{?{name}\b(?!\s*:?[-=?+])", piece.text) is not None
    )
