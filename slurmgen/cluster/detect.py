"""Which cluster one stands on, by what the profiles say of their variables and host names.

For `submit` and `cluster list`. Rendering never asks: a script must not depend on where
it was rendered.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.cluster.load import profile_files, read_profile
from slurmgen.errors import UsageError
from slurmgen.jobfile.source import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from slurmgen.cluster.profile import Detection


class Recognised(NamedTuple):
    """A profile's name, and by what it was recognised: `CC_CLUSTER=fir`, or a host name."""

    name: str
    sign: str


def recognise(project: Path, environment: Mapping[str, str], hostname: str) -> Recognised | None:
    """The profile of this machine, None where none says that it is here.

    Raises UsageError where two do, InvalidInput for a profile with errors.
    """
    found = candidates(project, environment, hostname)
    if len(found) > 1:
        both = " and ".join(f"{name} ({sign})" for name, sign in found)
        names = " or ".join(f"--cluster {name}" for name, _ in found)
        raise UsageError(f"this may be {both}", fix=f"say {names}")
    return found[0] if found else None


def candidates(project: Path, environment: Mapping[str, str], hostname: str) -> list[Recognised]:
    """Every profile that takes this machine for its own."""
    found = []
    for name, path in sorted(profile_files(project).items()):
        # Most say nothing of it, and need not be read as a whole.
        if "\ndetect:" not in f"\n{read_text(path)}":
            continue
        seen = sign(read_profile(path).detect, environment, hostname)
        if seen is not None:
            found.append(Recognised(name, seen))
    return found


def sign(detection: Detection | None, environment: Mapping[str, str], hostname: str) -> str | None:
    """By what a profile takes this machine for its own; None where it doesn't."""
    if detection is None:
        return None
    for variable, patterns in detection.env.items():
        value = environment.get(variable, "")
        if value and any(fnmatchcase(value, pattern) for pattern in patterns):
            return f"{variable}={value}"
    if any(fnmatchcase(hostname, pattern) for pattern in detection.hosts):
        return f"host {hostname}"
    return None
