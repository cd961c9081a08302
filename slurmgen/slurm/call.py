"""Running one of Slurm's programs, and what is said where it can't answer."""

from __future__ import annotations

import subprocess
from typing import IO, TYPE_CHECKING

from slurmgen.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_INSTALL = (
    "run it on a login node of the cluster; without Slurm, `slurmgen run JOB` runs the job on "
    "this machine and `slurmgen sandbox up` starts a real Slurm here"
)
# sbatch retries for minutes against a dead controller; a person has given up by then.
TIMEOUT = 120


def call(
    command: Sequence[str],
    environment: Mapping[str, str],
    stdin: IO[bytes] | None = None,
    *,
    timeout: float = TIMEOUT,
) -> subprocess.CompletedProcess[str]:
    """One of Slurm's programs and what it said; raises UnavailableError where it can't answer."""
    try:
        return subprocess.run(
            list(command),
            stdin=stdin or subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=dict(environment),
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError:
        raise UnavailableError(f"{command[0]} is not on PATH", fix=_INSTALL) from None
    except OSError as error:
        raise UnavailableError(
            f"cannot run {command[0]}: {error.strerror}", fix=_INSTALL
        ) from error
    except subprocess.TimeoutExpired:
        raise UnavailableError(
            f"{command[0]} gave no answer for {timeout:g} s",
            fix="look with squeue whether the job was taken before you submit it again",
        ) from None
