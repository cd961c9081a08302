"""A DistributedSampler shuffles, but never learns which epoch it is.

## What it does

Finds a shuffling DistributedSampler in a program that goes through its data several times and
calls `set_epoch` nowhere.

## Why is this bad

The sampler's order depends on its seed and its epoch alone. Without `set_epoch` it is the same
in every epoch (seen with torch 2.13): each rank sees the same part in the same order, again and
again.

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
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from data import samples

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
net = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
sampler = DistributedSampler(samples)
loader = DataLoader(samples, batch_size=32, sampler=sampler)
for epoch in range(10):
    for batch in loader:
        net(batch.cuda()).sum().backward()
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
from torch.utils.data import DataLoader, DistributedSampler

from data import samples

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
net = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
sampler = DistributedSampler(samples)
loader = DataLoader(samples, batch_size=32, sampler=sampler)
for epoch in range(10):
    sampler.set_epoch(epoch)
    for batch in loader:
        net(batch.cuda()).sum().backward()
```

## References

- https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.python import foreign_calls, runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.data import epoch_loop, loaders, samplers
from slurmgen.reading.programs.frameworks import CARING, frameworks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call

NAME = "no-set-epoch"
CODE = "SG608"
SEVERITY = WARNING


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        if "set_epoch" in run.program.words or frameworks(run.program) & CARING:
            continue
        sampler = next((call for call in samplers(run.program) if _shuffles(run, call)), None)
        loop = epoch_loop(run.program) if sampler is not None else None
        if sampler is None or loop is None or _hands_loader_on(run):
            continue
        yield Finding(
            loop,
            "an epoch loop without set_epoch on the DistributedSampler",
            "The sampler shuffles in the same order in every epoch",
            "call sampler.set_epoch(epoch) first thing in the loop",
            also=(sampler.place,),
        )


def _shuffles(run: Run, call: Call) -> bool:
    """Whether a sampler for training is made with shuffling, which is the default."""
    shuffle = call.argument(3, "shuffle")
    if call.is_open or not run.reaches(call) or run.processes == 1:
        return False
    if shuffle is not None:
        return shuffle.literal is True
    return not _only_validates(run, call)


def _only_validates(run: Run, call: Call) -> bool:
    unit = next(item for item in run.program.units if str(item.path) == call.place.path)
    before = unit.lines[call.place.line - 1][: call.place.column - 1].lower()
    return any(word in before for word in ("val", "test", "eval"))


def _hands_loader_on(run: Run) -> bool:
    """Whether code that isn't read gets the loader, and may call set_epoch."""
    made = {loader.call.value for loader in loaders(run.program)}
    return any(
        made & {*call.args, *(value for _, value in call.keywords)}
        for call in foreign_calls(run.program)
    )
