"""A short option has `=` before its value.

## What it does

Finds `-N=2`, `-t=24:00:00`, `-J=name` and the like.

## Why is this bad

The `=` becomes part of the value: the job is called `=name`, its log `=name.out`; a time, a
number of nodes or a partition is refused. Only long options have `=`.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH -J=train
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH -J train
#SBATCH --time=2:00:00
hostname
```

## References

- getopt(3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING, Edit
from slurmgen.lint.facts.options import place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "short-option-equals"
CODE = "SG107"
SEVERITY = ERROR

_NAMES = ("job-name", "output", "error", "comment", "mail-user")


def check(job: Job) -> Iterator[Finding]:
    found = [p for p in job.script.block.problems if p.kind == "short-option-equals"]
    # With names alone, which nobody checks, the job runs.
    is_taken = all(problem.option in _NAMES for problem in found)
    for problem in found:
        value = problem.text.partition("=")[2].strip()
        yield Finding(
            place(problem),
            f'{problem.text.partition("=")[0]}= gives --{problem.option} the value "={value}"',
            "a short option has its value directly behind it or in the next word, without =",
            f"write {problem.meant}" if problem.meant else f"write --{problem.option}=VALUE",
            severity=WARNING if is_taken else ERROR,
            edits=(Edit(problem.start, problem.end, problem.meant),) if problem.meant else (),
        )
