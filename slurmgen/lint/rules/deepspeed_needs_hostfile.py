"""deepspeed is to use several nodes, but gets no list of them.

## What it does

Finds the deepspeed launcher in a job with several nodes without `--hostfile`.

## Why is this bad

deepspeed does not read Slurm's variables. It takes the nodes from a host file (`/job/hostfile`
where none is named) and logs in to each by ssh or pdsh. Without the file it trains on the
first node alone, or stops with "Num nodes is >1 but no extra nodes available via hostfile".

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=2:00:00
deepspeed --num_nodes=2 --num_gpus=8 finetune.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=2:00:00
hosts=hosts.$SLURM_JOB_ID
scontrol show hostnames "$SLURM_JOB_NODELIST" | sed 's/$/ slots=8/' > "$hosts"
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 10000))
deepspeed --hostfile="$hosts" --master_addr="$head" --master_port="$port" finetune.py
```

## References

- DeepSpeed, Resource Configuration (multi-node): https://www.deepspeed.ai/getting-started/
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts import launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.starters import ACCELERATE, DEEPSPEED
from slurmgen.reading.shell.words import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch

NAME = "deepspeed-needs-hostfile"
CODE = "SG304"
SEVERITY = ERROR
HIDES = ("gpus-idle",)


def check(job: Job) -> Iterator[Finding]:
    if job.is_submitter or "/job/hostfile" in job.text or "DLTS_HOSTFILE" in job.text:
        return
    for launch in job.trainings:
        launcher = launch.launcher
        if launcher is None or not _wants_nodes(job, launch):
            continue
        yield Finding(
            launching.launcher_place(job, launch),
            f"{launcher.kind} for several nodes has no --hostfile",
            "Only a host file tells it of the other nodes: it uses the first one alone, or stops "
            'with "no extra nodes available via hostfile"',
            "write the file from `scontrol show hostnames` with a line `NODE slots=GPUS` for each, "
            "which needs ssh between the nodes, or start torchrun with srun",
            also=others(launching.request_place(job.request, "nodes")),
        )
        return


def _wants_nodes(job: Job, launch: Launch) -> bool:
    """Whether a deepspeed without a host file is meant for several nodes."""
    launcher = launch.launcher
    assert launcher is not None
    if {"hostfile", "no_ssh", "deepspeed_hostfile"} & set(launcher.options):
        return False
    if launcher.kind == ACCELERATE:
        # With these it calls deepspeed's own runner (accelerate/utils/launch.py).
        method = launcher.option("deepspeed_multinode_launcher")
        return method is not None and method.literal not in (None, "standard", "nossh")
    if launcher.kind != DEEPSPEED or launcher.opaque:
        return False
    asked = launching.nodes_asked(job, launch)
    if launch.where == BATCH:
        nodes = job.request.total_nodes
        if asked is not None and asked > 1:
            return True
        return nodes is not None and nodes > 1 and not launching.spread(job)
    return job.extent(launch).tasks == 1 and asked is not None and asked > 1
