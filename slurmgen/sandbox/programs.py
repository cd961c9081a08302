"""Programs: where Slurm and munge are on this machine, and which version of Slurm."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import NamedTuple

from slurmgen.errors import UnavailableError

# Debian keeps the daemons in sbin, which an ordinary user's PATH leaves out.
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_DAEMONS = ("slurmctld", "slurmd", "munged")
_CLIENTS = ("sinfo", "sbatch", "srun", "scontrol")
_INSTALL = "apt-get install slurmctld slurmd slurm-client munge"


class Programs(NamedTuple):
    """The absolute paths of what a sandbox starts, and Slurm's version (`22.05.8`)."""

    slurmctld: str
    slurmd: str
    munged: str
    sinfo: str
    version: str

    @property
    def release(self) -> tuple[int, int]:
        """Year and month of the release, to compare with what changed when."""
        year, month = self.version.split(".")[:2]
        return int(year), int(month)


def find_programs() -> Programs:
    """Slurm's and munge's programs; `UnavailableError` lists every missing one."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SBIN))
    found = {name: shutil.which(name, path=path) for name in (*_DAEMONS, *_CLIENTS)}
    missing = [name for name, where in found.items() if where is None]
    if missing:
        raise UnavailableError(
            f"Slurm is not installed on this machine: no {', '.join(missing)}", fix=_INSTALL
        )
    paths = {name: where for name, where in found.items() if where is not None}
    return Programs(
        slurmctld=paths["slurmctld"],
        slurmd=paths["slurmd"],
        munged=paths["munged"],
        sinfo=paths["sinfo"],
        version=_version(paths["slurmctld"]),
    )


def _version(slurmctld: str) -> str:
    try:
        answer = subprocess.run(
            [slurmctld, "-V"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{slurmctld} does not run: {error}", fix=_INSTALL) from error
    match = re.search(r"\b\d+\.\d+\.\S+", answer.stdout)
    if match is None:
        said = (answer.stdout + answer.stderr).strip()
        raise UnavailableError(f"{slurmctld} -V named no version: {said!r}", fix=_INSTALL)
    return match.group()
