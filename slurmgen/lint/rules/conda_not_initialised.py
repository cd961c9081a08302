"""conda activate in a shell that has no conda function.

## What it does

Finds `conda activate` (and that of mamba and micromamba) where nothing before it in the same
shell can have initialised conda: no file sourced, no hook evaluated, no module of conda's
loaded. `conda init` does not count, and neither does the batch shell for a `bash -c '…'`.

## Why is this bad

A batch script is run by a shell that is neither a login nor an interactive one, so the lines
that `conda init` left in ~/.bashrc are not read. `conda activate` then fails ("Run 'conda init'
before 'conda activate'"), the script goes on, and the system's Python runs the training.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
conda activate torch24
srun python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
eval "$(conda shell.bash hook)"
conda activate torch24
srun python train.py
```

## References

- https://docs.conda.io/projects/conda/en/stable/dev-guide/deep-dives/activation.html
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.conda import activations, is_initialised
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "conda-not-initialised"
CODE = "SG501"
SEVERITY = WARNING

# Places that are named.
_MOST = 10


def check(job: Job) -> Iterator[Finding]:
    candidates = (
        launch
        for launch in activations(job)
        if not launch.inner.caught
        and ("/" in launch.words[0].text or not is_initialised(job, launch))
    )
    found = list(islice(candidates, _MOST))
    if not found:
        return
    launch = found[0]
    name = launch.program
    hook = {
        "conda": 'eval "$(conda shell.bash hook)"',
        "mamba": 'eval "$(mamba shell hook --shell bash)"',
        "micromamba": 'eval "$(micromamba shell hook --shell bash)"',
    }[name]
    yield Finding(
        job.place_of(launch.inner),
        f"{name} activate without {name}'s function in this shell",
        "a batch shell doesn't read ~/.bashrc: the activation fails, and another Python runs",
        f"put {hook} above it, or source etc/profile.d/conda.sh of the installation",
        also=tuple(job.place_of(other.inner) for other in found[1:]),
    )
