"""Writing files so that nothing half-written is ever left behind."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from slurmgen.errors import UnavailableError

if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` by `text`, or leave it as it was; raises UnavailableError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(temporary, mode, 0o666), "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise UnavailableError(
            f"cannot write {path}: {error.strerror}", fix="check the folder and its permissions"
        ) from error
