"""What there is to lint: files by name, and the batch scripts and job files in folders."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_JOB_FILES = (".yaml", ".yml")
# By their name alone; the others need a directive.
_BATCH_SCRIPTS = (".sbatch", ".slurm")
_SCRIPTS = (
    *_BATCH_SCRIPTS, ".sh", ".bash", ".zsh", ".ksh", ".csh", ".tcsh", ".job", ".sub", ".submit",
    ".batch", ".cmd", ".run", ".scr", ".q", ".py", ".pl", ".lua", ".r", ".jl", "",
)  # fmt: skip
_SKIPPED = ("node_modules", "__pycache__")
# Longer than any directive block; a script is read whole only when it is linted.
_HEAD = 65_536

# Also what sbatch passes over, which is then a finding.
_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*SBATCH\b|^#sbatch\b", re.MULTILINE)
_UNDECODED = re.compile(r"[\udc80-\udcff]")
_CONTROL = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
_KEY = re.compile(rb"^([a-z_]+):", re.MULTILINE)


class NotABatchScript(ValueError):
    """A file that is none; the message says what it is instead."""


def is_job_file(path: str) -> bool:
    """Whether the name is that of a job file."""
    return path.endswith(_JOB_FILES)


def decode(raw: bytes) -> str:
    """The text of a batch script, its mark of order and its line ends kept.

    Raises NotABatchScript for what sbatch would not take for one, or would not take at all.
    """
    if not raw.strip():
        raise NotABatchScript("it is empty")
    if b"\0" in raw:
        raise NotABatchScript("it holds a NUL byte, and is no text")
    # Latin-1 in a remark is no fault to Slurm; the bytes are kept for --fix.
    text = raw.decode(errors="surrogateescape")
    if _is_binary(text):
        raise NotABatchScript("it is binary, and no text")
    if not _has_shebang(raw) and not _DIRECTIVE.search(raw):
        raise NotABatchScript("it has neither a first line with #! nor a line with #SBATCH")
    return text


def _is_binary(text: str) -> bool:
    """Whether bytes that are no UTF-8 stand beside control characters that no text has."""
    return bool(_UNDECODED.search(text)) and bool(_CONTROL.search(text))


def _has_shebang(raw: bytes) -> bool:
    return raw.removeprefix(b"\xef\xbb\xbf").startswith(b"#!")


def search(folder: Path) -> Iterator[tuple[Path, str]]:
    """The batch scripts and job files below `folder`, sorted, each with "".

    A folder that can't be listed is given with what is wrong. Hidden files and folders, and
    those that hold what others have written, are passed over; symlinks to folders too.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield folder, error.strerror or str(error)
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _SKIPPED:
            continue
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            if not (path / "pyvenv.cfg").exists():
                yield from search(path)
        elif _may_be_one(path):
            yield path, ""


def _may_be_one(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix not in _SCRIPTS and suffix not in _JOB_FILES:
        return False
    try:
        # A pipe would be waited for.
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        # Whoever lints the folder is told of what has the name of a batch script.
        return suffix in _BATCH_SCRIPTS
    if suffix in _JOB_FILES:
        return _is_job(head)
    if b"\0" in head:
        return False
    return bool(_DIRECTIVE.search(head)) or (suffix in _BATCH_SCRIPTS and _has_shebang(head))


def _is_job(head: bytes) -> bool:
    """Whether a YAML file has a job's keys: what runs, and something of what it needs."""
    keys = {key.decode() for key in _KEY.findall(head)}
    return bool(keys & {"command", "ddp", "script"}) and bool(keys & _RESOURCES)


_RESOURCES = frozenset(
    """
    nodes gpus_per_node ntasks ntasks_per_node nproc_per_node cpus_per_task cpus_per_gpu time
    launcher partition account
    """.split()
)
