"""HIP_VISIBLE_DEVICES filters what ROCR_VISIBLE_DEVICES has filtered already.

## What it does

Finds HIP_VISIBLE_DEVICES set in a job where Slurm's ROCR_VISIBLE_DEVICES counts too: next to
one set by hand, with a copy of Slurm's list, with numbers, or with the local rank where each
task sees one GPU.

## Why is this bad

ROCm applies both, one after the other: HIP_VISIBLE_DEVICES counts among those that
ROCR_VISIBLE_DEVICES has left. Slurm sets the latter in every job with GPUs (seen on 20.11 to
26.05). A task bound to GPU 3 sees it as number 0, and HIP_VISIBLE_DEVICES=3 leaves none: "No HIP
GPUs are available".

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=1:00:00
export MASTER_ADDR=$(hostname) MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID
    export HIP_VISIBLE_DEVICES=$SLURM_LOCALID
    exec python train.py'
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=1:00:00
export MASTER_ADDR=$(hostname) MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID
    exec python train.py'
```

## References

- https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.settings import settings
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.settings import Setting
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch

NAME = "rocr-hip-both-set"
CODE = "SG509"
SEVERITY = ERROR
HIDES = ("cuda-visible-hardcoded", "gpu-isolated-nccl")

_LISTS = ("ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS")


def check(job: Job) -> Iterator[Finding]:
    for setting in settings(job):
        if setting.name != "HIP_VISIBLE_DEVICES" or not _names_some(setting):
            continue
        severities = [_severity(job, setting, launch) for launch in setting.launches]
        if any(severities):
            yield Finding(
                setting.place,
                "HIP_VISIBLE_DEVICES is set on top of ROCR_VISIBLE_DEVICES",
                "both count, one after the other: the second picks among the GPUs that the first "
                'has left, and finds "No HIP GPUs"',
                "leave the choice to Slurm, or set ROCR_VISIBLE_DEVICES alone",
                None if ERROR in severities else WARNING,
            )
            return


def _names_some(setting: Setting) -> bool:
    return setting.literal is None or setting.literal.strip() not in ("", "-1")


def _severity(job: Job, setting: Setting, launch: Launch) -> str | None:
    """How bad it is for one launch; None: it does no harm."""
    command = job.text[launch.command.start : launch.command.end]
    if re.search(r"\bunset\b[^\n;]*\bROCR_VISIBLE_DEVICES", command):
        return None
    other = launch.environment.get("ROCR_VISIBLE_DEVICES")
    if other is not None and other.value.literal != "":
        return ERROR
    if setting.word is not None and setting.word.uses(*_LISTS):
        return ERROR
    if setting.value is not None and any(part.name in _LISTS for part in walk(setting.value)):
        return ERROR
    if _is_bound(job, launch) and setting.literal != "0":
        return ERROR
    return WARNING if setting.literal is not None and job.request.node_gpus != 0 else None


def _is_bound(job: Job, launch: Launch) -> bool:
    extent, step = job.extent(launch), launch.step
    bind = step.option("gpu-bind") if step is not None else None
    text = bind.text if bind is not None else (job.request.gpu_bind or "")
    if text and not text.endswith("none"):
        return True
    return extent.gpus_per_task == 1 and (extent.tasks_per_node or 1) > 1
