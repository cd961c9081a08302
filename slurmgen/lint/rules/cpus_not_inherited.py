"""srun does not hand the job's --cpus-per-task on to its tasks.

## What it does

Finds trainings started by srun in a job with `--cpus-per-task` above 1, where srun is given
neither `--cpus-per-task` nor SRUN_CPUS_PER_TASK.

## Why is this bad

On Slurm 22.05 and 23.02 srun no longer reads the job's --cpus-per-task (up to 21.08 and again
from 23.11 on it does): each task is counted as one CPU and may be bound to one. The data loaders
of a rank then share one core, while SLURM_CPUS_PER_TASK still says 8 to those who ask. Saying it
to srun is right on all versions.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=2
#SBATCH --time=2:00:00
srun python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=2
#SBATCH --time=2:00:00
srun --cpus-per-task=$SLURM_CPUS_PER_TASK python train.py
```

## References

- srun(1), --cpus-per-task
- Slurm's release notes of 22.05 and 23.11
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING, Edit
from slurmgen.lint.facts import launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.srun import Step

NAME = "cpus-not-inherited"
CODE = "SG210"
SEVERITY = WARNING
SINCE = "22.05"
UNTIL = "23.11"


def check(job: Job) -> Iterator[Finding]:
    lost = [launch for launch in job.trainings if _loses_cpus(job, launch)]
    steps: dict[int, Step] = {
        launch.step.start: launch.step for launch in lost if launch.step is not None
    }
    if not steps:
        return
    request = job.request_of(lost[0])
    first, *more = steps.values()
    yield Finding(
        job.place(first.start, first.end),
        f"srun does not take over the job's --cpus-per-task={request.cpus_per_task}",
        "On Slurm 22.05 and 23.02 a task of this step counts as one CPU, which its data loaders "
        "share",
        'add --cpus-per-task="$SLURM_CPUS_PER_TASK" to srun, or export SRUN_CPUS_PER_TASK',
        also=others(
            launching.request_place(request, "cpus-per-task"),
            *(job.place(step.start, step.end) for step in more),
        ),
        edits=tuple(_edits(job, *steps.values())),
    )


def _loses_cpus(job: Job, launch: Launch) -> bool:
    step, cpus = launch.step, job.request_of(launch).cpus_per_task
    if step is None or step.opaque or cpus is None or cpus < 2:
        return False
    if step.option("cpus-per-task", "cpus-per-gpu", "multi-prog") is not None:
        return False
    bound = step.option("cpu-bind")
    if bound is not None and bound.text.replace("verbose,", "") not in ("cores", "threads"):
        # Bound by hand, or not at all.
        return False
    return not {"SRUN_CPUS_PER_TASK", "SLURM_CPU_BIND"} & set(launch.command.environment)


def _edits(job: Job, *steps: Step) -> Iterator[Edit]:
    """The option behind each srun that stands in the script as such."""
    for step in steps:
        if job.text[step.start : step.end] == "srun":
            yield Edit(step.end, step.end, " --cpus-per-task=$SLURM_CPUS_PER_TASK")
