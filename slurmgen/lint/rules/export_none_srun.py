"""The job's --export keeps its steps from seeing the script's environment.

## What it does

Finds srun in a job with `--export=NONE`, `NIL` or a list without ALL, where neither srun is given
`--export=ALL` nor SLURM_EXPORT_ENV is unset or set to ALL before.

## Why is this bad

sbatch leaves what it was given in SLURM_EXPORT_ENV, and srun obeys it: a step of a job with
`--export=NONE` starts without PATH and without anything that the script loaded or exported since.
"execve(): python: No such file or directory", exit status 2, or a missing MASTER_ADDR.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --export=NONE
#SBATCH --time=2:00:00
srun python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --export=NONE
#SBATCH --time=2:00:00
unset SLURM_EXPORT_ENV
srun python train.py
```

## References

- sbatch(1), --export
- srun(1), SLURM_EXPORT_ENV
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts import exports
from slurmgen.lint.facts.python import directive_place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch

NAME = "export-none-srun"
CODE = "SG312"
SEVERITY = ERROR

_VARIABLES = ("SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV")


def check(job: Job) -> Iterator[Finding]:
    directive = job.request.directive("export")
    value = directive.value if directive is not None else None
    if directive is None or not value or "ALL" in exports.names(value):
        return
    harmed = [(launch, exports.harm(job, launch, value)) for launch in _steps(job)]
    harmed = [(launch, harm) for launch, harm in harmed if harm is not None]
    if not harmed:
        return
    worst = next((item for item in harmed if item[1] == ERROR), harmed[0])
    launch, severity = worst
    step = launch.step
    assert step is not None
    yield Finding(
        directive_place(directive),
        f"--export={value} is handed on to the steps",
        f"srun reads it from SLURM_EXPORT_ENV: {launch.program or 'the program'} starts without "
        "PATH and without what the script exports",
        "unset SLURM_EXPORT_ENV before srun, or write srun --export=ALL",
        WARNING if severity == WARNING else None,
        (job.place(step.start, step.end),),
    )


def _steps(job: Job) -> Iterator[Launch]:
    """The steps that take SLURM_EXPORT_ENV as sbatch has left it."""
    cured = [
        command.start
        for command in job.commands("unset")
        if any(word.text in _VARIABLES for word in command.words[1:])
    ]
    for launch in job.steps:
        step = launch.step
        assert step is not None
        if step.option("export") is not None or step.outer is not None:
            continue
        if any(start < launch.command.start for start in cured):
            continue
        if set(_VARIABLES) & set(launch.command.environment) or _is_unset(launch):
            continue
        yield launch


def _is_unset(launch: Launch) -> bool:
    """`env -u SLURM_EXPORT_ENV srun …`"""
    words = launch.command.words
    return words[0].name == "env" and any(word.text.endswith("SLURM_EXPORT_ENV") for word in words)
