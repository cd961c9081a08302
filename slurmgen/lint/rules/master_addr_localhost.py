"""The master address is localhost, in a job on several nodes.

## What it does

Finds `localhost`, `127.0.0.1`, `::1` and `0.0.0.0` as the address at which ranks on several
nodes meet: in MASTER_ADDR, `--master_addr`, `--rdzv_endpoint`, `--main_process_ip`, in the
arguments of the training, and in what its Python program passes to `init_process_group`. And
torchrun that takes it by default: c10d without `--rdzv_endpoint` does, whatever `--master_addr`
says.

## Why is this bad

Every node then looks for rank 0 on itself. The ranks of all nodes but the first wait for it
until the timeout, 10 minutes with NCCL and 30 with gloo (torch 2.13).

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=localhost
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
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

- https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization
- scontrol(1), show hostnames
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.endpoints import HOST, endpoints, is_sure, places
from slurmgen.lint.facts.spread import spans_nodes
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.starters import TORCH_LAUNCH, TORCHRUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "master-addr-localhost"
CODE = "SG402"
SEVERITY = ERROR

# torch/distributed/run.py: with any of them, the default does not count.
_MEETING = ("master_addr", "rdzv_endpoint", "rdzv_backend", "standalone")
_OWN = re.compile(
    r"localhost(\.localdomain)?|ip6-localhost|127(\.\d{1,3}){3}|\[?::1?\]?|0\.0\.0\.0",
    re.IGNORECASE,
)


def check(job: Job) -> Iterator[Finding]:
    found = [
        endpoint
        for endpoint in endpoints(job)
        if endpoint.kind == HOST
        and _OWN.fullmatch((endpoint.literal or "").strip())
        and spans_nodes(job, endpoint.launch)
        and is_sure(job, endpoint)
    ]
    if not found:
        yield from _by_default(job)
        return
    first, *others = places(found)
    literal = (found[0].literal or "").strip()
    yield Finding(
        first,
        f"the master address is {literal}, in a job on several nodes",
        "each node looks for rank 0 on itself: the ranks of all nodes but the first wait for it "
        "until the timeout",
        'use the first node: $(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1), in the '
        "batch shell"
        if found[0].run is None
        else "read MASTER_ADDR from the environment, and export the first node's name in the batch "
        "script",
        also=tuple(others),
    )


def _by_default(job: Job) -> Iterator[Finding]:
    """torchrun for several nodes, and no word of where they meet: 127.0.0.1."""
    for launch in job.trainings:
        launcher = launch.launcher
        if launcher is None or launcher.opaque or launcher.kind not in (TORCHRUN, TORCH_LAUNCH):
            continue
        if not spans_nodes(job, launch):
            continue
        nodes = launcher.option("nnodes")
        backend = launcher.option("rdzv_backend")
        if backend is not None and backend.literal == "c10d" and nodes is not None:
            if launcher.option("rdzv_endpoint", "standalone") is not None or nodes.literal == "1":
                continue
            if "PET_RDZV_ENDPOINT" in launch.environment:
                continue
            yield Finding(
                job.place_of(backend),
                "c10d is given no --rdzv_endpoint, in a job on several nodes",
                "it does not read --master_addr: each node waits for the others at its own "
                "localhost, until the timeout",
                "write --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT in the place of --master_addr and "
                "--master_port",
            )
            return
        if launcher.option(*_MEETING) is not None or launcher.option("node_rank") is None:
            continue
        if "PET_MASTER_ADDR" in launch.environment:
            continue
        yield Finding(
            job.place(launcher.start, launcher.end),
            "torchrun is given no --master_addr, in a job on several nodes",
            "it takes 127.0.0.1: each node looks for rank 0 on itself, and waits until the timeout",
            "add --master_addr with the first node: "
            '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1), in the batch shell',
        )
        return
