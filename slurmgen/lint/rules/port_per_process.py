"""Each process draws a port of its own, at which nobody else looks for it.

## What it does

Finds a master port that is computed in each task or process and comes out differently:
`$RANDOM`, `shuf`, a free port looked for, or a rank added, in `srun bash -c '…'` or in the
Python program.

## Why is this bad

All ranks of a process group have to name the same port (torch 2.13). Rank 0 listens on its own,
the others knock at theirs, until the timeout.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun bash -c '
    export MASTER_PORT=$((12000 + RANDOM % 20000))
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
export MASTER_PORT=$((12000 + SLURM_JOB_ID % 20000))
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python train.py'
```

## References

- https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.endpoints import places
from slurmgen.lint.facts.ports import DRAWN, faults
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "port-per-process"
CODE = "SG407"
SEVERITY = ERROR


def check(job: Job) -> Iterator[Finding]:
    found = [fault.endpoint for fault in faults(job) if fault.kind == DRAWN]
    if not found:
        return
    first, *others = places(found)
    yield Finding(
        first,
        f"every process computes its own {found[0].name}",
        "the ranks of one group look for each other at different ports: they hang until the "
        "timeout",
        "compute it once, in the batch shell: export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))",
        also=tuple(others),
    )
