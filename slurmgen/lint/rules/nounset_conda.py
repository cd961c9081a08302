"""A conda environment is activated under set -u.

## What it does

Finds `conda activate`, `conda deactivate`, `source activate` and their like where `set -u`
(`set -euo pipefail`) is in force. A venv's `activate` is left alone: it minds `set -u`.

## Why is this bad

The activation scripts of conda's packages (compilers, MKL, GDAL, cuda-nvcc) read variables that
are not set. Under `set -u` that ends the job: "PS1: unbound variable".

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
set -euo pipefail
source /opt/conda/etc/profile.d/conda.sh
conda activate torch24
srun python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
set -eo pipefail
source /opt/conda/etc/profile.d/conda.sh
conda activate torch24
set -u
srun python train.py
```

## References

- https://github.com/conda/conda/issues/8186
- bash(1), set -u
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.conda import PROGRAMS, sources_conda
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.words import BATCH, TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch

NAME = "nounset-conda"
CODE = "SG502"
SEVERITY = WARNING


def check(job: Job) -> Iterator[Finding]:
    found = [
        launch
        for launch in job.launches
        if launch.where in (BATCH, TASK)
        and "nounset" in launch.inner.options
        and (_switches(launch) or sources_conda(launch))
    ]
    if found:
        yield Finding(
            job.place_of(found[0].inner),
            "a conda environment is activated under set -u",
            'its activation scripts read variables that are not set: "unbound variable", and the '
            "job ends",
            "put set +u above it and set -u below, or write set -u behind the activation",
            also=tuple(job.place_of(launch.inner) for launch in found[1:]),
        )


def _switches(launch: Launch) -> bool:
    words = [word.text for word in launch.words[1:2]]
    return launch.program in PROGRAMS and words in (["activate"], ["deactivate"])
