"""The script has DOS line ends.

## What it does

Finds a carriage return at the end of any line.

## Why is this bad

sbatch refuses the script for a single one: "Batch script contains DOS line breaks".

## Example

```bash job.sbatch
#!/bin/bash\r
#SBATCH --time=2:00:00\r
hostname\r
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --time=2:00:00
hostname
```

## References

- dos2unix(1)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, Edit, Place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "crlf-line-endings"
CODE = "SG115"
SEVERITY = ERROR

_RETURNS = re.compile(r"\r+(?=\n)")


def check(job: Job) -> Iterator[Finding]:
    first = job.text.find("\r\n")
    if first < 0:
        return
    line, column = job.script.position(first)
    count = job.text.count("\r\n")
    yield Finding(
        Place(line, column),
        "a line ends" + f" ({count} lines end)" * (count > 1) + " with a carriage return",
        "sbatch says: Batch script contains DOS line breaks",
        "convert the script with dos2unix",
        edits=(Edit(0, len(job.text), _RETURNS.sub("", job.text)),),
    )
