"""A rank takes the GPU of its local rank, but each task sees a single GPU.

## What it does

Finds programs that choose `cuda:LOCAL_RANK` where Slurm binds one GPU to each task:
`--gpus-per-task=1`, `--ntasks-per-gpu=1`, or `--gpu-bind` with `single:1` or `map_gpu`.

## Why is this bad

Slurm sets CUDA_VISIBLE_DEVICES so that a bound task sees its GPU only, and that GPU has the
index 0 in every task (seen on 22.05.8). Local rank 1 asks for `cuda:1` and dies with "CUDA
error: invalid device ordinal".

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=4
#SBATCH --time=1:00:00
srun --cpus-per-task=4 python train.py
```

```python train.py
import os

import torch

torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=4
#SBATCH --time=1:00:00
srun --cpus-per-task=4 python train.py
```

```python train.py
import os

import torch

torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
```

## References

- srun(1), --gpus-per-task and --gpu-bind
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.python import option_place, others, runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.distributed import devices
from slurmgen.reading.programs.roles import asks_gpus, device_roles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs.distributed import Device

NAME = "gpu-bound-local-rank"
CODE = "SG601"
SEVERITY = ERROR
HIDES = ("device-global-rank",)

_FALLBACKS = frozenset({"constant", "none", "plain", "cpu"})


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        tasks = run.extent.tasks_per_node
        if run.extent.gpus_per_task != 1 or tasks is None or tasks < 2:
            continue
        if any(run.program.writes("CUDA_VISIBLE_DEVICES")):
            continue
        chosen = [device for device in devices(run.program) if _by_rank(run, device)]
        if not chosen:
            continue
        binding = option_place(run, "gpu-bind", "gpus-per-task", "ntasks-per-gpu", "tres-per-task")
        yield Finding(
            chosen[0].call.place,
            "the device is chosen by rank, but each task sees one GPU",
            f"That GPU is cuda:0 in each of the {tasks} tasks of a node: every rank but the "
            'first fails with "invalid device ordinal"',
            "ask for --gpus-per-node or --gres instead, so that each task sees all GPUs of its "
            "node, or use device 0",
            also=others(binding, *(device.call.place for device in chosen[1:4])),
        )


def _by_rank(run: Run, device: Device) -> bool:
    if device.device is None or not run.reaches(device.call) or asks_gpus(device.device):
        return False
    if any(asks_gpus(condition.test) for condition in device.call.conditions):
        return False
    roles = device_roles(run.settled(device.device), run.present) - _FALLBACKS
    return bool(roles) and roles <= {"local_rank", "rank"}
