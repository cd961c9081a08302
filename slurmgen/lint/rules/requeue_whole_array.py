"""A task of an array requeues the whole array.

## What it does

Finds `scontrol requeue $SLURM_JOB_ID` (or SLURM_ARRAY_JOB_ID) in array jobs: in the script, in a
trap, and in the Python program.

## Why is this bad

SLURM_ARRAY_JOB_ID is the array's own id, and the task that starts last has it as SLURM_JOB_ID
too. scontrol takes it for all tasks: those that are done run again (seen on 22.05.8).

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --array=0-4
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
#SBATCH --open-mode=append
trap 'scontrol requeue $SLURM_JOB_ID' USR1
srun python train.py --fold "$SLURM_ARRAY_TASK_ID" &
wait $!
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --array=0-4
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
#SBATCH --open-mode=append
trap 'scontrol requeue ${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID' USR1
srun python train.py --fold "$SLURM_ARRAY_TASK_ID" &
wait $!
```

## References

- scontrol(1), requeue
- sbatch(1), --array
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs import walk
from slurmgen.reading.programs.processes import processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.words import Word

NAME = "requeue-whole-array"
CODE = "SG512"
SEVERITY = ERROR

_IDS = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_ARRAY_JOB_ID")
_INDEX = "SLURM_ARRAY_TASK_ID"
_CALL = re.compile(r"scontrol\s+requeue(?:hold)?\b(?P<target>[^;&|\n]*)")
_ID = re.compile(r"\bSLURM_(?:ARRAY_)?JOB_?ID\b")


def check(job: Job) -> Iterator[Finding]:
    if job.request.array is None:
        return
    found: dict[Place, None] = dict.fromkeys((*_commands(job), *_traps(job), *_programs(job)))
    if not found:
        return
    first, *others = found
    yield Finding(
        first,
        "the id of the array is requeued, not that of its task",
        "for one of the tasks, or all of them, it means the whole array: finished tasks run again",
        "requeue ${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}",
        also=tuple(others),
    )


def _commands(job: Job) -> Iterator[Place]:
    for launch in job.launches:
        words = [word.text for word in launch.words]
        if launch.program == "scontrol" and words[1:2] in (["requeue"], ["requeuehold"]):
            for word in launch.words[2:]:
                if _means_all(word):
                    yield job.place_of(word)


def _means_all(word: Word) -> bool:
    return word.uses(*_IDS) is not None and word.uses(_INDEX) is None


def _traps(job: Job) -> Iterator[Place]:
    """`trap 'scontrol requeue $SLURM_JOB_ID' USR1`."""
    for command in job.commands("trap"):
        for match in _CALL.finditer(job.text[command.start : command.end]):
            if _ID.search(match["target"]) and _INDEX not in match["target"]:
                start = command.start + match.start()
                yield job.place(start, command.start + match.end())


def _programs(job: Job) -> Iterator[Place]:
    for program in job.programs:
        for process in processes(program):
            if not re.search(r"\bscontrol\s+requeue", process.text):
                continue
            names = {part.name for part in walk(process.call.value) if part.kind == "env"}
            if names & set(_IDS) and _INDEX not in names:
                yield process.call.place
