"""The value of an option means nothing to sbatch, or not what it seems to.

## What it does

Checks the values of directives against Slurm's grammars: times, memory, arrays, dependencies,
signals, mail types, points in time, counts, host lists, constraints, log patterns and more. What
Slurm takes, but not as it was meant, is a warning.

## Why is this bad

sbatch refuses the script (`--mem=64GiB`, `--time=90m`, `--signal=USR1:90`), or silently does
something else: `--mail-type=END,FIAL` sends no mail about a failure, `--open-mode=apend` works by
its first letter.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --mem=64GiB
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

- sbatch(1), OPTIONS
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.errors import Refusal
from slurmgen.lint.facts.options import new_value, place, sound, value_place
from slurmgen.lint.facts.values import fault
from slurmgen.lint.finding import Finding
from slurmgen.slurm.grammars.time import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "bad-option-value"
CODE = "SG109"
SEVERITY = ERROR


def check(job: Job) -> Iterator[Finding]:
    for problem in job.script.block.problems:
        if problem.kind == "unexpected-value":
            yield Finding(
                place(problem),
                f'--{problem.option} takes no value, and "{problem.text[1:]}" is given',
                "sbatch ends with: option doesn't allow an argument",
                f"write --{problem.option} alone, or remove it",
            )
    for directive in sound(job):
        if directive.value is None:
            continue
        wrong = fault(directive.option, directive.value, job.slurm)
        if wrong is not None:
            where = "" if directive.option in wrong.what else f" (--{directive.option})"
            yield Finding(
                value_place(job, directive),
                wrong.what + where,
                wrong.why,
                wrong.fix,
                severity=wrong.severity,
                edits=() if wrong.meant is None else new_value(job, directive, wrong.meant),
            )
    yield from _least_time(job)


def _least_time(job: Job) -> Iterator[Finding]:
    """--time-min over --time."""
    given = {directive.option: directive for directive in sound(job, "time", "time-min")}
    if len(given) < 2:
        return
    try:
        least, most = (parse_time(given[name].value or "") for name in ("time-min", "time"))
    except Refusal:
        return
    if least is not None and most is not None and least > most:
        yield Finding(
            value_place(job, given["time-min"]),
            f"--time-min={given['time-min'].value} is more than --time={given['time'].value}",
            "Slurm refuses the job",
            "lower it",
            also=(value_place(job, given["time"]),),
        )
