r"""A launcher for several nodes is started on the first one only.

## What it does

Finds torchrun, `python -m torch.distributed.run` and `accelerate launch` that are told of
several nodes and started by the batch shell itself, without srun, mpirun or ssh.

## Why is this bad

The batch shell runs on the first node alone. The launcher waits there for the launchers of the
other nodes, which nothing starts: the rendezvous times out after minutes, or never (torch 2.13
prints nothing while it waits). The other nodes idle.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 10000))
torchrun --nnodes=2 --nproc_per_node=4 --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d \
    --rdzv_endpoint="$head:$port" train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 10000))
srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d \
    --rdzv_endpoint="$head:$port" train.py
```

## References

- srun(1)
- torchrun: https://docs.pytorch.org/docs/stable/elastic/run.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts import launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.starters import ACCELERATE, DEEPSPEED, TORCH_LAUNCH, TORCHRUN
from slurmgen.reading.shell.words import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch

NAME = "multinode-launcher-no-srun"
CODE = "SG302"
SEVERITY = ERROR
HIDES = ("gpus-idle",)

# With these accelerate calls deepspeed's runner, which logs in to the nodes.
_REMOTE = {"deepspeed_hostfile", "deepspeed_multinode_launcher"}


def check(job: Job) -> Iterator[Finding]:
    nodes = job.request.total_nodes
    if job.is_submitter or nodes == 1 or launching.reaches_nodes(job):
        return
    for launch in job.trainings:
        asked = launching.nodes_asked(job, launch)
        if launch.where != BATCH or not _is_one_of_several(launch) or asked == 1:
            continue
        if nodes is None and asked is None:
            continue
        launcher = launch.launcher
        assert launcher is not None
        # A configuration that nobody has read may speak of one node.
        is_known = asked is not None or not launcher.opaque
        yield Finding(
            launching.start_place(job, launch),
            f"{launcher.kind} for {nodes or asked} nodes is started on the first one only",
            "The batch shell runs on the first node; there it waits for the launchers of the "
            "others, which nobody starts",
            f"start one on each node: `srun --ntasks-per-node=1 {launcher.kind} ...` in a job "
            "with --ntasks-per-node=1",
            None if is_known else WARNING,
            others(launching.request_place(job.request, "nodes")),
        )
        return


def _is_one_of_several(launch: Launch) -> bool:
    """Whether the launcher is one that has to be started on each node."""
    launcher = launch.launcher
    if launcher is None:
        return False
    if launcher.kind == DEEPSPEED:
        return "no_ssh" in launcher.options
    if launcher.kind == ACCELERATE:
        return not _REMOTE & set(launcher.options)
    return launcher.kind in (TORCHRUN, TORCH_LAUNCH)
