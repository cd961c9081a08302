"""Every rank writes the same checkpoint file.

## What it does

Finds `torch.save` in a distributed program where no test of the rank leads to it, and the file
name does not depend on the rank.

## Why is this bad

All ranks write the same file at the same time. On a parallel file system the last one wins or
the contents mix, and the checkpoint cannot be loaded; it also costs the bandwidth of as many
copies as there are ranks.

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

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
net = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
net(torch.rand(4, 4).cuda()).sum().backward()
torch.save(net.module.state_dict(), "model.pt")
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
if dist.get_rank() == 0:
    torch.save(net.module.state_dict(), "model.pt")
```

## References

- https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html#save-and-load-checkpoints
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.python import runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.data import saves
from slurmgen.reading.programs.distributed import groups, is_distributed
from slurmgen.reading.programs.frameworks import CARING, frameworks
from slurmgen.reading.programs.roles import names_rank
from slurmgen.reading.programs.values import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call

NAME = "all-ranks-save"
CODE = "SG609"
SEVERITY = WARNING


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        program = run.program
        if run.processes == 1 or frameworks(program) & CARING:
            continue
        if not is_distributed(program) and not groups(program):
            continue
        found = [call for call in saves(program) if run.reaches(call) and _by_all(run, call)]
        if found:
            yield Finding(
                found[0].place,
                f"every rank runs this {found[0].method}",
                "All ranks write the same file at the same time, and may leave a broken one",
                "save under `if rank == 0:`, or under a name that holds the rank",
                also=tuple(call.place for call in found[1:4]),
            )


def _by_all(run: Run, call: Call) -> bool:
    """Whether all ranks make a call, and on the same file."""
    scope = call.site.scope
    if scope.kind == "function" and not run.program.callers(scope):
        return False
    target = call.argument(1, "f") or call.argument(1, "filename")
    if target is None or call.is_open or run.program.by_rank(call):
        return False
    # A buffer in memory is no file.
    return not any("BytesIO" in part.name for part in walk(target)) and not names_rank(target)
