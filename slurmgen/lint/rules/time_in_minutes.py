"""A time limit of a few minutes was meant in hours.

## What it does

Finds `--time=24`, `--time=48:00` and the like: whole hours or days by their number, which Slurm
reads as minutes, and `H:M` where Slurm reads minutes and seconds. A number that may as well be
minutes is only reported where the job trains, or where a remark on the line says hours.

## Why is this bad

A plain number is minutes, and `A:B` is minutes and seconds: `--time=24` and `--time=24:00` both end
the job after 24 minutes, with a checkpoint or without.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --time=24:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --time=24:00:00
hostname
```

## References

- sbatch(1), --time
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.options import sound, value_place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.directives import Directive

NAME = "time-in-minutes"
CODE = "SG110"
SEVERITY = WARNING

# Half a day, and whole ones; nobody counts minutes so.
_HOURS = frozenset((12, 18, 24, 36, 48, 72, 96, 168))
# Hours of a training, or minutes of a test.
_PERHAPS = frozenset((1, 2, 3, 4, 6, 8, 16))
# In docs of many clusters "5:00" and "10:00" are minutes.
_ROUND_MINUTES = frozenset((12,))
_FORM = re.compile(r"(\d{1,4})(?::(\d{1,2}))?")
_UNITS = {"h": "hours", "d": "days"}
_REMARK = re.compile(
    r"#\W*(?:in |max(?:imum)? |up to |limit )*(\d+)?\s*-?(h|hrs?|hours?|d|days?)\b", re.IGNORECASE
)


def check(job: Job) -> Iterator[Finding]:
    for directive in sound(job, "time", "time-min"):
        found = _FORM.fullmatch(directive.value or "")
        if found is None:
            continue
        first, second = int(found[1]), found[2]
        remark = _remark(job, directive, first)
        if remark is None and not _is_suspicious(job, first, second):
            continue
        read = f"{first} minutes" if not second or not int(second) else f"{first}:{second} minutes"
        unit = remark or "hours"
        meant = f"{first}-00:00:00" if unit == "days" else f"{first}:{second or '00'}:00"
        yield Finding(
            value_place(job, directive),
            f"--{directive.option}={directive.value} is {read}, not {unit}",
            "Slurm reads a plain number as minutes, and A:B as minutes and seconds",
            f"write {meant}, or 0:{directive.value if second else f'{first:02}:00'} if it is "
            "minutes that are meant",
        )


def _is_suspicious(job: Job, first: int, second: str | None) -> bool:
    if second is not None and int(second):
        # Nobody needs seconds: 11:59 and 1:30 are hours and minutes.
        return first > 0
    if first in (_HOURS - _ROUND_MINUTES if second else _HOURS):
        return True
    return first in (_PERHAPS | _HOURS) and bool(job.trainings)


def _remark(job: Job, directive: Directive, number: int) -> str | None:
    """The unit that a remark on the line gives to just this number, or to no number."""
    end = directive.end - job.script.offset(directive.line)
    found = _REMARK.match(job.script.lines[directive.line - 1][end:].lstrip())
    if found is None or (found[1] is not None and int(found[1]) != number):
        return None
    return _UNITS[found[2][0].lower()]
