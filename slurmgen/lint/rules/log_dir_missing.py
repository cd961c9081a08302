"""The folder of a log file does not exist.

## What it does

Finds `--output` and `--error` in a folder that is neither beside the script nor in a folder above
it. Only relative paths are judged, and up to the first pattern that stands for a folder. A `mkdir`
in the script comes too late: the log is opened before its first line runs. A warning where
nobody has said which Slurm it is.

## Why is this bad

Up to 22.05 Slurm does not make the folder: the job ends at its start with JobLaunchFailure (0:53),
and no log says why. From 23.02 on Slurm makes it.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --output=logs/%j.out
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --output=%j.out
#SBATCH --time=2:00:00
hostname
```

## References

- sbatch(1), --output
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.options import sound, value_place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.job import Job

NAME = "log-dir-missing"
CODE = "SG119"
SEVERITY = ERROR
UNTIL = "23.02"
NEEDS = "a script in a folder, not from the standard input"

# A script is often submitted from a folder above its own.
_FOLDERS_ABOVE = 4


def check(job: Job) -> Iterator[Finding]:
    if job.folder is None or job.is_submitter:
        return
    missing: dict[str, list[Place]] = {}
    for directive in sound(job, "output", "error"):
        folder = _literal_folder(directive.value or "")
        if folder and not _exists(job, folder):
            missing.setdefault(folder, []).append(value_place(job, directive))
    for folder, places in missing.items():
        makes = any(
            folder.rstrip("/") in word.text.rstrip("/")
            for command in job.commands("mkdir")
            for word in command.words[1:]
        )
        yield Finding(
            places[0],
            f'there is no folder "{folder}" for the log',
            "before 23.02 the job ends at its start, without a log"
            + ("; the script's own mkdir comes too late" if makes else ""),
            f"make it before the job is submitted: mkdir -p {folder}",
            # Most clusters are past it by now.
            WARNING if job.slurm is None else None,
            tuple(places[1:]),
        )


def _literal_folder(path: str) -> str:
    """The folder of a relative path, up to the first pattern in it; empty without one."""
    if path.startswith(("/", "~")) or "\\" in path:
        return ""
    folder = path.rpartition("/")[0]
    pattern = re.search("%", folder)
    if pattern is not None:
        folder = folder[: pattern.start()].rpartition("/")[0]
    return folder


def _exists(job: Job, folder: str) -> bool:
    assert job.folder is not None
    here = job.folder.absolute()
    changed = job.request.value("chdir")
    if changed is not None:
        if changed.startswith("/") and not Path(changed).is_dir():
            # A folder of the cluster, perhaps.
            return True
        here = here / changed
    try:
        return any((above / folder).is_dir() for above in (here, *here.parents[:_FOLDERS_ABOVE]))
    except (OSError, ValueError):
        return True
