"""The text of a batch script -> the text of a job file, and what there is to say about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.importer import check, stamped
from slurmgen.importer.directives import Lifted, lift, rendered_header
from slurmgen.importer.document import directive_entries, in_order
from slurmgen.importer.started_program import NotIdiomaticError
from slurmgen.importer.yaml_text import Entry, write
from slurmgen.reading.script import BatchScript
from slurmgen.script import stamp, stamp_reader
from slurmgen.script.render import MAX_SCRIPT_BYTES, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.script.stamp_reader import Stamp

_BASH = "#!/bin/bash"
# What is longer than this is generated, and nobody would read it as a job file's keys.
_LONGEST_IDIOM = 65_536
# Room for the header that a rendered script has, with its stamp.
_HEADER_BYTES = 4096


class Note(NamedTuple):
    """Something that a person should know, and the line of the script it is about."""

    line: int
    text: str


class Imported(NamedTuple):
    """A job file's text; notes on what its keys could not say."""

    text: str
    notes: tuple[Note, ...]


class NotImportable(ValueError):
    """A script that no job file can hold; the message says why."""


def import_script(text: str, *, name: str) -> Imported:
    """The job file of a script.

    name: the script's file name, which is the job's name where no directive gives one.
    Raises NotImportable where no job file can hold the script.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        byte = ord(text[error.start]) & 0xFF
        raise NotImportable(
            f"byte 0x{byte:02x} in line {line} is not UTF-8 text, and a job file is"
        ) from None
    if size > MAX_SCRIPT_BYTES - _HEADER_BYTES:
        raise NotImportable("it is larger than sbatch takes, which is 4 MiB")
    notes: list[Note] = []
    text = _plain(text, notes)
    said = stamp_reader.read(text)
    if said is not None:
        job = stamped.job_file(text, said)
        if job is not None:
            return Imported(job, tuple(_of_stamp(text, said)))
        line = stamp.line_of(text)
        notes.append(Note(line, f"changed since it was rendered from {one_line(said.source)}"))
    script = BatchScript(text)
    if script.shebang is None:
        notes.append(Note(1, f"sbatch refuses a script without #!; the job's begins with {_BASH}"))
    lifted = lift(script)
    try:
        if len(text) > _LONGEST_IDIOM:
            raise NotIdiomaticError("it is too long for keys")
        from slurmgen.importer.idiom import idiomatic

        job, more = idiomatic(script, lifted, name=name)
        return Imported(job, tuple(sorted([*notes, *(Note(*note) for note in more)])))
    except NotIdiomaticError as error:
        why = str(error)
    for attempt in (lifted, _nothing_lifted(script)):
        job = _kept(script, attempt)
        after = check.rendered(job)
        if after is not None and _is_same(script, attempt, after):
            notes += [Note(*note) for note in attempt.notes]
            notes.append(Note(attempt.rest_line, f"{_KEPT}: {why}"))
            return Imported(job, tuple(sorted(notes)))
    raise NotImportable("no job file can hold it as it stands")


_KEPT = "kept as it stands from here, under `script`"


def _of_stamp(text: str, said: Stamp) -> Iterator[Note]:
    if said.overrides:
        keys = ", ".join(map(one_line, said.overrides))
        yield Note(stamp.line_of(text), f"rendered with --set of {keys}, which is in the job file")


def _plain(text: str, notes: list[Note]) -> str:
    """The text without what sbatch refuses a whole script for."""
    if text.startswith("\ufeff"):
        notes.append(Note(1, "sbatch refuses a script with a byte order mark; it is left out"))
        text = text.removeprefix("\ufeff")
    # The last line may have lost its end.
    if text.endswith("\r"):
        text += "\n"
    if "\r\n" in text:
        line = text[: text.index("\r\n")].count("\n") + 1
        notes.append(Note(line, "sbatch refuses DOS line breaks; they are plain ones now"))
        # `\r\r\n` would leave one behind.
        while "\r\n" in text:
            text = text.replace("\r\n", "\n")
    return text


def _nothing_lifted(script: BatchScript) -> Lifted:
    first = rendered_header(script.lines)
    notes = ((first + 1, "the directives are kept as they stand"),)
    return Lifted((), (), (), tuple(script.lines[first:]), notes, first + 1)


def _kept(script: BatchScript, lifted: Lifted) -> str:
    """The job file that keeps the script's code as it stands."""
    entries = directive_entries(lifted.keys)
    entries.append(Entry("script", own_script(script, lifted)))
    return write(in_order(entries), top=lifted.top)


def own_script(script: BatchScript, lifted: Lifted) -> str:
    """The text under `script`: an interpreter other than Bash, directives without keys, code."""
    body = "\n".join([*lifted.kept, *lifted.rest])
    if not lifted.kept:
        body = body.lstrip("\n")
    first = script.lines[0] if script.lines[0].startswith("#!") else _BASH
    if first != _BASH or body.startswith("#!"):
        body = f"{first}\n{body}"
    if not body.strip():
        body = "# There is nothing below the directives."
    return body if body.endswith("\n") else body + "\n"


def _is_same(script: BatchScript, lifted: Lifted, after: str) -> bool:
    """Whether the rendered script asks for the same and goes on with the same code."""
    code = "\n".join(lifted.rest).strip("\n")
    code = code if code.strip() else ""
    return after.rstrip("\n").endswith(code) and check.asks_the_same(script, BatchScript(after))
