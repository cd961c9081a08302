"""Writing files so that nothing half-written is ever left behind."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from slurmgen.errors import UnavailableError, UsageError


def write_atomically(path: Path, text: str) -> None:
    """Replace the file `path` by `text`, or leave it as it was.

    A symlink stays and its target is replaced; a file that exists keeps its mode. What is
    no file (a device, a pipe) is written to. Raises UsageError for a folder,
    UnavailableError where it can't be written.
    """
    try:
        _write(path, text.encode(errors="surrogateescape"))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnavailableError(
            f"cannot write {path}: {error.strerror}", fix="check the folder and its permissions"
        ) from error


def _write(path: Path, content: bytes) -> None:
    try:
        present = path.stat()
    except FileNotFoundError:
        present = None
    if present is not None and stat.S_ISDIR(present.st_mode):
        raise UsageError(f"{path} is a folder", fix=f"name a file, say {path / 'job.sbatch'}")
    stream = None if present is None else _open_stream(path, present)
    if stream is not None:
        with os.fdopen(stream, "wb") as file:
            file.write(content)
        return
    _replace(Path(os.path.realpath(path)), content, present)


def _open_stream(path: Path, present: os.stat_result) -> int | None:
    """What to write to in place, opened: our own output or no file at all; None for a file.

    /dev/stdout may be a file that a shell appends to: another one must not take its place.
    """
    for number in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(present, os.fstat(number)):
                return os.dup(number)
    if stat.S_ISREG(present.st_mode):
        return None
    return os.open(path, os.O_WRONLY | os.O_NOCTTY)


def _replace(target: Path, content: bytes, present: os.stat_result | None) -> None:
    temporary = target.parent / f".slurmgen-{os.urandom(6).hex()}.tmp"
    mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    number = os.open(temporary, mode, 0o666)
    try:
        with os.fdopen(number, "wb") as file:
            if present is not None:
                # Somebody else's file stays theirs where that is allowed (as root).
                with contextlib.suppress(OSError):
                    os.fchown(number, present.st_uid, present.st_gid)
                os.fchmod(number, stat.S_IMODE(present.st_mode))
            file.write(content)
            file.flush()
            os.fsync(number)
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
