"""The world size is not the number of processes that start.

## What it does

Compares what a job says of its size with what starts: WORLD_SIZE, `--nnodes`, `--num_machines`
and `--num_nodes`, `--nproc_per_node`, `--num_processes`, and the `world_size` that a Python
program passes to `init_process_group`.

## Why is this bad

With too large a world size the ranks wait for others that never come (torch 2.13: "1/2 clients
joined", then a timeout). With too small a one, a rank lies outside its own group. More processes
on a node than it has GPUs end in "invalid device ordinal".

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export WORLD_SIZE=$SLURM_NNODES
srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID exec python train.py'
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
export WORLD_SIZE=$SLURM_NTASKS
srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID exec python train.py'
```

## References

- https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group
- https://docs.pytorch.org/docs/stable/elastic/run.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.counts import counted, said_in
from slurmgen.lint.facts.python import runs
from slurmgen.lint.facts.settings import settings
from slurmgen.lint.facts.spread import most_nodes
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.distributed import groups, spawns
from slurmgen.reading.programs.facts import whole
from slurmgen.reading.shell.starters import ACCELERATE, DEEPSPEED, MPIRUN, TORCH_LAUNCH, TORCHRUN
from slurmgen.reading.shell.words import BATCH, TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Value
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Word

NAME = "world-size-mismatch"
CODE = "SG412"
SEVERITY = ERROR
HIDES = ("gpus-idle",)

_WAIT = "ranks wait for others that never start, until the timeout"


def check(job: Job) -> Iterator[Finding]:
    if not job.script.directives:
        # Its size is told on sbatch's command line.
        return
    seen: set[Place] = set()
    for finding in (*_of_environment(job), *_of_launchers(job), *_of_programs(job)):
        if finding.place not in seen:
            seen.add(finding.place)
            yield finding


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _start(count: int) -> str:
    return "1 process starts" if count == 1 else f"{count} processes start"


# --- WORLD_SIZE ------------------------------------------------------------------------------


def _of_environment(job: Job) -> Iterator[Finding]:
    for launch in job.launches:
        assignment = launch.environment.get("WORLD_SIZE")
        if assignment is None or assignment.conditional or not _is_direct(launch):
            continue
        said, real = said_in(job, launch, assignment.value), _processes(job, launch)
        if said is None or real is None or said == real or said < 1:
            continue
        if job.program(launch) is None and _may_spawn(job, launch, said):
            continue
        yield Finding(
            job.place_of(assignment),
            f"WORLD_SIZE is {said}, but {_start(real)}",
            _WAIT if said > real else f"ranks from {said} on lie outside the group, and fail",
            "write WORLD_SIZE=$SLURM_NTASKS",
        )


def _is_direct(launch: Launch) -> bool:
    """Whether srun starts the ranks: torchrun and its relatives set the variable themselves."""
    if launch.where != TASK or (launch.launcher is not None and launch.launcher.kind != MPIRUN):
        return False
    if launch.is_training:
        return True
    return any(word.text.endswith(".py") for word in launch.words)


def _processes(job: Job, launch: Launch) -> int | None:
    program = job.program(launch)
    if program is not None:
        run = next((run for run in runs(job) if run.launch is launch), None)
        return run.processes if run is not None else None
    return job.extent(launch).tasks


def _may_spawn(job: Job, launch: Launch, said: int) -> bool:
    """Whether a program that can't be read may start a process for each GPU itself."""
    extent = job.extent(launch)
    gpus = extent.gpus_per_task
    if extent.tasks is None or gpus is None or gpus < 2:
        return False
    return said == extent.tasks * gpus and extent.tasks_per_node == 1


# --- options of the launchers ----------------------------------------------------------------


def _of_launchers(job: Job) -> Iterator[Finding]:
    for launch in job.trainings:
        launcher = launch.launcher
        if launcher is None or launcher.opaque or launcher.kind == MPIRUN:
            continue
        yield from _nodes(job, launch)
        if launcher.kind in (TORCHRUN, TORCH_LAUNCH, DEEPSPEED):
            yield from _workers(job, launch, launcher.option("nproc_per_node", "num_gpus"))
        elif launcher.kind == ACCELERATE:
            yield from _total(job, launch, launcher.option("num_processes"))


