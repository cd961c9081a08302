"""A total of GPUs is spread unevenly over several nodes.

## What it does

Finds `--gpus` in a job of several nodes, where nothing says how many GPUs each node gives.

## Why is this bad

`--gpus` is the sum over all nodes, and Slurm takes them where they are free: four GPUs on two nodes
were three and one (22.05). The ranks of the node with fewer share GPUs or find none.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus=4
#SBATCH --ntasks-per-node=2
#SBATCH --time=2:00:00
srun hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=2:00:00
srun hostname
```

## References

- sbatch(1), --gpus
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.options import place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.request import Request

NAME = "uneven-gpus"
CODE = "SG203"
SEVERITY = WARNING

# No node has more.
_MOST_OF_A_NODE = 16


def check(job: Job) -> Iterator[Finding]:
    for request in job.script.requests:
        directive, gpus = request.directive("gpus"), request.gpus
        if directive is None or gpus is None or _is_fixed(request):
            continue
        nodes = max(request.total_nodes or 1, request.nodes[0] if request.nodes else 1)
        if nodes == 1 and (gpus > _MOST_OF_A_NODE or _expects_nodes(job, request)):
            nodes = 2
        if nodes > 1 and gpus > nodes:
            count = request.total_nodes
            fix = "write --gpus-per-node"
            if count is not None and gpus % count == 0:
                fix = f"write --gpus-per-node={gpus // count}"
            yield Finding(
                place(directive),
                f"{gpus} GPUs in all over {count or 'several'} nodes",
                "Slurm takes them where they are free: some nodes give more than others",
                fix,
            )


def _expects_nodes(job: Job, request: Request) -> bool:
    """Whether tasks in a number of nodes that Slurm may choose look for the first of these."""
    is_open = request.nodes is None and not request.gives("nodes", "nodelist")
    return is_open and (request.ntasks or 1) > 1 and "NODELIST" in job.text


def _is_fixed(request: Request) -> bool:
    """Whether each node's share follows from something else."""
    if request.gpus_per_node is not None or request.gives("gpus-per-socket"):
        return True
    return request.gives("gpus-per-task") and request.gives("ntasks-per-node")
