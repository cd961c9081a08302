"""The project a job file belongs to: its own `templates/` and `clusters/`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.resources import templates_dir

if TYPE_CHECKING:
    from pathlib import Path


def project_root(job_file: Path) -> Path:
    """The nearest folder above `job_file` that is a repository, else its own folder."""
    folder = job_file.resolve().parent
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists() or (candidate / "pyproject.toml").exists():
            return candidate
    return folder


def project_templates(root: Path) -> Path | None:
    """The project's own templates, or None; slurmgen's checkout has only the built-in ones."""
    folder = root / "templates"
    return folder if folder.is_dir() and folder != templates_dir() else None
