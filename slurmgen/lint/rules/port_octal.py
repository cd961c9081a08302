"""The last digits of the job id are read as an octal number.

## What it does

Finds `$((… + ${SLURM_JOB_ID: -4}))` and its like: Bash arithmetic on digits that were cut off a
longer number, and may begin with a zero.

## Why is this bad

To Bash a number with a leading zero is octal. With a job id that ends in 0899 the line fails
("value too great for base"), the variable is empty and the job goes on; with 0123 the port is
another than it looks.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((10000 + ${SLURM_JOB_ID: -4}))
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python train.py'
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python train.py'
```

## References

- bash(1), ARITHMETIC EVALUATION
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.endpoints import PORT, endpoints
from slurmgen.lint.facts.ports import octal, reads_octal
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.job import Job

NAME = "port-octal"
CODE = "SG410"
SEVERITY = ERROR

_PORT = re.compile(r"port", re.IGNORECASE)
# Arithmetic without `$((`.
_STATEMENT = re.compile(
    r"^[ \t]*(?:\(\(|let[ \t]+[\"']?|declare[ \t]+-i[ \t]+|(?:export[ \t]+)?(?=\w+=\$\[))"
    r"[ \t]*\w*port\w*[ \t]*=[ \t]*(?P<expression>[^\n]+)",
    re.IGNORECASE | re.MULTILINE,
)


def check(job: Job) -> Iterator[Finding]:
    found: dict[Place, str] = {}
    for start, end in _arithmetic(job):
        found.setdefault(job.place(start, end), job.text[start:end])
    if not found:
        return
    (first, text), *others = found.items()
    yield Finding(
        first,
        f"{text} reads digits with a leading zero as octal",
        'for one job in ten it is another port, or fails with "value too great for base" and '
        "leaves the port empty",
        "write $((10000 + SLURM_JOB_ID % 10000)), or 10# before the digits",
        also=tuple(place for place, _ in others),
    )


def _arithmetic(job: Job) -> Iterator[tuple[int, int]]:
    """Where a port is computed in such a way."""
    for endpoint in endpoints(job):
        if endpoint.kind == PORT and endpoint.word is not None:
            piece = octal(job, endpoint.word, endpoint.launch.inner.variables)
            if piece is not None:
                yield piece.start, piece.end
    variables = {a.name: a for a in job.script.shell.assignments}
    for assignment in job.script.shell.assignments:
        if _PORT.search(assignment.name):
            piece = octal(job, assignment.value, variables)
            if piece is not None:
                yield piece.start, piece.end
    for match in _STATEMENT.finditer(job.text) if job.script.is_shell else ():
        if reads_octal(job, match["expression"], variables):
            yield match.span()
