"""A quote in a directive is not closed.

## What it does

Finds `"` and `'` on a directive line that nothing closes on that line, such as the apostrophe in
`John's`.

## Why is this bad

sbatch ends with "Unmatched `'`" and the line's number.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --job-name="first run
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --job-name="first run"
#SBATCH --time=2:00:00
hostname
```

## References

- sbatch(1), DESCRIPTION
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.options import place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "directive-unclosed-quote"
CODE = "SG122"
SEVERITY = ERROR


def check(job: Job) -> Iterator[Finding]:
    for problem in job.script.block.problems:
        if problem.kind == "unclosed-quote":
            quote = problem.text[0]
            yield Finding(
                place(problem),
                f"the quote {quote} is not closed",
                f"sbatch ends with a fatal error: Unmatched `{quote}`",
                f"close it with {quote} on the same line, or write \\{quote} for the character",
            )
