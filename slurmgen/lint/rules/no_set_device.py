"""Several processes of a node use "cuda" without choosing a device.

## What it does

Finds programs that move models and data to plain `cuda` (or to the same `cuda:0` everywhere)
where several of their processes run on a node and each of them sees all its GPUs.

Silent where anything chooses a device by rank, where a framework does that (Lightning,
Accelerate, Transformers, DeepSpeed, …), and where code that can't be read may do it.

## Why is this bad

`cuda` means the current device, and that is 0 until `torch.cuda.set_device` says otherwise.
All processes of a node share GPU 0, which runs out of memory, and the others stay idle. NCCL
refuses two ranks on one GPU with "Duplicate GPU detected".

## Example

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
import torch

net = torch.nn.Linear(4, 4).cuda()
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
net = torch.nn.Linear(4, 4).cuda()
```

## References

- https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_device.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.python import runs, sets_up_elsewhere
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.distributed import devices
from slurmgen.reading.programs.frameworks import CARING, frameworks
from slurmgen.reading.programs.roles import device_roles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs.distributed import Device

NAME = "no-set-device"
CODE = "SG602"
SEVERITY = ERROR

_MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        if run.launch.entrypoint:
            continue
        gpus, processes = run.extent.gpus_per_task, run.local_processes
        if gpus is None or processes is None or gpus < 2 or processes < 2:
            continue
        if _is_masked(run) or frameworks(run.program) & CARING or sets_up_elsewhere(run.program):
            continue
        used = _all_plain(run)
        if used:
            how = "cuda:0" if used[0].how == "set" else "cuda"
            yield Finding(
                used[0].call.place,
                f"every process uses {how}, and none chooses its own GPU",
                f"All {processes} processes of a node share GPU 0, and the other "
                f"{gpus - 1} stay idle",
                "call torch.cuda.set_device(local_rank) before anything is moved to the GPU",
            )


def _is_masked(run: Run) -> bool:
    """Whether a process may see one GPU only; a list of several leaves all on the first of them."""
    given = (run.launch.environment.get(name) for name in _MASKS)
    return any(run.program.writes(*_MASKS)) or any(
        one is not None and "," not in (one.value.literal or "") for one in given
    )


def _all_plain(run: Run) -> list[Device]:
    """The uses of a device if all are of the same one; else none."""
    used = []
    indices = set()
    for device in devices(run.program):
        if not run.reaches(device.call):
            continue
        if device.device is None:
            used.append(device)
            continue
        roles = device_roles(run.settled(device.device), run.present) - {"cpu", "none"}
        if roles <= {"plain"}:
            used += [device] if roles else []
        elif roles <= {"plain", "constant"}:
            used.append(device)
            indices.add(str(device.device.literal))
        else:
            return []
    return used if len(indices) < 2 else []
