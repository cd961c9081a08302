"""The job builds on whatever environment it was submitted from.

## What it does

Finds a conda environment that is activated on top of a module's conda in a job which takes over
the submitter's environment expressly (`--export=ALL`), and variables of an active environment
(CONDA_PREFIX, VIRTUAL_ENV) used before the script activates one.

## Why is this bad

sbatch copies the environment of the shell that submits. Submitted from an active conda
environment, CONDA_SHLVL, CONDA_PREFIX and PATH come along; the module puts its Python in front,
and conda, which believes the environment to be active already, leaves it there: `which python` is
the module's, and packages are missing. From another shell the same job runs.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
module load miniforge3
source "$(conda info --base)/etc/profile.d/conda.sh"
conda activate torch24
srun --export=ALL python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
#SBATCH --export=NONE
module load miniforge3
source "$(conda info --base)/etc/profile.d/conda.sh"
conda activate torch24
srun --export=ALL python train.py
```

## References

- sbatch(1), --export
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.conda import CONDA, activations, is_source, loads_conda, same_shell
from slurmgen.lint.facts.uses import uses
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.words import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "inherited-env"
CODE = "SG503"
SEVERITY = WARNING

_ACTIVE = ("CONDA_PREFIX", "CONDA_DEFAULT_ENV", "VIRTUAL_ENV")


def check(job: Job) -> Iterator[Finding]:
    if _starts_clean(job):
        return
    yield from _activation(job)
    yield from _variables(job)


def _starts_clean(job: Job) -> bool:
    """Whether the job does without the submitter's environment."""
    export = job.request.export
    if export is not None and "ALL" not in export.split(","):
        return True
    return (
        any(
            (
                launch.program in ("conda", "mamba")
                and [word.text for word in launch.words[1:2]] == ["deactivate"]
            )
            or (
                launch.program == "env"
                and any(word.text in ("-i", "-") for word in launch.words[1:2])
            )
            for launch in job.launches
        )
        or "CONDA_SHLVL" in job.text
    )


def _activation(job: Job) -> Iterator[Finding]:
    """conda over a module's conda, with --export=ALL written out."""
    takes_all = job.request.export is not None or any(
        (word := launch.step.option("export")) is not None and "ALL" in word.text.split(",")
        for launch in job.steps
        if launch.step is not None
    )
    for launch in activations(job) if takes_all else ():
        modules = [
            other
            for other in same_shell(job, launch)
            if loads_conda(other) and any(CONDA.search(word.text) for word in other.words)
        ]
        if modules:
            yield Finding(
                job.place_of(launch.inner),
                "the environment is activated on top of what the job was submitted from",
                "submitted from an active conda environment, the module's Python stays in front, "
                "and packages are missing",
                "submit with --export=NONE, or call conda deactivate above the module",
                also=(job.place_of(modules[0].inner),),
            )
            return


def _variables(job: Job) -> Iterator[Finding]:
    """`$CONDA_PREFIX` before anything in the script can have set it."""
    for use in uses(job, _ACTIVE):
        if re.match(r":?[-=?+]", use.piece.operator):
            continue
        if use.piece.where != BATCH:
            # The batch shell may have activated it, and hands all of that on.
            continue
        before = [other for other in job.launches if other.inner.end <= use.piece.start]
        if any(
            is_source(other) or loads_conda(other) or _activates(other.words) for other in before
        ):
            continue
        yield Finding(
            use.place,
            f"{use.name} is taken from the shell that submits the job",
            "without an active environment there, or with another, it is empty or names the wrong "
            "one",
            "activate the environment in the script first",
        )
        return


def _activates(words: tuple[object, ...]) -> bool:
    texts = [getattr(word, "text", "") for word in words[:2]]
    return "activate" in texts or texts[:1] == ["eval"]
