"""One process group over several slices of GPUs.

## What it does

Finds a launcher that starts several ranks on a node whose GPUs are MIG slices (types such as
`1g.10gb`). It is a warning where srun starts the ranks: independent tasks may share such a node.

## Why is this bad

A process sees one MIG slice only, whatever CUDA_VISIBLE_DEVICES lists, and NCCL does not connect
slices of one GPU: the ranks stop at "invalid device ordinal" or at the first collective call.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:1g.10gb:4
#SBATCH --time=2:00:00
srun torchrun --standalone --nproc_per_node=4 train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:a100:4
#SBATCH --time=2:00:00
srun torchrun --standalone --nproc_per_node=4 train.py
```

## References

- NVIDIA Multi-Instance GPU User Guide, "CUDA Device Enumeration"
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.options import place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.request import Request

NAME = "mig-multi-gpu"
CODE = "SG207"
SEVERITY = ERROR

# Of a type such as 1g.10gb, a100_3g.20gb or mig-1g.5gb+me.
_SLICE = re.compile(r"(?:^|[^A-Za-z0-9])\dg\.\d+gb|\bmig\b", re.IGNORECASE)
# What only a process group needs.
_GROUP = frozenset(("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"))
_OPTIONS = ("gres", "gpus-per-node", "gpus", "gpus-per-task")


def check(job: Job) -> Iterator[Finding]:
    for launch in job.trainings:
        request = job.request_of(launch)
        directive = next(
            (
                given
                for given in map(request.directive, _OPTIONS)
                if given is not None and _SLICE.search(given.value or "")
            ),
            None,
        )
        if directive is None or _is_one(request):
            continue
        extent = job.extent(launch)
        here = extent.processes_per_node
        if here is None or here < 2:
            continue
        # Each task may be a run of its own; a launcher's ranks are not.
        is_sure = launch.launcher is not None and extent.workers != 1
        is_sure = is_sure or not _GROUP.isdisjoint(launch.environment)
        yield Finding(
            place(directive),
            f"{here} ranks on the MIG slices of a node",
            "a process sees one slice only, and NCCL does not connect those of one GPU",
            "ask for whole GPUs, or start one process on one slice",
            severity=ERROR if is_sure else WARNING,
            also=(job.place(launch.start, launch.start + 1),),
        )
        return


def _is_one(request: Request) -> bool:
    counts = (request.node_gpus, request.gpus_per_node, request.gpus)
    known = [count for count in counts if count is not None]
    return bool(known) and max(known) < 2
