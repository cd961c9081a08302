r"""The launcher is not told that there are several nodes.

## What it does

Finds torchrun, accelerate and deepspeed on several nodes without `--nnodes` (`--num_machines`,
`--num_nodes`), with a 1 there, or with `--standalone`. Launchers whose program is given the
task's number, a seed for instance, are taken to be runs of their own.

## Why is this bad

Without it a launcher believes that its node is the only one. Each node trains a model of its
own, with the whole data and without the others, and all write the same checkpoints. Started by
the batch shell, the launcher leaves the other nodes idle.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
srun torchrun --nproc_per_node=4 train.py
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

- torchrun: https://docs.pytorch.org/docs/stable/elastic/run.html
- accelerate launch: https://huggingface.co/docs/accelerate/package_reference/cli
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts import intent, launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.starters import ACCELERATE, DEEPSPEED, TORCH_LAUNCH, TORCHRUN
from slurmgen.reading.shell.words import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch

NAME = "standalone-multinode"
CODE = "SG305"
SEVERITY = ERROR
HIDES = ("world-size-mismatch", "gpus-idle")

_OPTIONS = {
    TORCHRUN: "--nnodes and --rdzv_endpoint",
    TORCH_LAUNCH: "--nnodes, --node_rank and --master_addr",
    ACCELERATE: "--num_machines, --machine_rank and --main_process_ip",
    DEEPSPEED: "--hostfile, and start it once without srun",
}


def check(job: Job) -> Iterator[Finding]:
    if job.is_submitter:
        return
    for launch in job.trainings:
        launcher = launch.launcher
        if launcher is None or launcher.kind not in _OPTIONS:
            continue
        if launching.nodes_asked(job, launch) != 1 or intent.runs_apart(launch):
            continue
        nodes = _idle_nodes(job, launch) if launch.where == BATCH else _own_nodes(job, launch)
        if nodes is None or nodes < 2:
            continue
        why = f"Each of the {nodes} nodes trains a model of its own, and all write the same files"
        if launch.where == BATCH:
            why = "It uses the first node alone, and the GPUs of the others idle"
        word = launcher.option("standalone", "nnodes", "num_machines", "num_nodes")
        said = "told of one node" if word is not None else "not told of the other nodes"
        yield Finding(
            launching.launcher_place(job, launch),
            f"{launcher.kind} is {said}, though the job has {nodes}",
            why,
            f"give it {_OPTIONS[launcher.kind]}",
            also=others(launching.option_place(job, launch, "nodes")),
        )
        return


def _own_nodes(job: Job, launch: Launch) -> int | None:
    """The nodes that each have such a launcher."""
    extent = job.extent(launch)
    if launch.launcher is not None and launch.launcher.kind == DEEPSPEED:
        # Several on a node: it should not be there at all, which is double-launch.
        return extent.nodes if extent.tasks_per_node == 1 else None
    return extent.nodes


def _idle_nodes(job: Job, launch: Launch) -> int | None:
    """The job's nodes where a launcher in the batch shell is all that it starts; else None."""
    if launch.launcher is not None and launch.launcher.kind == DEEPSPEED:
        return None
    nodes = job.request.total_nodes
    if nodes is None or nodes < 2 or launching.reaches_nodes(job) or launching.spread(job):
        return None
    return nodes
