"""slurmgen import: an existing batch script as a job file."""

from __future__ import annotations

import os
from pathlib import Path

from slurmgen.cli import report
from slurmgen.errors import EXIT_OK, UsageError
from slurmgen.files import read_bytes
from slurmgen.importer import NotImportable, import_script
from slurmgen.lint import inputs
from slurmgen.script.pipeline import job_file_of, read_stdin

_STDIN = "-"
# What sbatch calls a job whose script it reads from standard input.
_STDIN_JOB = "sbatch"


def run(script: str, *, fix: bool = False) -> int:
    """Print the job file of `script` (`-`: standard input); notes go to stderr.

    fix: first mend what lint can mend, in the text; the file is not changed.
    Raises UsageError for what is no batch script, or can't be read.
    """
    shown = "<stdin>" if script == _STDIN else os.fsencode(script).decode(errors="replace")
    try:
        text = inputs.decode(_read(script, shown))
    except inputs.NotABatchScript as problem:
        raise UsageError(f"{shown}: not a batch script: {problem}") from None
    if fix:
        text = _fixed(text, shown, None if script == _STDIN else Path(script).parent)
    name = _STDIN_JOB if script == _STDIN else Path(shown).name
    try:
        imported = import_script(text, name=name)
    except NotImportable as problem:
        raise UsageError(f"{shown}: cannot become a job file: {problem}") from None
    report.out(imported.text)
    for note in imported.notes:
        report.note(f"{shown}:{note.line}: {note.text}")
    beside = None if script == _STDIN else job_file_of(Path(script), text)
    if beside is not None:
        report.note(f"{shown}: it was rendered from {beside}, which has its comments too")
    return EXIT_OK


def _read(script: str, shown: str) -> bytes:
    if script == _STDIN:
        return read_stdin()
    try:
        return read_bytes(script)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {shown}: {reason}") from error


def _fixed(text: str, shown: str, folder: Path | None) -> str:
    """The text with every fix of lint made."""
    from slurmgen.lint import engine, fixes, registry
    from slurmgen.lint.job import load

    rules = registry.choose()
    return fixes.fixed(
        text,
        lambda text: engine.check(load(shown, text, folder=folder), rules).diagnostics,
        lambda text: len(load(shown, text, folder=folder).script.shell.errors),
    )
