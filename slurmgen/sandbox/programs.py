"""Programs: where Slurm and munge are, and which version of Slurm."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import EXIT_UNAVAILABLE, UnavailableError
from slurmgen.sandbox import deadlines, release

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Debian keeps the daemons in sbin, which an ordinary user's PATH leaves out.
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_DAEMONS = ("slurmctld", "slurmd", "munged")
_CLIENTS = ("sinfo", "sbatch", "srun", "scontrol")
# What makes networks and enters them.
_NETWORK = {"ip": "iproute2", "nsenter": "util-linux"}
_INSTALL = "apt-get install slurmctld slurmd slurm-client munge"


class Programs(NamedTuple):
    """The absolute paths of what a sandbox starts, and Slurm's version (`22.05.8`).

    unpacked: what `release.command()` is to show for them to be there; empty for what this
    machine has itself.
    """

    slurmctld: str
    slurmd: str
    munged: str
    sinfo: str
    version: str
    unpacked: str = ""

    @property
    def release(self) -> tuple[int, int]:
        """Year and month of the release, to compare with what changed when."""
        year, month = self.version.split(".")[:2]
        return int(year), int(month)


class NetworkTools(NamedTuple):
    """The absolute paths of what makes networks and enters them."""

    ip: str
    nsenter: str


def find_network_tools() -> NetworkTools:
    """`ip` and `nsenter`; `UnavailableError` lists every missing one."""
    found = _found(_NETWORK)
    missing = [name for name, where in found.items() if where is None]
    if missing:
        raise UnavailableError(
            f"--netns takes {' and '.join(missing)}, which this machine doesn't have",
            fix=f"apt-get install {' '.join(_NETWORK[name] for name in missing)}",
        )
    return NetworkTools(**{name: where for name, where in found.items() if where is not None})


def find_programs(slurm: str = "") -> Programs:
    """Slurm's and munge's programs; `UnavailableError` lists every missing one.

    slurm: a version (`24.11`), which is unpacked first where this machine has another, or none;
    UsageError where it can't be had. By default what this machine has.
    """
    found = _found((*_DAEMONS, *_CLIENTS))
    missing = [name for name, where in found.items() if where is None]
    if not missing:
        own = _programs(found, os.environ.get(release.ENTERED, ""))
        if not slurm or own.version.startswith(f"{slurm}."):
            return own
    elif not slurm:
        raise UnavailableError(
            f"Slurm is not installed on this machine: no {', '.join(missing)}", fix=_INSTALL
        )
    release.unpacked(slurm)
    return _programs(release.PROGRAMS, slurm)


def _found(names: Iterable[str]) -> dict[str, str | None]:
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SBIN))
    return {name: shutil.which(name, path=path) for name in names}


def _programs(found: Mapping[str, str | None], unpacked: str) -> Programs:
    paths = {name: where for name, where in found.items() if where is not None}
    return Programs(
        slurmctld=paths["slurmctld"],
        slurmd=paths["slurmd"],
        munged=paths["munged"],
        sinfo=paths["sinfo"],
        version=_version(paths["slurmctld"], unpacked),
        unpacked=unpacked,
    )


def _version(slurmctld: str, unpacked: str) -> str:
    try:
        answer = subprocess.run(
            release.command(unpacked, [slurmctld, "-V"]),
            capture_output=True,
            text=True,
            timeout=deadlines.VERSION,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{slurmctld} does not run: {error}", fix=_INSTALL) from error
    match = re.search(r"\b\d+\.\d+\.\S+", answer.stdout)
    if match is None:
        said = (answer.stdout + answer.stderr).strip()
        if answer.returncode == EXIT_UNAVAILABLE and unpacked:
            raise UnavailableError(said.removeprefix("slurmgen: "), fix=release.MOUNTS)
        raise UnavailableError(f"{slurmctld} -V named no version: {said!r}", fix=_INSTALL)
    return match.group()
