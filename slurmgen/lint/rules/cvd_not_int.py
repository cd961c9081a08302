"""The entries of CUDA_VISIBLE_DEVICES are taken for numbers.

## What it does

Finds `int()` over what CUDA_VISIBLE_DEVICES holds.

## Why is this bad

Its entries may also be UUIDs: on MIG nodes Slurm writes `MIG-…`, on some clusters `GPU-…`, and
old versions `NoDevFiles` where a job has no GPU. `int()` then raises ValueError. The numbers
are of little use besides: inside the process devices count from 0.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
srun python train.py
```

```python train.py
import os

gpus = [int(gpu) for gpu in os.environ["CUDA_VISIBLE_DEVICES"].split(",")]
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
srun python train.py
```

```python train.py
import torch

gpus = list(range(torch.cuda.device_count()))
```

## References

- https://docs.nvidia.com/cuda/cuda-c-programming-guide/ (CUDA_VISIBLE_DEVICES)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.python import runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.values import comes_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call

NAME = "cvd-not-int"
CODE = "SG603"
SEVERITY = WARNING

_TESTS = frozenset({"isdigit", "isdecimal", "isnumeric", "match", "fullmatch"})
_VARIABLES = frozenset({"CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS"})


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        for call in run.program.calls:
            variable = _number_of(call)
            # A `try` or a test around it expects that it isn't one.
            is_tried = any(arm == "try" for _, arm in call.site.branches) or any(
                name in _TESTS for condition in call.conditions for name in condition.names
            )
            if variable and run.reaches(call) and not is_tried:
                yield Finding(
                    call.place,
                    f"int() of an entry of {variable}",
                    "On MIG nodes, and wherever GPUs are listed by UUID, it is no number",
                    "count devices with torch.cuda.device_count(), and keep the entries as text",
                )


def _number_of(call: Call) -> str:
    """The variable whose entries a call converts to int; "" if none."""
    if call.name == "int" and call.args:
        return comes_from(call.args[0], _VARIABLES)
    if call.name == "map" and len(call.args) == 2 and call.args[0].name == "int":
        return comes_from(call.args[1], _VARIABLES)
    dtype = call.keyword("dtype")
    if dtype is not None and dtype.name in ("int", "numpy.int64", "numpy.int32") and call.args:
        return comes_from(call.args[0], _VARIABLES)
    return ""
