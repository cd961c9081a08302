"""The port lies where the kernel takes ports for outgoing connections.

## What it does

Finds master ports that are, or can be, between 32768 and 60999.

## Why is this bad

Linux takes the port of every outgoing connection from that range. On a busy node (file systems,
MPI, other jobs) rank 0 now and then finds its port taken and fails with "address already in
use", although no other training runs there.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((49152 + SLURM_JOB_ID % 16384))
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python train.py'
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python train.py'
```

## References

- ip(7), ip_local_port_range
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.endpoints import places
from slurmgen.lint.facts.ports import EPHEMERAL, EPHEMERAL_HIGH, EPHEMERAL_LOW, faults
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "port-ephemeral"
CODE = "SG411"
SEVERITY = WARNING


def check(job: Job) -> Iterator[Finding]:
    found = [fault for fault in faults(job) if fault.kind == EPHEMERAL]
    if not found:
        return
    first, *others = places(fault.endpoint for fault in found)
    ports = found[0].ports
    assert ports is not None
    what = f"is {ports.low}" if ports.is_constant else f"is between {ports.low} and {ports.high}"
    yield Finding(
        first,
        f"the port {what}, among those for outgoing connections",
        f"the kernel hands out {EPHEMERAL_LOW} to {EPHEMERAL_HIGH}: now and then the port is taken",
        "stay below 32768: export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))",
        also=tuple(others),
    )
