"""`--ntasks` is not `--nodes` times `--ntasks-per-node`.

## What it does

Finds the three options together where they contradict each other. Five tasks on two nodes with
three tasks each at most do not.

## Why is this bad

`--ntasks` wins, and `--ntasks-per-node` becomes a maximum: with `--nodes=2 --ntasks=4
--ntasks-per-node=4` there are four ranks on eight GPUs, and every world size that is computed from
the other two is wrong. More tasks than the two allow are refused: "Requested node configuration is
not available". Seen on 20.11 to 26.05.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=4
#SBATCH --time=2:00:00
srun hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=2:00:00
srun hostname
```

## References

- sbatch(1), --ntasks, --ntasks-per-node
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.options import place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "ntasks-contradiction"
CODE = "SG201"
SEVERITY = ERROR
HIDES = ("tasks-gpus-mismatch", "world-size-mismatch")


def check(job: Job) -> Iterator[Finding]:
    for request in job.script.requests:
        nodes, ntasks, each = request.nodes, request.ntasks, request.ntasks_per_node
        total, per_node = request.directive("ntasks"), request.directive("ntasks-per-node")
        if nodes is None or ntasks is None or each is None or total is None or per_node is None:
            continue
        least, most = nodes
        # Fewer tasks than nodes are another rule's.
        is_fewer = least <= ntasks < each * least and each != -(-ntasks // least)
        is_more = ntasks > each * most
        if not (is_fewer or is_more):
            continue
        wanted = each * (least if is_fewer else most)
        yield Finding(
            place(total),
            f"{ntasks} tasks, and {least if is_fewer else most} nodes with {each} tasks each are "
            f"{wanted}",
            "--ntasks wins, and --ntasks-per-node becomes a maximum"
            if is_fewer
            else "Slurm says: Requested node configuration is not available",
            "give only --nodes and --ntasks-per-node",
            also=(place(per_node),),
        )
