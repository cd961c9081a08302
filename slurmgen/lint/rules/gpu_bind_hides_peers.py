r"""A task is bound to fewer GPUs than its program uses.

## What it does

Finds launchers with more processes per task, Lightning trainers with more devices, and programs
that spawn more processes than the task sees GPUs, because `--gpus-per-task`, `--ntasks-per-gpu`
or `--gpu-bind` gives each task a GPU of its own.

## Why is this bad

From Slurm 21.08 on, `--gpus-per-task=1` hides the other GPUs from a task: it sees one device,
cuda:0. Four processes in that task get "invalid device ordinal" or "Duplicate GPU detected";
Lightning says "You requested gpu: [0, 1, 2, 3]. But your machine only has: [0]".

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-task=1
#SBATCH --time=2:00:00
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 10000))
srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d \
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

- srun(1), --gpus-per-task and --gpu-bind
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts import intent, launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.facts import whole
from slurmgen.reading.programs.frameworks import lightning_trainers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.facts.extent import Extent
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch

NAME = "gpu-bind-hides-peers"
CODE = "SG318"
SEVERITY = ERROR
HIDES = ("gpus-idle",)

_BINDING = ("gpu-bind", "gpus-per-task", "ntasks-per-gpu", "tres-per-task")
_DEVICES = re.compile(
    r"-*(?:\w+\.)*(?:devices|gpus|num[_-]gpus|ngpus(?:[_-]per[_-]node)?|tensor[_-]parallel[_-]size)"
    r"[= ](\d+)"
)


def check(job: Job) -> Iterator[Finding]:
    for launch in job.trainings:
        extent = job.extent(launch)
        if launch.step is None or not launching.is_bound(job.request_of(launch), launch):
            continue
        is_known = extent.gpus_per_task is not None
        # On most nodes one GPU is nearer than the others.
        seen = extent.gpus_per_task if is_known else 1
        if not seen or (not is_known and not _is_closest(job, launch)):
            continue
        needed = _needed(job, launch, extent)
        if needed is None or needed[0] <= seen:
            continue
        count, place = needed
        binding = launching.option_place(job, launch, *_BINDING)
        yield Finding(
            binding or launching.start_place(job, launch),
            f"a task sees {seen} GPU{'' if seen == 1 else 's'}, its program uses {count}"
            if is_known
            else f"a task sees the GPUs next to it only, its program uses {count}",
            "The binding hides the other GPUs of the node: the processes get "
            '"invalid device ordinal" or "Duplicate GPU detected"',
            "ask for the GPUs with --gpus-per-node (or --gres), which shows each task all of "
            "its node",
            None if is_known else WARNING,
            others(place),
        )
        return


def _is_closest(job: Job, launch: Launch) -> bool:
    assert launch.step is not None
    word = launch.step.option("gpu-bind")
    text = word.literal if word is not None else job.request_of(launch).gpu_bind
    return (text or "").removeprefix("verbose,") == "closest"


def _needed(job: Job, launch: Launch, extent: Extent) -> tuple[int, Place] | None:
    """How many GPUs a task's program uses, and where it says so."""
    start = launching.start_place(job, launch)
    if launch.launcher is not None and launch.launcher is not launch.mpirun:
        # In several tasks on a node it is double-launch.
        alone = extent.tasks_per_node == 1 and extent.workers is not None
        return (extent.workers or 1, start) if alone else None
    run = launching.run_of(job, launch)
    if run is not None:
        for trainer in lightning_trainers(run.program):
            devices = trainer.keyword("devices")
            count = whole(run.settled(devices)) if devices is not None else None
            # Told to take all, it takes the one that it sees: tasks-gpus-mismatch.
            return (count, trainer.place) if count is not None else None
        if run.spawned is not None and run.spawned > 1 and extent.tasks_per_node == 1:
            return run.spawned, start
        if intent.is_plain(run.program):
            return None
    for text, behind in intent.arguments(launch):
        found = _DEVICES.fullmatch(text) or _DEVICES.fullmatch(f"{text} {behind}")
        if found is not None:
            return int(found[1]), start
    return None
