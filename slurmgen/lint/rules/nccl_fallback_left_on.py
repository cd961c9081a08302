"""NCCL is kept from the fast way, as one does while hunting a fault.

## What it does

Finds NCCL_IB_DISABLE=1 and NCCL_NET=Socket in jobs on several nodes, and NCCL_P2P_DISABLE=1 and
NCCL_SHM_DISABLE=1 where a node has several GPUs. Cards for which P2P has to be off (GeForce RTX)
are left alone where the job names them.

## Why is this bad

The ranks talk over TCP in place of InfiniBand, or through host memory in place of NVLink: right,
and many times slower.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export NCCL_IB_DISABLE=1
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

- https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-disable
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.settings import settings
from slurmgen.lint.facts.spread import spans_nodes
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.settings import Setting
    from slurmgen.lint.job import Job

NAME = "nccl-fallback-left-on"
CODE = "SG418"
SEVERITY = WARNING

_BETWEEN_NODES = {"NCCL_IB_DISABLE": "InfiniBand", "NCCL_NET": "InfiniBand"}
_ON_A_NODE = {
    "NCCL_P2P_DISABLE": "NVLink and direct access between GPUs",
    "NCCL_SHM_DISABLE": "shared memory",
    "NCCL_P2P_LEVEL": "NVLink and direct access between GPUs",
}
# Cards without P2P; accelerate asks for the setting there.
_WITHOUT_P2P = re.compile(r"rtx|gtx|geforce|titan|[2345]0[6-9]0|quadro", re.IGNORECASE)


def check(job: Job) -> Iterator[Finding]:
    found = [setting for setting in settings(job) if _slows(job, setting)]
    if not found:
        return
    first = found[0]
    lost = {**_BETWEEN_NODES, **_ON_A_NODE}[first.name]
    yield Finding(
        first.place,
        f"{first.name}={first.literal} is left on",
        f"NCCL does without {lost}: right, but many times slower",
        "remove it once the fault is found",
        also=tuple(setting.place for setting in found[1:]),
    )


def _slows(job: Job, setting: Setting) -> bool:
    literal = (setting.literal or "").strip().lower()
    if _WITHOUT_P2P.search(job.request.gpu_type or "") or setting.conditional:
        return False
    if setting.name == "NCCL_IB_DISABLE":
        return literal.isdigit() and literal != "0" and _spans(job, setting)
    if setting.name == "NCCL_NET":
        return literal == "socket" and _spans(job, setting)
    gpus = job.request.node_gpus
    if setting.name in ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"):
        return literal.isdigit() and literal != "0" and (gpus is None or gpus > 1)
    return setting.name == "NCCL_P2P_LEVEL" and literal in ("loc", "0") and (gpus or 2) > 1


def _spans(job: Job, setting: Setting) -> bool:
    return any(spans_nodes(job, launch) for launch in setting.launches)
