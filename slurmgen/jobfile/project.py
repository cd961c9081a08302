"""The folders around a job file: where slurmgen was called, the user's own, and the project.

A project has its own `templates/` and `clusters/`.
"""

from __future__ import annotations

import os
from pathlib import Path

from slurmgen.errors import UnavailableError
from slurmgen.resources import templates_dir


def working_folder() -> Path:
    """Where slurmgen was called; raises UnavailableError if that is no folder any more."""
    try:
        return Path.cwd()
    except OSError as error:
        raise UnavailableError(
            f"cannot find the working folder: {error.strerror}", fix="cd to one that exists"
        ) from error


def home_folder() -> Path:
    """The user's own folder; raises UnavailableError if neither HOME nor the system names one."""
    try:
        return Path.home()
    except RuntimeError:
        raise UnavailableError(
            "the user has no home folder: HOME is not set, and the system knows none",
            fix="set HOME",
        ) from None


def project_root(job_file: Path) -> Path:
    """The nearest folder above `job_file` that is a repository, else its own folder.

    Raises UnavailableError if the file is named from a working folder that is gone.
    """
    # A path that can't be followed (a loop of links) is left as it is: reading it says why.
    folder = Path(os.path.realpath(working_folder() / job_file)).parent
    for candidate in (folder, *folder.parents):
        # Of a folder that may not be searched, nobody can say that it is one.
        if os.path.exists(candidate / ".git") or os.path.exists(candidate / "pyproject.toml"):
            return candidate
    return folder


def project_templates(root: Path) -> Path | None:
    """The project's own templates, or None; slurmgen's checkout has only the built-in ones."""
    folder = root / "templates"
    return folder if os.path.isdir(folder) and folder != templates_dir() else None
