"""There are more nodes than tasks.

## What it does

Finds `--ntasks` smaller than `--nodes`, or than the number of nodes in `--nodelist`.

## Why is this bad

Slurm gives the job only as many nodes as it has tasks ("can't run 1 processes on 2 nodes, setting
nnodes to 1"), and a launcher that is told of two nodes waits for the other one for ever.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=1
#SBATCH --time=2:00:00
srun hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=2:00:00
srun hostname
```

## References

- sbatch(1), --ntasks
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.errors import Refusal
from slurmgen.lint.facts.options import place
from slurmgen.lint.finding import Finding
from slurmgen.slurm.grammars.nodes import expand_hostlist

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.request import Request

NAME = "ntasks-fewer-than-nodes"
CODE = "SG202"
SEVERITY = ERROR
HIDES = ("world-size-mismatch",)


def check(job: Job) -> Iterator[Finding]:
    for request in job.script.requests:
        ntasks = request.directive("ntasks")
        nodes = request.directive("nodes") or request.directive("nodelist")
        if ntasks is None or nodes is None or request.ntasks is None:
            continue
        least = request.nodes[0] if request.nodes is not None else _named(request)
        if 0 < request.ntasks < least:
            yield Finding(
                place(ntasks),
                f"{request.ntasks} task{'s' * (request.ntasks > 1)} on {least} nodes",
                f"Slurm takes {request.ntasks} of the nodes: no node is without a task",
                "write --ntasks-per-node=1 in place of --ntasks",
                also=(place(nodes),),
            )


def _named(request: Request) -> int:
    """The number of nodes in --nodelist, 0 where it can't be read."""
    text = request.nodelist or ""
    try:
        return 0 if "/" in text else len(set(expand_hostlist(text)))
    except Refusal:
        return 0
