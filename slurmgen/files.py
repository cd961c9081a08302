"""Reading files that may be anything, and writing so that nothing half-written is left behind."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
from pathlib import Path

from slurmgen.errors import UnavailableError, UsageError

# Eight times what sbatch takes of a script; /dev/zero has no end.
MOST_BYTES = 32 * 1024 * 1024
# For the first byte of a pipe: what writes to it may have to start.
_PIPE_SECONDS = 60


def read_bytes(path: str | Path) -> bytes:
    """The whole file; raises OSError, also if it has no end or is a pipe that nobody writes to."""
    # Opened without waiting for somebody who writes.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if stat.S_ISFIFO(os.fstat(number).st_mode):
            poll = select.poll()
            poll.register(number, select.POLLIN)
            if not poll.poll(_PIPE_SECONDS * 1000):
                what = f"nothing came through the pipe for {_PIPE_SECONDS} s"
                raise OSError(errno.ETIMEDOUT, what, str(path))
        os.set_blocking(number, True)
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        what = f"it has more than {MOST_BYTES >> 20} MiB, and is no job file or script"
        raise OSError(errno.EFBIG, what, str(path))
    return content


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
