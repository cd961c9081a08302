"""Where profiles are found: a path, the project's `clusters/`, then the built-in ones."""

from __future__ import annotations

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
    if path == configs_dir() / "clusters" / f"{generic.NAME}.yaml":
        return generic.PROFILE
    return _read(path)


def find_profile(name: str, project: Path) -> Path:
    """The file of a profile."""
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return Path(name)
    folders = (project / "clusters", configs_dir() / "clusters")
    for folder in folders:
        path = folder / f"{name}.yaml"
        try:
            if path.is_file():
                return path
        except (OSError, ValueError):  # too long for a file's name, or not text that can be one
            break
    from difflib import get_close_matches

    known = sorted({p.stem for folder in folders if folder.is_dir() for p in folder.glob("*.yaml")})
    close = get_close_matches(name, known, n=1)
    fix = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
    raise UsageError(f'there is no cluster profile "{name[:60]}"', fix=fix)


@cache
def _read(path: Path) -> Profile:
    from slurmgen.cluster.profile import Profile
    from slurmgen.source import parse_yaml, read_text
    from slurmgen.spec.explain import validate

    source = parse_yaml(read_text(path), str(path))
    profile: Profile = validate(Profile, {"name": path.stem, **source.data}, source)
    return profile
