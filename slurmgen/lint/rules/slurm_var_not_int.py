"""A variable of Slurm's is used as a number, and is none.

## What it does

Finds SLURM_TASKS_PER_NODE and SLURM_JOB_CPUS_PER_NODE of several nodes, SLURM_GPUS_PER_NODE and
its like where a GPU type was asked for, and SLURM_JOB_GPUS, where a number is needed: in
arithmetic, as `--nproc_per_node` and other counts, in OMP_NUM_THREADS, in Python's `int()`.

## Why is this bad

They hold `4(x2)`, `16(x2)`, `a100:4` and `0,1,2,3` (seen on 20.11 to 26.05). torchrun stops with
"Unsupported nproc_per_node value: 4(x2)", Python with "invalid literal for int()".

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=a100:4
#SBATCH --time=1:00:00
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 10000))
srun torchrun --nnodes=2 --nproc_per_node="$SLURM_GPUS_PER_NODE" --rdzv_id="$SLURM_JOB_ID" \\
    --rdzv_backend=c10d --rdzv_endpoint="$head:$port" train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=a100:4
#SBATCH --time=1:00:00
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 10000))
srun torchrun --nnodes=2 --nproc_per_node="$SLURM_GPUS_ON_NODE" --rdzv_id="$SLURM_JOB_ID" \\
    --rdzv_backend=c10d --rdzv_endpoint="$head:$port" train.py
```

## References

- sbatch(1), OUTPUT ENVIRONMENT VARIABLES
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.uses import uses
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.facts.uses import Use
    from slurmgen.lint.job import Job

NAME = "slurm-var-not-int"
CODE = "SG414"
SEVERITY = ERROR

_PER_NODE = ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE")
_LISTS = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS")
_TYPED = {
    "SLURM_GPUS": "gpus",
    "SLURM_GPUS_PER_NODE": "gpus-per-node",
    "SLURM_GPUS_PER_TASK": "gpus-per-task",
    "SLURM_GPUS_PER_SOCKET": "gpus-per-socket",
}
# What is a count by its name: variables, and options of programs.
_COUNTS = re.compile(
    r"num|count|size|threads|workers|procs?\b|nproc|nnodes|nodes|tasks|cpus?\b|gpus?\b|jobs|cores|"
    r"devices|world|ranks|parallel|^-[ncjtNpw]$|^np$|omp|mkl|^seq$",
    re.IGNORECASE,
)


class _Value(NamedTuple):
    """What a variable holds, why, what to use instead, and whether it is so for sure."""

    example: str
    instead: str
    sure: bool = True


def check(job: Job) -> Iterator[Finding]:
    values = _values(job)
    found: dict[Place, tuple[str, _Value]] = {}
    for use in uses(job, tuple(values)):
        if _needs_number(use):
            found.setdefault(use.place, (use.name, values[use.name]))
    for name, value in values.items():
        for program in job.programs:
            for call in program.called("int"):
                given = call.args[0] if call.args else None
                if given is not None and given.kind == "env" and given.name == name:
                    found.setdefault(call.place, (name, value))
    if not found:
        return
    (first, (name, value)), *others = found.items()
    yield Finding(
        first,
        f"{name} is no number: it holds {value.example}",
        "where a number is needed, that fails",
        f"use {value.instead}",
        None if value.sure else WARNING,
        tuple(place for place, _ in others),
    )


def _values(job: Job) -> dict[str, _Value]:
    """The variables that hold something else than a number in this job."""
    request = job.request
    found: dict[str, _Value] = {}
    nodes = request.total_nodes
    if nodes != 1:
        count = f"(x{nodes})" if nodes else "(x2)"
        tasks = f"{request.tasks_per_node or 4}{count}"
        instead = "SLURM_NTASKS_PER_NODE, SLURM_GPUS_ON_NODE, or $((SLURM_NTASKS / SLURM_NNODES))"
        for name in _PER_NODE:
            is_cpus = "CPUS" in name
            found[name] = _Value(
                f"16{count}" if is_cpus else tasks,
                "SLURM_CPUS_ON_NODE" if is_cpus else instead,
                nodes is not None,
            )
    for name, option in _TYPED.items():
        text = request.value(option)
        if text is not None and not text.isdecimal() and "$" not in text:
            found[name] = _Value(text, "SLURM_GPUS_ON_NODE")
    if (request.node_gpus or 0) > 1:
        for name in _LISTS:
            found[name] = _Value("0,1", "SLURM_GPUS_ON_NODE")
    return found


def _needs_number(use: Use) -> bool:
    if use.is_arithmetic:
        return True
    # `${X%%(*}` takes the number out.
    return use.is_whole and bool(_COUNTS.search(use.target))
