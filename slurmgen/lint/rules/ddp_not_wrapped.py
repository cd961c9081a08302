"""A process group is made, but nothing averages gradients.

## What it does

Finds programs that call `init_process_group` and train (`backward()`), but neither wrap the
model (DistributedDataParallel, FSDP) nor reduce gradients themselves.

## Why is this bad

The group alone does nothing for training: every rank trains a model of its own, and the models
drift apart without an error. What is saved in the end has seen one rank's share of the data.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --time=1:00:00
torchrun --standalone --nproc_per_node=4 train.py
```

```python train.py
import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
net = torch.nn.Linear(4, 4).cuda()
net(torch.rand(4, 4).cuda()).sum().backward()
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --time=1:00:00
torchrun --standalone --nproc_per_node=4 train.py
```

```python train.py
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
net = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
net(torch.rand(4, 4).cuda()).sum().backward()
```

## References

- https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.python import others, runs, sets_up_elsewhere
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.distributed import REDUCTIONS, groups, wraps
from slurmgen.reading.programs.frameworks import CARING, frameworks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call, Program

NAME = "ddp-not-wrapped"
CODE = "SG610"
SEVERITY = WARNING

# Words of code that wraps or averages in a way of its own.
_WRAPS = re.compile(
    r"ddp|fsdp|dataparallel|data_parallel|shard|horovod|hvd|parallelize|distribute_|zeroredundancy|"
    r"(average|avg|sync|reduce)_?(the_?)?(grad|param|model)|^prepare$|^wrap$|wrap_model|auto_wrap|"
    r"prepare_model|isend|irecv|^send$|^recv$|^rpc|broadcast_coalesced",
    re.IGNORECASE,
)


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        program = run.program
        if run.processes == 1 or _averages(program):
            continue
        group = next((item for item in groups(program) if run.reaches(item.call)), None)
        if group is None or frameworks(program) & CARING or sets_up_elsewhere(program):
            continue
        if any(_WRAPS.search(word) for word in program.words | _imported(program)):
            continue
        backward = next(program.methods("backward", "step"), None)
        if backward is None:
            continue
        model = _model(program)
        yield Finding(
            model or backward.place,
            "a process group is made, but the model is not wrapped",
            "Nothing averages gradients: each rank trains a model of its own, and they drift apart",
            "wrap it after moving it to its GPU: "
            "model = DistributedDataParallel(model, device_ids=[local_rank])",
            also=others(group.call.place, backward.place if model is not None else None),
        )


def _averages(program: Program) -> bool:
    """Whether a model is wrapped, or gradients (not just losses) are reduced."""
    return any(
        not call.name.startswith(REDUCTIONS) or "grad" in program.words for call in wraps(program)
    )


def _imported(program: Program) -> frozenset[str]:
    return frozenset(item.name.rpartition(".")[2] for item in program.imports)


def _model(program: Program) -> Place | None:
    """Where the model is made: what the optimizer takes the parameters of."""
    for call in program.methods("parameters"):
        place = _bound(program, call)
        if place is not None:
            return place
    return None


def _bound(program: Program, call: Call) -> Place | None:
    function = call.node.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
        return None
    bindings = call.site.scope.bindings.get(function.value.id, [])
    made = [item.value for item in bindings if item.how == "value" and item.value is not None]
    unit = next(item for item in program.units if item.name == call.site.scope.unit)
    return unit.place(made[-1]) if made else None
