"""Where profiles are found, in this order, and how one is read.

A path; the project's `clusters/`; the user's own (`$XDG_CONFIG_HOME/slurmgen/clusters`, or
`~/.config/slurmgen/clusters`); the built-in ones. Only the profile in use is read.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.cluster import generic
from slurmgen.errors import UsageError
from slurmgen.resources import configs_dir

if TYPE_CHECKING:
    from slurmgen.cluster.profile import Profile


def load_profile(name: str, project: Path) -> Profile:
    """The profile called `name`: a path ending in .yaml, or a name.

    Raises UsageError for an unknown name, InvalidInput for a file with errors.
    """
    path = find_profile(name, project)
    if path == builtin_folder() / f"{generic.NAME}.yaml":
        return generic.PROFILE
    return read_profile(path)


def find_profile(name: str, project: Path) -> Path:
    """The file of a profile."""
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return Path(name)
    for folder in _folders(project):
        path = folder / f"{name}.yaml"
        if os.path.isfile(path):
            return path
    from difflib import get_close_matches

    known = sorted(profile_files(project))
    close = get_close_matches(name.lower(), known, n=3)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    raise UsageError(
        f'there is no cluster profile "{name[:60]}"',
        fix=f"{meant}known: {', '.join(known)} (slurmgen cluster list)",
    )


def profile_files(project: Path) -> dict[str, Path]:
    """The file of every profile by its name; of two the one that would be used."""
    found: dict[str, Path] = {}
    for folder in _folders(project):
        for path in sorted(folder.glob("*.yaml")) if os.path.isdir(folder) else ():
            found.setdefault(path.stem, path)
    return found


def builtin_folder() -> Path:
    """The folder of the built-in profiles."""
    return configs_dir() / "clusters"


def _folders(project: Path) -> tuple[Path, ...]:
    return project / "clusters", _users_folder(), builtin_folder()


def _users_folder() -> Path:
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG base directory specification: a relative path is to be ignored.
    base = configured if configured.startswith("/") else os.path.expanduser("~/.config")
    return Path(base) / "slurmgen" / "clusters"


@cache
def read_profile(path: Path) -> Profile:
    """The profile in a file; raises InvalidInput with the place of every error in it."""
    from slurmgen.cluster.profile import Profile
    from slurmgen.jobfile.explain import validate
    from slurmgen.jobfile.source import parse_yaml, read_text

    source = parse_yaml(read_text(path), str(path))
    profile: Profile = validate(Profile, {"name": path.stem, **source.data}, source)
    return profile
