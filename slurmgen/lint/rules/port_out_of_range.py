"""The port is no port an ordinary user can have.

## What it does

Finds master ports above 65535 or below 1024, and arithmetic that can come to one; a warning where
it seldom does, as `$RANDOM`.

## Why is this bad

A port has 16 bits, and those below 1024 belong to root. A job id soon has seven digits:
`$SLURM_JOB_ID` is never a port, and `$((60000 + SLURM_JOB_ID % 10000))` is none for four jobs in
ten. torchrun refuses such a port ("must be an integer between 0 and 65536"; 2.13).

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:2
#SBATCH --time=1:00:00
torchrun --nproc_per_node=2 --master_port=$((60000 + SLURM_JOB_ID % 10000)) train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:2
#SBATCH --time=1:00:00
torchrun --nproc_per_node=2 --master_port=$((20000 + SLURM_JOB_ID % 10000)) train.py
```

## References

- ip(7), ip_local_port_range and ip_unprivileged_port_start
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.endpoints import places
from slurmgen.lint.facts.ports import HIGHEST, LOWEST, OUT_OF_RANGE, faults
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.ranges import Range
    from slurmgen.lint.job import Job

NAME = "port-out-of-range"
CODE = "SG409"
SEVERITY = ERROR

# A job that fails once in ten times at most: `$RANDOM`.
_RARELY = 0.1


def check(job: Job) -> Iterator[Finding]:
    found = [fault for fault in faults(job) if fault.kind == OUT_OF_RANGE]
    if not found:
        return
    first, *others = places(fault.endpoint for fault in found)
    ports = found[0].ports
    assert ports is not None
    is_high = ports.high > HIGHEST
    what = (
        f"the port is {ports.low}"
        if ports.is_constant
        else f"the port is between {ports.low} and {ports.high}, depending on the job"
    )
    yield Finding(
        first,
        what,
        f"{'ports end at 65535' if is_high else 'ports below 1024 belong to root'}: "
        "rank 0 cannot listen there",
        "stay between 1024 and 32767: export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))",
        None if _share(ports) > _RARELY else WARNING,
        tuple(others),
    )


def _share(ports: Range) -> float:
    """The part of what the port can be that is out of range."""
    wrong = max(0, LOWEST - ports.low) + max(0, ports.high - HIGHEST)
    return wrong / (ports.high - ports.low + 1)
