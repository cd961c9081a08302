"""An amount of memory without a unit is far too small: it is in megabytes.

## What it does

Finds `--mem=64`, `--mem-per-cpu=4` and the like. Numbers that can be megabytes (`--mem=64000`) are
left alone, and so are the smaller ones of a job without GPUs and without a training
(`--mem=500`).

## Why is this bad

Slurm reads a number without a unit as megabytes. The job is killed for its memory as soon as
Python has imported anything.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --mem=64
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --mem=64G
#SBATCH --time=2:00:00
hostname
```

## References

- sbatch(1), --mem
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.options import sound, value_place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "mem-unit-missing"
CODE = "SG111"
SEVERITY = ERROR

# Megabytes in which nothing runs, and in which no training does.
_NEVER = {"mem": 65, "mem-per-cpu": 65, "mem-per-gpu": 65}
_NO_TRAINING = {"mem": 1024, "mem-per-cpu": 100, "mem-per-gpu": 1024}


def check(job: Job) -> Iterator[Finding]:
    is_large = bool(job.trainings) or any(r.node_gpus != 0 for r in job.script.requests)
    for directive in sound(job, *_NEVER):
        value = directive.value or ""
        if not (value.isascii() and value.isdigit()):
            continue
        number = int(value[:9])
        limits = _NO_TRAINING if is_large else _NEVER
        if 0 < number < limits[directive.option]:
            yield Finding(
                value_place(job, directive),
                f"--{directive.option}={value} is {number} MB",
                "a number without a unit is in megabytes, and the job is killed for want of memory",
                f"write {number}G, or {number}M if that is meant",
            )
