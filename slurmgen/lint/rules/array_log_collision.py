"""All tasks of an array write to one log file.

## What it does

Finds `--output` and `--error` of an array without `%a` (or the id of the single job, `%j`) in the
name. The default, `slurm-%A_%a.out`, is fine.

## Why is this bad

The tasks run at the same time and write over each other, or each one empties the file when it
starts.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --array=0-9
#SBATCH --output=train-%A.log
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --array=0-9
#SBATCH --output=train-%A_%a.log
#SBATCH --time=2:00:00
hostname
```

## References

- sbatch(1), FILENAME PATTERN
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.errors import Refusal
from slurmgen.lint.facts.options import new_value, sound, value_place
from slurmgen.lint.finding import Finding
from slurmgen.slurm.grammars.array import parse_array

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "array-log-collision"
CODE = "SG120"
SEVERITY = WARNING

_TOKEN = re.compile(r"%(\d*)(.)")
# The job's own id and the task's index; every task has another.
_OF_ONE_TASK = frozenset("ajJ")


def check(job: Job) -> Iterator[Finding]:
    if not _has_tasks(job):
        return
    shared = [
        directive
        for directive in sound(job, "output", "error")
        if directive.value and not _is_unique(directive.value)
    ]
    if not shared:
        return
    first = shared[0]
    assert first.value is not None
    edits = [
        edit
        for directive in shared
        for edit in new_value(
            job, directive, re.sub(r"(?<!%)%A", "%A_%a", directive.value or "", count=1)
        )
        if "%A" in edit.text and "\\" not in edit.text
    ]
    yield Finding(
        value_place(job, first),
        f'all tasks of the array write to "{first.value}"',
        "they run at the same time and write over each other",
        "write %A_%a into the name",
        also=tuple(value_place(job, directive) for directive in shared[1:]),
        edits=tuple(edits) if len(edits) == len(shared) else (),
    )


def _has_tasks(job: Job) -> bool:
    array = job.request.array
    if not array:
        return False
    try:
        return parse_array(array).tasks > 1
    except Refusal:
        return True


def _is_unique(pattern: str) -> bool:
    if pattern == "/dev/null":
        return True
    # A backslash turns all patterns off.
    return "\\" not in pattern and any(
        found[2] in _OF_ONE_TASK for found in _TOKEN.finditer(pattern)
    )
