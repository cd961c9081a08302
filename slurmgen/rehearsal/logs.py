"""Where a job's logs would go: the rehearsal keeps them to itself, so this is looked at here."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.errors import Refusal
from slurmgen.rehearsal.fault import Fault
from slurmgen.spec.filename import log_directory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.request import Request


def check(request: Request, *, job_name: str) -> Iterator[Fault]:
    """Faults of --output and --error that keep Slurm from writing there."""
    start = Path(request.value("chdir") or ".")
    for option in ("output", "error"):
        directive = request.directive(option)
        pattern = request.value(option)
        if directive is None or pattern is None:
            continue
        if "$" in pattern or pattern.startswith("~"):
            yield Fault(
                "log-literal",
                f"--{option}={pattern} is no shell word: Slurm writes to a file of that very name",
                "sbatch expands no variables and no ~ in directives"
                + (", and the folder ~ is not there" if pattern.startswith("~") else ""),
                "write %j for the job's id, %x for its name, and a path from the folder it is "
                "submitted in",
                line=directive.line,
            )
            continue
        try:
            folder, _ = log_directory(pattern, job_name=job_name, user=getpass.getuser())
        except Refusal:
            continue
        if folder is not None and not (start / folder).is_dir():
            yield Fault(
                "log-folder-missing",
                f"there is no folder {folder} for --{option}",
                "up to Slurm 22.05 the job then ends at its start, without a log",
                f"mkdir -p {folder} before sbatch; the script is too late",
                line=directive.line,
            )
