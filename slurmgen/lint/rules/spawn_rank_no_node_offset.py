"""The index that mp.spawn passes is used as the global rank on several nodes.

## What it does

Finds `init_process_group(rank=i)`, or `os.environ["RANK"] = str(i)`, with the process index of
`torch.multiprocessing.spawn`, in jobs that run the program on more than one node.

## Why is this bad

mp.spawn counts from 0 on every node. Each node has ranks 0 to N-1, the rest of the world never
joins, and init_process_group waits until its timeout, or two processes with one rank break
the rendezvous.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((15000 + SLURM_JOB_ID % 15000))
srun --cpus-per-task=16 python train.py
```

```python train.py
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(i, world_size):
    torch.cuda.set_device(i)
    dist.init_process_group("nccl", rank=i, world_size=world_size)


if __name__ == "__main__":
    mp.spawn(run, args=(8,), nprocs=4)
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((15000 + SLURM_JOB_ID % 15000))
srun --cpus-per-task=16 python train.py
```

```python train.py
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(i, gpus):
    torch.cuda.set_device(i)
    rank = int(os.environ["SLURM_NODEID"]) * gpus + i
    world_size = int(os.environ["SLURM_NNODES"]) * gpus
    dist.init_process_group("nccl", rank=rank, world_size=world_size)


if __name__ == "__main__":
    gpus = torch.cuda.device_count()
    mp.spawn(run, args=(gpus,), nprocs=gpus)
```

## References

- https://docs.pytorch.org/docs/stable/multiprocessing.html#spawning-subprocesses
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.python import others, runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.distributed import groups, spawns
from slurmgen.reading.programs.roles import roles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job

NAME = "spawn-rank-no-node-offset"
CODE = "SG605"
SEVERITY = ERROR
HIDES = ("world-size-mismatch",)


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        nodes = run.extent.nodes
        if nodes is None or nodes < 2:
            continue
        place = next(_local_ranks(run), None)
        if place is not None:
            starts = [call.place for call in spawns(run.program)]
            yield Finding(
                place,
                "the process index of mp.spawn is used as the global rank",
                f"It counts from 0 on each of the {nodes} nodes: ranks come twice, and "
                "init_process_group waits for the missing ones until its timeout",
                "add the node's offset: rank = node_rank * nprocs + i, with node_rank from "
                "SLURM_NODEID",
                also=others(*starts[:1]),
            )


def _local_ranks(run: Run) -> Iterator[Place]:
    for group in groups(run.program):
        if group.rank is not None and run.reaches(group.call):
            if roles(group.rank, run.present) == {"spawn"}:
                yield group.call.place
    for write in run.program.writes("RANK"):
        if roles(write.value, run.present) == {"spawn"}:
            yield write.place
