"""srun with --cpus-per-task and no number of tasks starts as many as fit.

## What it does

Finds srun with `--cpus-per-task` and without `--ntasks` in a job that gives no number of tasks
either, where the allocation has more CPUs than one task takes: the job has whole nodes
(`--exclusive`), or a larger `--cpus-per-task` than the step.

## Why is this bad

Where nobody says how many tasks there are, srun divides the CPUs of the allocation by
--cpus-per-task. On an exclusive node of 16 CPUs `srun --cpus-per-task=4` starts the program four
times (seen on 22.05), all on the same GPUs and writing the same files.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --cpus-per-task=4
#SBATCH --gpus-per-node=1
#SBATCH --time=2:00:00
srun --cpus-per-task=4 python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --exclusive
#SBATCH --cpus-per-task=4
#SBATCH --gpus-per-node=1
#SBATCH --time=2:00:00
srun --cpus-per-task=4 python train.py
```

## References

- srun(1), --ntasks and --cpus-per-task
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts import launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch

NAME = "srun-task-count-implicit"
CODE = "SG309"
SEVERITY = WARNING

_COUNTS = (
    "ntasks",
    "ntasks-per-node",
    "ntasks-per-gpu",
    "ntasks-per-socket",
    "ntasks-per-core",
    "ntasks-per-tres",
    "gpus-per-task",
    "multi-prog",
)
_VARIABLES = {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE"}


def check(job: Job) -> Iterator[Finding]:
    for launch in job.trainings:
        step = launch.step
        if step is None or not _is_open(job, launch):
            continue
        program = job.program(launch)
        if program is not None and program.uses("mpi4py"):
            continue
        yield Finding(
            job.place(step.start, step.end),
            "srun is given CPUs per task, but nobody says how many tasks",
            "It starts as many tasks as the allocation's CPUs allow: the same program runs "
            "several times at once",
            "add --ntasks=1 to srun (or the number that is meant), or ask for --ntasks in the job",
            also=others(launching.request_place(job.request_of(launch), "cpus-per-task")),
        )
        return


def _is_open(job: Job, launch: Launch) -> bool:
    """Whether the number of tasks is left to the CPUs, of which there are more than one's."""
    step, request = launch.step, job.request_of(launch)
    assert step is not None
    if step.opaque or step.option(*_COUNTS) is not None or request.gives(*_COUNTS):
        return False
    environment = launch.command.environment
    if _VARIABLES & set(environment):
        return False
    given = step.option("cpus-per-task")
    if given is None and "SRUN_CPUS_PER_TASK" in environment:
        given = environment["SRUN_CPUS_PER_TASK"].value
    if given is None or not launching.has_gpus(request):
        return False
    cpus = job.number(given, launch.command.variables)
    if cpus is not None and request.cpus_per_task is not None and cpus < request.cpus_per_task:
        return True
    return request.exclusive
