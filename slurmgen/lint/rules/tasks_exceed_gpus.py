"""More tasks of a training start on a node than it has GPUs.

## What it does

Finds trainings that srun or mpirun starts with more tasks on a node than the job has GPUs there.

Tasks may share a GPU on purpose: those that are given different seeds or files, a job with
--ntasks-per-gpu, a script that starts NVIDIA's MPS, and programs that can be read and use MPI or
the CPU are passed over.

## Why is this bad

Slurm shows all tasks the same GPUs and counts SLURM_LOCALID on past them. A rank without a GPU
of its own fails with "invalid device ordinal", or shares one, which NCCL refuses as
"Duplicate GPU detected".

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=2
#SBATCH --time=2:00:00
srun python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --time=2:00:00
srun python train.py
```

## References

- sbatch(1), --ntasks-per-node and --gpus-per-node
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts import intent, launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.slurm.request import Request

NAME = "tasks-exceed-gpus"
CODE = "SG204"
SEVERITY = ERROR


def check(job: Job) -> Iterator[Finding]:
    if "nvidia-cuda-mps" in job.text:
        return
    for launch in job.trainings:
        request = job.request_of(launch)
        # Processes that a task starts are counted by double-launch and world-size-mismatch.
        if _starts(job, launch) or _is_misread(request):
            continue
        # Each task gets GPUs of its own, or shares them because it was said.
        if request.gives("ntasks-per-gpu") or launching.is_bound(request, launch):
            continue
        found = _on_a_node(job, launch) or _in_all(job, launch)
        if found is None or intent.shares_on_purpose(job, launch):
            continue
        tasks, gpus, where = found
        given = launching.option_place(job, launch, *launching.TASK_OPTIONS)
        yield Finding(
            given or launching.start_place(job, launch),
            f"{tasks} tasks start {where}, which has {gpus} GPU{'' if gpus == 1 else 's'}",
            'Those without a GPU of their own fail with "invalid device ordinal" or share one, '
            'which NCCL refuses as "Duplicate GPU detected"',
            "ask for a GPU per task, or start as many tasks as there are GPUs",
            also=others(launching.request_place(request, *launching.GPU_OPTIONS)),
        )
        return


def _is_misread(request: Request) -> bool:
    """Whether `--tasks`, which sbatch takes for --tasks-per-node, was meant for all nodes."""
    directive = request.directive("ntasks-per-node")
    return directive is not None and not directive.spelled.endswith("tasks-per-node")


def _starts(job: Job, launch: Launch) -> bool:
    """Whether a task starts processes of its own."""
    run = launching.run_of(job, launch)
    spawns = run is not None and run.spawned != 1
    return spawns or (launch.launcher is not None and launch.mpirun is not launch.launcher)


def _on_a_node(job: Job, launch: Launch) -> tuple[int, int, str] | None:
    """Tasks and GPUs of the fullest node, where there are more of the former."""
    extent, whole = job.extent(launch), job.request_of(launch).node_gpus
    tasks, gpus = extent.tasks_per_node, extent.gpus_per_node
    if not gpus or tasks is None or tasks <= gpus:
        return None
    # Else srun has taken them away.
    return (tasks, gpus, "on a node") if whole is not None and whole <= gpus else None


def _in_all(job: Job, launch: Launch) -> tuple[int, int, str] | None:
    """The same for the whole job, where --gpus says how many it has."""
    gpus, tasks = job.request_of(launch).gpus, job.extent(launch).tasks
    if gpus is None or tasks is None or tasks <= gpus:
        return None
    return tasks, gpus, "in a job"
