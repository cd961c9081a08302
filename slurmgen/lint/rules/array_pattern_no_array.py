"""`%a`, the index of an array's task, in the log of a job that is no array.

## What it does

Finds `%a` in `--output` and `--error` without `--array`. A script that uses SLURM_ARRAY_TASK_ID is
taken to be submitted with `--array` on the command line.

## Why is this bad

Outside an array `%a` is 4294967294: the log is called `train-4294967294.out`. `%A` is then the id
of the job and does no harm.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --output=train-%A_%a.out
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --output=train-%j.out
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
from slurmgen.lint.facts.options import new_value, sound, value_place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "array-pattern-no-array"
CODE = "SG121"
SEVERITY = WARNING

_INDEX = re.compile(r"(?<!%)(?:%%)*%\d*a")
_BOTH = re.compile(r"%A[-_.]%a")
_USED = re.compile(r"SLURM_ARRAY_|sbatch\b[^\n]*(?:--array|\s-a)\b")


def check(job: Job) -> Iterator[Finding]:
    if job.request.gives("array") or _USED.search(job.text):
        return
    named = [
        directive
        for directive in sound(job, "output", "error")
        if _INDEX.search(directive.value or "") and "\\" not in (directive.value or "")
    ]
    if not named:
        return
    edits = [
        edit
        for directive in named
        for edit in new_value(job, directive, _BOTH.sub("%j", directive.value or ""))
        if not _INDEX.search(edit.text)
    ]
    yield Finding(
        value_place(job, named[0]),
        f'%a in "{named[0].value}", and the job is no array',
        "outside an array it is 4294967294",
        "write %j, or add --array",
        also=tuple(value_place(job, directive) for directive in named[1:]),
        edits=tuple(edits) if len(edits) == len(named) else (),
    )
