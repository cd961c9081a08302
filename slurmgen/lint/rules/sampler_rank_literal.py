"""A DistributedSampler is given a fixed rank.

## What it does

Finds `DistributedSampler(..., rank=0)`, or any other literal rank.

## Why is this bad

The sampler takes the share of one rank out of `num_replicas`. With the same rank in every
process all of them read the same share, and with one process (nn.DataParallel) each epoch
sees a fraction of the data only.

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
from torch.utils.data import DataLoader, DistributedSampler

from data import samples

sampler = DistributedSampler(samples, num_replicas=4, rank=0)
loader = DataLoader(samples, batch_size=32, sampler=sampler)
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
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

from data import samples

dist.init_process_group("nccl")
sampler = DistributedSampler(samples)
loader = DataLoader(samples, batch_size=32, sampler=sampler)
```

## References

- https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.python import runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.data import samplers
from slurmgen.reading.programs.facts import whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call

NAME = "sampler-rank-literal"
CODE = "SG612"
SEVERITY = ERROR
HIDES = ("no-set-epoch", "dataparallel-fallback")


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        for call in samplers(run.program):
            rank = _literal_rank(run, call)
            if rank is not None:
                yield Finding(
                    call.place,
                    f"a DistributedSampler with the fixed rank {rank}",
                    "Every process reads the share of that one rank; the rest of the data is "
                    "never seen",
                    "leave rank and num_replicas out, so that they come from the process group; "
                    "in a single process use no DistributedSampler",
                )


def _literal_rank(run: Run, call: Call) -> int | None:
    given = call.argument(2, "rank")
    if given is None or not run.reaches(call):
        return None
    rank = whole(run.settled(given))
    replicas = call.argument(1, "num_replicas")
    count = whole(run.settled(replicas)) if replicas is not None else None
    # One replica in one process is all there is.
    return None if count == 1 and run.processes in (1, None) else rank