def _nodes(job: Job, launch: Launch) -> Iterator[Finding]:
    launcher = launch.launcher
    word = launcher.option("nnodes", "num_machines", "num_nodes") if launcher else None
    said = None if word is None else said_in(job, launch, word)
    request = job.request_of(launch)
    extent = job.extent(launch)
    if word is None or said is None or extent.nodes is None or said < 2:
        return
    most = most_nodes(request)
    # A launcher on one node after the other, or in the batch shell alone: other rules speak.
    if most is None or said in (extent.nodes, most, *(request.nodes or ())):
        return
    if launch.where == BATCH and most > 1:
        return
    if extent.nodes == 1 and most > 1 and said < most:
        return
    yield Finding(
        job.place_of(word),
        f"the launcher is told of {said} nodes, the job runs on {extent.nodes}",
        _WAIT
        if said > extent.nodes
        else "the launchers of the other nodes find no place, and fail",
        "write $SLURM_NNODES",
    )


def _workers(job: Job, launch: Launch, word: Word | None) -> Iterator[Finding]:
    said = None if word is None else said_in(job, launch, word)
    gpus = _visible(job, launch)
    if word is None or said is None or gpus is None or said <= gpus:
        return
    yield Finding(
        job.place_of(word),
        f"the launcher starts {said} processes on a node, where the job has {_gpus(gpus)}",
        'those without a GPU of their own fail with "invalid device ordinal"',
        "write $SLURM_GPUS_ON_NODE, or ask for more GPUs",
    )


def _total(job: Job, launch: Launch, word: Word | None) -> Iterator[Finding]:
    """accelerate's --num_processes: of all nodes together."""
    said = None if word is None else said_in(job, launch, word)
    gpus = _visible(job, launch)
    launcher = launch.launcher
    machines = launcher.option("num_machines") if launcher is not None else None
    count = 1 if machines is None else said_in(job, launch, machines)
    if word is None or said is None or gpus is None or not count:
        return
    if said > count * gpus:
        yield Finding(
            job.place_of(word),
            f"accelerate starts {said} processes in all, the job has {_gpus(count * gpus)}",
            'those without a GPU of their own fail with "invalid device ordinal"',
            "write nodes times GPUs per node: $((SLURM_NNODES * SLURM_GPUS_ON_NODE))",
        )
    elif count > 1 and (said == gpus or said % count):
        yield Finding(
            job.place_of(word),
            f"--num_processes is {said}, but counts the processes of all {count} machines together",
            f"the job has {count * gpus} GPUs, and most of them stay idle"
            if said == gpus and not said % count
            else "the processes can't be shared out evenly among the machines",
            "write nodes times GPUs per node: $((SLURM_NNODES * SLURM_GPUS_ON_NODE))",
            None if said == gpus else WARNING,
        )


def _visible(job: Job, launch: Launch) -> int | None:
    """The GPUs that one launcher has; None where tasks share them, or none is known."""
    extent = job.extent(launch)
    request = job.request_of(launch)
    step = launch.step
    is_bound = request.gives("gpus-per-task", "ntasks-per-gpu", "gpu-bind", "tres-per-task") or (
        step is not None
        and step.option("gpus-per-task", "ntasks-per-gpu", "gpu-bind", "gres") is not None
    )
    if is_bound or extent.tasks_per_node not in (1, None):
        return None
    return extent.gpus_per_task or None


# --- Python ----------------------------------------------------------------------------------


def _of_programs(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        yield from _spawned(run)
        real = run.processes
        if real is None or (run.launch.where == BATCH and run.launch.launcher is None):
            # A program that srun should have started: another rule says so.
            if run.spawned == 1 or real is None:
                continue
        for place, value in _world_sizes(run):
            said = counted(run, run.settled(value))
            if said is not None and said != real:
                yield Finding(
                    place,
                    f"the world size is {said}, but {_start(real)}",
                    _WAIT if said > real else f"ranks from {said} on lie outside the group",
                    "read it from the environment: WORLD_SIZE, or SLURM_NTASKS under srun",
                )


def _spawned(run: Run) -> Iterator[Finding]:
    """mp.spawn with more processes than there are GPUs."""
    gpus = run.extent.gpus_per_task
    for call in spawns(run.program) if gpus and "cuda" in run.program.words else ():
        count = call.argument(2, "nprocs")
        said = whole(run.settled(count)) if count is not None else None
        if said is not None and gpus is not None and said > gpus and run.reaches(call):
            yield Finding(
                call.place,
                f"{said} processes are spawned, where the task has {_gpus(gpus)}",
                'those without a GPU of their own fail with "invalid device ordinal"',
                "spawn torch.cuda.device_count() processes, or ask for more GPUs",
            )


def _world_sizes(run: Run) -> Iterator[tuple[Place, Value]]:
    for group in groups(run.program):
        if group.world_size is not None and run.reaches(group.call):
            yield group.call.argument_place(3, "world_size"), group.world_size
    if _is_direct(run.launch):
        for setting in settings(run.job):
            if setting.name == "WORLD_SIZE" and setting.value is not None and setting.run:
                if setting.run.launch is run.launch:
                    yield setting.place, setting.value
