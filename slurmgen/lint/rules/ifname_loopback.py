"""NCCL or gloo is told to use the loopback interface, in a job on several nodes.

## What it does

Finds `lo` in NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME and TP_SOCKET_IFNAME. `^lo`, everything but
lo, is left alone.

## Why is this bad

The ranks offer each other 127.0.0.1, and those of other nodes connect to themselves: "Connection
refused".

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export NCCL_SOCKET_IFNAME=lo
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
export NCCL_SOCKET_IFNAME=ib0
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python train.py'
```

## References

- https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-socket-ifname
- https://docs.pytorch.org/docs/stable/distributed.html#choosing-the-network-interface-to-use
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.interfaces import NAMES
from slurmgen.lint.facts.settings import settings
from slurmgen.lint.facts.spread import spans_nodes
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "ifname-loopback"
CODE = "SG416"
SEVERITY = ERROR

_LOOPBACK = re.compile(r"=?lo0?(,lo0?)*")


def check(job: Job) -> Iterator[Finding]:
    found = [
        setting
        for setting in settings(job)
        if setting.name in NAMES
        and _LOOPBACK.fullmatch((setting.literal or "").strip())
        and any(spans_nodes(job, launch) for launch in setting.launches)
    ]
    if found:
        yield Finding(
            found[0].place,
            f"{found[0].name} is {found[0].literal}, in a job on several nodes",
            "ranks on different nodes can't reach each other through the loopback interface",
            "name the interface of the network between the nodes (`ip link` lists them), or drop "
            "the line: by itself NCCL never takes lo where there is another",
            also=tuple(setting.place for setting in found[1:]),
        )
