"""Where a job's logs would go: the rehearsal keeps them in a folder of its own, by their names."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.errors import Refusal
from slurmgen.sandbox.rehearsal.fault import Fault
from slurmgen.slurm.grammars.array import parse_array
from slurmgen.slurm.grammars.filename import log_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slurmgen.slurm.request import Request


# What Slurm has for the index of a task where there is no array.
_NO_INDEX = "4294967294"


def check(request: Request, written: Sequence[str], *, job_name: str) -> Iterator[Fault]:
    """Faults of --output and --error that keep Slurm from writing there, or as it is meant.

    written: the names of the files that --output has become.
    """
    yield from _names(request, written)
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


def _names(request: Request, written: Sequence[str]) -> Iterator[Fault]:
    directive = request.directive("output")
    if directive is None or request.output == "/dev/null":
        return
    if request.array and len(written) == 1 and _tasks(request.array) > 1:
        yield Fault(
            "log-shared",
            f"all tasks of the array write to one file, {written[0]}",
            "they run at the same time and write over each other",
            "write %A_%a into the name",
            line=directive.line,
            severity=WARNING,
        )
    elif not request.array and any(_NO_INDEX in name for name in written):
        yield Fault(
            "log-misnamed",
            f"the log is called {written[0]}",
            f"%a is the index of an array's task, {_NO_INDEX} in a job that is no array",
            "write %j, or add --array",
            line=directive.line,
            severity=WARNING,
        )


def _tasks(array: str) -> int:
    try:
        return parse_array(array).tasks
    except Refusal:
        return 1
