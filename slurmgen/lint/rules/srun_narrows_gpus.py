"""srun asks for fewer GPUs per node than its tasks need, though the job has more.

## What it does

Finds `--gres`, `--gpus`, `--gpus-per-node` on an srun that leave a node of the step with fewer
GPUs than it has processes, in a job that has more.

## Why is this bad

These options are for the whole step, not for each task: `srun --gres=gpu:1` with four tasks
gives all four the same GPU (CUDA_VISIBLE_DEVICES=0 in each, seen on 22.05), and the other GPUs
of the job idle. NCCL refuses it as "Duplicate GPU detected". On 26.05 srun itself refuses
`--gres=gpu:1` in a job with `--gpus-per-node`. A step gets the job's GPUs without any option.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
srun --gres=gpu:1 python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
srun python train.py
```

## References

- srun(1), --gres and --gpus
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts import intent, launching
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.request import Request

NAME = "srun-narrows-gpus"
CODE = "SG308"
SEVERITY = ERROR
HIDES = ("world-size-mismatch",)

_OPTIONS = ("gres", "gpus", "gpus-per-node")


def check(job: Job) -> Iterator[Finding]:
    for launch in job.trainings:
        step, extent = launch.step, job.extent(launch)
        word = step.option(*_OPTIONS) if step is not None else None
        processes, gpus = launching.processes_on_node(job, launch), extent.gpus_per_node
        # `--gres=none` is a wish to have none.
        if word is None or step is None or not gpus or processes is None or processes <= gpus:
            continue
        if step.option("gpus-per-task") is not None or intent.shares_on_purpose(job, launch):
            continue
        if not _has_more(job.request_of(launch), gpus):
            continue
        name = next(name for name in _OPTIONS if name in step.options)
        yield Finding(
            job.place_of(word),
            f"--{name}={word.text} leaves {_gpus(gpus)} of a node to {processes} processes",
            "The option is for the whole step: its tasks share what it asks for, and the job's "
            "other GPUs idle",
            f"leave --{name} out: a step has all GPUs of the job",
        )


def _has_more(request: Request, gpus: int) -> bool:
    """Whether a node of the job has more GPUs than these, as far as it is known."""
    if request.node_gpus is not None:
        return request.node_gpus > gpus
    return (request.gpus or request.gpus_per_task or 0) > gpus


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"
