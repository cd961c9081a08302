"""An srun inside a step waits for resources that the step itself holds.

## What it does

Finds srun without `--overlap` in the code that another srun runs: in its `bash -c`, in a
here-document, or in a Python program that calls it.

## Why is this bad

From Slurm 20.11 on a step has its CPUs for itself. The inner srun asks for some of them and waits
until the outer step ends, which waits for the inner one: the job hangs to its time limit. After
two minutes srun says "step creation temporarily disabled, retrying (Requested nodes are busy)".

`--overlap` shares the CPUs. Where memory is counted by CPU (`--mem-per-cpu`, or the site's
DefMemPerCPU) the inner srun is then refused: "Memory required by task is not available"; `--mem=0`
shares that. 20.11 shares no GPUs either way: there start it outside the step.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=1
#SBATCH --time=2:00:00
srun bash -c 'srun nvidia-smi -L; python train.py'
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=1
#SBATCH --time=2:00:00
srun bash -c 'srun --overlap --mem=0 nvidia-smi -L; python train.py'
```

## References

- srun(1), --overlap and --mem
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, Edit
from slurmgen.lint.facts import launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.processes import processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.srun import Step

NAME = "nested-srun-no-overlap"
CODE = "SG313"
SEVERITY = ERROR
SINCE = "20.11"

_WHY = (
    "The outer step holds the CPUs that the inner one waits for, and waits for it: the job hangs "
    "until its time limit"
)
_FIX = "give the inner srun --overlap --mem=0, or start it outside the step"
_SRUN = re.compile(r"(?:^|[\s;&|/])srun\s(?![^;&|]*--overlap)")


def check(job: Job) -> Iterator[Finding]:
    seen: set[int] = set()
    for launch in job.steps:
        step = launch.step
        assert step is not None
        outer = step.outer
        if outer is not None and not _shares(step) and not _shares(outer):
            if step.start in seen or _is_elsewhere(step):
                continue
            seen.add(step.start)
            yield Finding(
                job.place(step.start, step.end),
                "an srun inside a step has no --overlap",
                _WHY,
                _FIX,
                also=(job.place(outer.start, outer.end),),
                edits=tuple(_edits(job, step)),
            )
        elif outer is None and not _shares(step):
            yield from _in_program(job, launch)


def _in_program(job: Job, launch: Launch) -> Iterator[Finding]:
    program = job.program(launch) if launch.is_training else None
    if program is None:
        return
    for process in processes(program):
        if _SRUN.search(f"{process.text} "):
            yield Finding(
                process.call.place,
                "a program that srun runs starts an srun without --overlap",
                _WHY,
                _FIX,
                also=others(launching.start_place(job, launch)),
            )
            return


def _shares(step: Step) -> bool:
    """Whether a step leaves its CPUs to others; --overlap, or an option nobody knows."""
    return step.opaque or step.option("overlap", "oversubscribe") is not None


def _is_elsewhere(step: Step) -> bool:
    """Whether it runs in another job."""
    jobid = step.option("jobid")
    return jobid is not None and jobid.uses("SLURM_JOB_ID", "SLURM_JOBID") is None


def _edits(job: Job, step: Step) -> Iterator[Edit]:
    if job.text[step.start : step.end] == "srun":
        memory = step.option("mem", "mem-per-cpu", "mem-per-gpu")
        yield Edit(step.end, step.end, " --overlap" if memory else " --overlap --mem=0")
