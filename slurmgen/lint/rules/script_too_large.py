"""The script is larger than sbatch takes, or holds a NUL.

## What it does

Finds scripts of 4 MiB and more, and NUL characters.

## Why is this bad

sbatch refuses the script. A site can raise the limit (SchedulerParameters=max_script_size), but the
controller keeps every script in its memory. Data belongs in files of its own.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --time=2:00:00
echo "a NUL: \0"
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --time=2:00:00
printf 'a NUL: \\0'
```

## References

- slurm.conf(5), max_script_size
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, Place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "script-too-large"
CODE = "SG123"
SEVERITY = ERROR

_MOST_BYTES = 4 * 1024 * 1024


def check(job: Job) -> Iterator[Finding]:
    # No character is more than four bytes, and counting them costs a copy.
    size = len(job.text)
    if size * 4 >= _MOST_BYTES:
        size = len(job.text.encode("utf-8", "replace"))
    if size >= _MOST_BYTES:
        yield Finding(
            Place(1, 1),
            f"the script has {size} bytes",
            f"sbatch takes less than {_MOST_BYTES}",
            "put data into files of their own",
        )
    nul = job.text.find("\0")
    if nul >= 0:
        yield Finding(
            job.place(nul, nul + 1),
            "the script holds a NUL character",
            "sbatch refuses it",
            r"remove it; a shell writes one with printf '\0'",
        )
