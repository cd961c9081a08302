"""The end of a sandbox: nothing of it runs any more, and nothing of it is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.errors import UsageError
from slurmgen.sandbox.folder import Folder
from slurmgen.sandbox.processes import kill_processes

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_NAME = "default"


def remove(name: str = DEFAULT_NAME, *, directory: Path | None = None) -> bool:
    """Stop the sandbox `name` or clear away its remains; false where there was nothing."""
    folder = Folder.of(name, directory)
    with folder.locked():
        refuse_foreign(name, folder)
        return clear(folder)


def refuse_foreign(name: str, folder: Folder) -> None:
    """Raises UsageError for a sandbox that another machine has started."""
    host = folder.foreign_host()
    if host is not None:
        raise UsageError(
            f"sandbox {name!r} was started on {host}",
            fix="go there, or use another --name",
        )


def clear(folder: Folder) -> bool:
    """End what runs in the folder, and remove it; false where there was nothing."""
    ended = kill_processes(folder.path)
    existed = folder.path.exists()
    folder.remove()
    return existed or ended > 0
