r"""The master address is the machine where srun was called.

## What it does

Finds SLURM_LAUNCH_NODE_IPADDR and SLURM_SRUN_COMM_HOST where ranks meet, or handed to the
training in any other way.

## Why is this bad

They hold the address of the host on which `srun` runs, for srun's own traffic. Under `salloc`
or a direct `srun` that is the login node, where no rank listens; on a batch job it may be an
address on a network of its own. In the batch shell both are not set at all (seen on 20.11 to
26.05).

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export PORT=$((20000 + SLURM_JOB_ID % 10000))
srun bash -c 'torchrun --nnodes=2 --nproc_per_node=4 --rdzv_id=$SLURM_JOB_ID \
    --rdzv_backend=c10d --rdzv_endpoint=$SLURM_LAUNCH_NODE_IPADDR:$PORT train.py'
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export PORT=$((20000 + SLURM_JOB_ID % 10000))
export HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun bash -c 'torchrun --nnodes=2 --nproc_per_node=4 --rdzv_id=$SLURM_JOB_ID \
    --rdzv_backend=c10d --rdzv_endpoint=$HEAD:$PORT train.py'
```

## References

- srun(1), OUTPUT ENVIRONMENT VARIABLES
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.spread import has_nodes
from slurmgen.lint.facts.tools import is_tool
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.words import BATCH, TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Word

NAME = "launch-node-ipaddr"
CODE = "SG406"
SEVERITY = WARNING

_NAMES = ("SLURM_LAUNCH_NODE_IPADDR", "SLURM_SRUN_COMM_HOST")


def check(job: Job) -> Iterator[Finding]:
    found: dict[Place, tuple[str, bool]] = {}
    for launch in job.launches:
        if launch.where not in (BATCH, TASK) or is_tool(launch):
            continue
        for word in _words(launch):
            piece = word.uses(*_NAMES)
            # On one node, and inside a step, the address is that node's.
            if piece is not None and (piece.where == BATCH or has_nodes(job)):
                name = next(name for name in _NAMES if name in piece.text)
                found.setdefault(job.place_of(piece), (name, piece.where == BATCH))
    if has_nodes(job):
        for program in job.programs:
            for read in program.reads(*_NAMES):
                if read.how != "in":
                    found.setdefault(read.place, (read.name, False))
    if not found:
        return
    (first, (name, unset)), *others = found.items()
    yield Finding(
        first,
        f"{name} is not the address of rank 0",
        "the batch shell doesn't have it: it is empty there"
        if unset
        else "it is the address from which srun was called, the login node's for instance, and for "
        "srun's own traffic",
        'use the first node: $(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        ERROR if unset else None,
        tuple(place for place, _ in others),
    )


def _words(launch: Launch) -> Iterator[Word]:
    yield from launch.words
    if launch.launcher is not None:
        yield from launch.launcher.options.values()
    for assignment in launch.environment.values():
        yield assignment.value
