"""srun --export with a list takes everything else away from the program.

## What it does

Finds `srun --export=NAME=value,...` (or SLURM_EXPORT_ENV set by the script) without ALL in the
list, and `--export=NONE`. A list that names PATH is taken to be meant, and so is an absolute
program that the script has set no variables for.

## Why is this bad

The list replaces the environment: beside Slurm's own variables the program sees nothing but what
the list names, not even PATH. `srun --export=NCCL_DEBUG=INFO torchrun` fails with "execve():
torchrun: No such file or directory"; what the script exported is gone.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
srun --export=OMP_NUM_THREADS=4 python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
srun --export=ALL,OMP_NUM_THREADS=4 python train.py
```

## References

- srun(1), --export
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING, Edit
from slurmgen.lint.facts import exports
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Word

NAME = "srun-export-drops-env"
CODE = "SG311"
SEVERITY = ERROR


def check(job: Job) -> Iterator[Finding]:
    for launch in job.steps:
        found = _list(launch)
        if found is None:
            continue
        name, word = found
        severity = exports.harm(job, launch, word.text)
        if severity is None:
            continue
        is_list = word.text.upper() not in ("NONE", "NIL")
        given = f"{name}={word.text}" if len(word.text) < 40 else f"{name} with a list"
        yield Finding(
            job.place_of(word),
            f"{given} leaves out ALL",
            "The program sees Slurm's variables and that list only: no PATH, and nothing of what "
            "the script exports",
            "begin the list with ALL, as in --export=ALL,NAME=value"
            if is_list
            else "leave the option out, or write --export=ALL",
            WARNING if severity == WARNING else None,
            edits=tuple(_edits(job, word)) if is_list else (),
        )


def _list(launch: Launch) -> tuple[str, Word] | None:
    """Where srun is told what to hand on without ALL: its option, or the variable for it."""
    step = launch.step
    assert step is not None
    word = step.option("export")
    if word is not None:
        return ("--export", word) if exports.lacks_all(word) else None
    environment = launch.command.environment
    for name in ("SRUN_EXPORT_ENV", "SLURM_EXPORT_ENV"):
        if name in environment:
            value = environment[name].value
            return (name, value) if exports.lacks_all(value) else None
    return None


def _edits(job: Job, word: Word) -> Iterator[Edit]:
    """ALL before the list, where it begins with a name as it stands in the script."""
    piece = word.pieces[0]
    if piece.kind == "text" and job.text[piece.start : piece.start + 1] == piece.text[:1]:
        yield Edit(piece.start, piece.start, "ALL,")
