"""A comment suppresses a finding that is not there.

## What it does

Finds `# slurmgen: ignore[…]` comments that suppress nothing, name a rule that does not exist,
give no reason, or stand where they have no effect.

A comment at the end of a line suppresses the findings of that line, a comment alone on a line
those of the next one. Where a command goes over several lines, each of them will do.
`# slurmgen: ignore-file[…]` among the comments before the first command is for the whole file.

## Why is this bad

What was meant to be silenced still speaks, or the comment outlives its cause and will silence
the next fault on that line. Without the reason nobody can tell whether it still holds.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --time=1:00:00
# slurmgen: ignore[crlf-line-endings] the file came from Windows
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --time=1:00:00
hostname
```

## References

- docs/rules/README.md, "Suppressing a finding"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.finding import Finding
    from slurmgen.lint.job import Job

NAME = "unused-suppression"
CODE = "SG020"
SEVERITY = WARNING


def check(job: Job) -> Iterator[Finding]:
    """Nothing: only who has asked all the other rules knows (lint/suppressions.py)."""
    yield from ()
