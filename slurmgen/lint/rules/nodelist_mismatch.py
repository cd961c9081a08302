"""The nodes that are named do not fit the number of nodes, or are excluded.

## What it does

Finds more nodes in `--nodelist` than `--nodes` allows, and nodes that are both in `--nodelist` and
in `--exclude`. Fewer names than nodes are fine: Slurm adds others.

## Why is this bad

Up to 22.05 sbatch refuses the job: "invalid number of nodes (-N 2-1)". 24.11 takes it, and gives
it as many of the named nodes as `--nodes` says: a warning, where that is known to be the Slurm.
A node that is named and excluded is never given.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --nodelist=n[1-2]
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --nodelist=n[1-2]
#SBATCH --time=2:00:00
hostname
```

## References

- sbatch(1), --nodelist
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.errors import Refusal
from slurmgen.lint.facts.options import expands, place
from slurmgen.lint.finding import Finding
from slurmgen.slurm.grammars.nodes import expand_hostlist

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.request import Request

NAME = "nodelist-mismatch"
CODE = "SG118"
SEVERITY = ERROR

# Refused by 22.05; none between the two was seen.
_TAKEN_SINCE = "24.11"


def check(job: Job) -> Iterator[Finding]:
    for request in job.script.requests:
        named = _hosts(request, "nodelist")
        nodelist, nodes = request.directive("nodelist"), request.directive("nodes")
        exclude = request.directive("exclude")
        if nodelist is None or not named:
            continue
        if nodes is not None and request.nodes is not None and len(named) > request.nodes[1]:
            is_taken = job.slurm is not None and job.slurm >= _TAKEN_SINCE
            most = request.nodes[1]
            yield Finding(
                place(nodelist),
                f"{len(named)} nodes are named, and --nodes={nodes.value}",
                f"the job gets {most} of them"
                if is_taken
                else f"sbatch says: invalid number of nodes (-N {len(named)}-{most})",
                f"write --nodes={len(named)}, or name fewer",
                WARNING if is_taken else None,
                also=(place(nodes),),
            )
        both = sorted(named & _hosts(request, "exclude"))
        if both and exclude is not None:
            yield Finding(
                place(exclude),
                f"{', '.join(both[:4])} {'is' if len(both) == 1 else 'are'} named and excluded",
                "the job is refused, or waits for ever",
                "remove the names from one of the lists",
                also=(place(nodelist),),
            )


def _hosts(request: Request, option: str) -> set[str]:
    """The hosts of a list; empty where it is a file or can't be read."""
    text = request.value(option) or ""
    if "/" in text or expands(text):
        return set()
    try:
        return set(expand_hostlist(text))
    except Refusal:
        return set()
