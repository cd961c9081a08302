r"""A launcher is started once for each GPU instead of once for each node.

## What it does

Finds torchrun, accelerate, deepspeed and mpirun inside a step with several tasks on a node, a
deepspeed that reaches the other nodes itself but is started on each of them, and programs that
call mp.spawn in each of several tasks of a node.

`srun --ntasks-per-node=1` alone does not mend it: srun takes the number of tasks from
SLURM_NTASKS, which the job has set, and ignores the option with a warning.

## Why is this bad

srun starts a task per GPU, and each task starts as many processes again: 4 x 4 on a node of 4
GPUs. They fight for the GPUs ("Duplicate GPU detected") and for the port ("EADDRINUSE", seen
with torch 2.13 whatever the port is), or wait for ranks that there are not.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
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

- srun(1), --ntasks-per-node
- torchrun: https://docs.pytorch.org/docs/stable/elastic/run.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts import intent, launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.starters import DEEPSPEED, HOROVODRUN, MPIRUN
from slurmgen.reading.shell.words import TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.extent import Extent
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch

NAME = "double-launch"
CODE = "SG303"
SEVERITY = ERROR
HIDES = ("world-size-mismatch", "gpus-idle")

_HOSTS = ("hostfile", "hosts", "H", "host")


def check(job: Job) -> Iterator[Finding]:
    for launch in job.launches:
        if launch.where != TASK or (launch.step is None and launch.mpirun is None):
            continue
        extent = job.extent(launch)
        if extent.tasks is None or extent.tasks < 2:
            continue
        finding = _of_a_launcher(job, launch, extent) or _of_spawn(job, launch, extent)
        if finding is not None:
            yield finding


def _of_a_launcher(job: Job, launch: Launch, extent: Extent) -> Finding | None:
    launcher, tasks = launch.launcher, extent.tasks_per_node or 1
    if launcher is None:
        return None
    if launch.step is not None and launch.mpirun is not None:
        return _finding(
            job,
            launch,
            f"mpirun is started in each of {extent.tasks} tasks",
            "Each of them starts all the ranks once more",
            "start the program with srun alone, or with mpirun alone",
        )
    if launcher.kind == MPIRUN:
        return None
    if _reaches_all(launch) and "no_ssh" not in launcher.options:
        return _finding(
            job,
            launch,
            f"{launcher.kind} for all nodes is started in each of {extent.tasks} tasks",
            "It logs in to every node of its list by itself, now from each of them: as many "
            "trainings as tasks want the same GPUs and the same port",
            f"start {launcher.kind} once, in the batch shell and without srun, or start torchrun "
            "with a task per node",
        )
    if tasks < 2 or _is_an_agent(job, launch, extent):
        return None
    start = f"{tasks} {launcher.kind} are started on each node"
    return _finding(
        job,
        launch,
        start,
        f"Each starts {extent.workers or 'its'} processes of its own, which want the same GPUs "
        "and the same port",
        _remedy(launch, extent),
    )


def _of_spawn(job: Job, launch: Launch, extent: Extent) -> Finding | None:
    tasks = extent.tasks_per_node or 1
    run = launching.run_of(job, launch) if launch.is_training and tasks > 1 else None
    spawned = run.spawned if run is not None else None
    if spawned is None or spawned < 2 or intent.runs_apart(launch):
        return None
    return _finding(
        job,
        launch,
        f"{tasks} processes are started on each node, and each spawns {spawned}",
        "mp.spawn starts a process per GPU in every task: they want the same GPUs and ports",
        _remedy(launch, extent),
    )


def _finding(job: Job, launch: Launch, message: str, why: str, fix: str) -> Finding:
    place = launching.start_place(job, launch)
    options = launching.option_place(job, launch, *launching.TASK_OPTIONS)
    return Finding(place, message, why, fix, also=others(options))


def _remedy(launch: Launch, extent: Extent) -> str:
    asked = launch.step.option("ntasks-per-node") if launch.step is not None else None
    if asked is not None and asked.literal == "1":
        nodes = extent.nodes or "$SLURM_NNODES"
        return (
            "srun ignores --ntasks-per-node=1 because SLURM_NTASKS says otherwise: ask for "
            f"--ntasks-per-node=1 in the job, or add --nodes={nodes} --ntasks={nodes}"
        )
    kind = launch.launcher.kind if launch.launcher is not None else "mp.spawn"
    return f"ask for --ntasks-per-node=1, or keep the tasks and leave out {kind}"


def _reaches_all(launch: Launch) -> bool:
    """Whether the launcher goes to the other nodes by itself."""
    launcher = launch.launcher
    assert launcher is not None
    if launcher.kind == DEEPSPEED:
        nodes = launcher.option("num_nodes")
        return "hostfile" in launcher.options or (nodes is not None and nodes.literal != "1")
    return launcher.kind == HOROVODRUN and launcher.option(*_HOSTS) is not None


def _is_an_agent(job: Job, launch: Launch, extent: Extent) -> bool:
    """Whether a launcher of one process per task is meant: an agent per task, or runs apart."""
    if extent.workers != 1:
        return False
    return launching.nodes_asked(job, launch) == extent.tasks or intent.runs_apart(launch)
