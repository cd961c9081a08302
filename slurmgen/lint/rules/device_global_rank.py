"""A rank takes the GPU with the number of its global rank.

## What it does

Finds `cuda:RANK` and `set_device(rank)` with the global rank in programs that run on more than
one node.

## Why is this bad

Devices are counted per node. With four GPUs a node, rank 4 is the first on the second node and
asks for `cuda:4`: "CUDA error: invalid device ordinal". The mistake passes every test on one
node.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((15000 + SLURM_JOB_ID % 15000))
srun --cpus-per-task=4 python train.py
```

```python train.py
import os

import torch
import torch.distributed as dist

rank = int(os.environ["SLURM_PROCID"])
dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["SLURM_NTASKS"]))
torch.cuda.set_device(rank)
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((15000 + SLURM_JOB_ID % 15000))
srun --cpus-per-task=4 python train.py
```

```python train.py
import os

import torch
import torch.distributed as dist

rank = int(os.environ["SLURM_PROCID"])
dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["SLURM_NTASKS"]))
torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
```

## References

- sbatch(1), SLURM_PROCID and SLURM_LOCALID
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.python import runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.distributed import devices, groups
from slurmgen.reading.programs.roles import asks_gpus, device_number, device_roles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs.distributed import Device

NAME = "device-global-rank"
CODE = "SG611"
SEVERITY = ERROR

_FALLBACKS = frozenset({"constant", "none", "plain", "cpu"})


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        nodes, processes, gpus = run.extent.nodes, run.processes, run.extent.gpus_per_task
        if nodes is None or nodes < 2:
            continue
        if processes is not None and gpus is not None and processes <= gpus:
            continue
        if any(run.program.writes("CUDA_VISIBLE_DEVICES")):
            continue
        chosen = [device for device in devices(run.program) if _by_global_rank(run, device)]
        if chosen:
            sees = f" that sees {gpus} GPU{'s' if gpus != 1 else ''}" if gpus else ""
            yield Finding(
                chosen[0].call.place,
                "the device is chosen by the global rank",
                f"On the second of {nodes} nodes it is larger than any index of a process{sees}: "
                '"invalid device ordinal"',
                "use the local rank (LOCAL_RANK, SLURM_LOCALID), or the rank modulo "
                "torch.cuda.device_count()",
                also=tuple(device.call.place for device in chosen[1:4]),
            )


def _by_global_rank(run: Run, device: Device) -> bool:
    if device.device is None or not run.reaches(device.call) or asks_gpus(device.device):
        return False
    if any(asks_gpus(condition.test) for condition in device.call.conditions):
        return False
    roles = device_roles(run.settled(device.device), run.present) - _FALLBACKS
    if roles == {"rank"}:
        return True
    # `node_rank * gpus + i` is a global rank if the group is told so.
    number = device_number(device.device)
    return roles == {"computed"} and any(group.rank == number for group in groups(run.program))
