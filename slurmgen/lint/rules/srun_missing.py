"""Several tasks are asked for, but the program is started once, without srun.

## What it does

Finds a training that the batch shell starts by itself, as `python train.py`, in a job with
several tasks or nodes whose tasks nothing else uses. It is an error where ranks are meant for
sure: the script sets WORLD_SIZE or MASTER_ADDR for it, the program reads its rank or joins a
process group, or other nodes have GPUs. Where several tasks with a GPU each are asked for and
nothing is known of the program, it is a warning.

Launchers that start processes of their own (torchrun, accelerate, deepspeed, mpirun) are other
rules' business, and so are jobs without GPUs that take tasks for CPUs.

## Why is this bad

The batch shell runs once, on the first node. In it Slurm has already set SLURM_PROCID=0 and
SLURM_NTASKS to the job's tasks: one process takes itself for rank 0 of all of them and waits for
the others, until the time limit or the process group's timeout. The other nodes and GPUs idle.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
python train.py
```

```python train.py
import os

import torch
import torch.distributed as dist

rank = int(os.environ["SLURM_PROCID"])
world_size = int(os.environ["SLURM_NTASKS"])
torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
dist.init_process_group("nccl", rank=rank, world_size=world_size)
dist.barrier()
dist.destroy_process_group()
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
srun python train.py
```

## References

- srun(1)
- sbatch(1), OUTPUT ENVIRONMENT VARIABLES
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts import intent, launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.distributed import spawns
from slurmgen.reading.shell.words import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch

NAME = "srun-missing"
CODE = "SG301"
SEVERITY = ERROR
HIDES = ("gpus-idle",)

# Servers and drivers: one process has all GPUs of its node, or hands out the work.
_ONE_PROCESS = frozenset(
    "vllm sglang lmdeploy ray dask distributed gradio uvicorn streamlit submitit mpi4py".split()
)
_OWN_PROCESSES = re.compile(r"--(multiprocessing[-_]distributed|tensor[-_]parallel[-_]size|tp)\b")


class _Suspect(NamedTuple):
    launch: Launch
    reason: str
    severity: str


def check(job: Job) -> Iterator[Finding]:
    tasks, nodes = job.request.total_tasks or 1, job.request.total_nodes or 1
    if job.is_submitter or (tasks < 2 and nodes < 2):
        return
    # Either is what the tasks, or the other nodes, are for.
    if launching.spread(job) or (nodes > 1 and launching.reaches_nodes(job)):
        return
    by_hand = _is_by_hand(job)
    last = max((item.command.start for item in launching.programs(job)), default=0)
    found = [
        _judge(job, launch, is_last=launch.command.start >= last)
        for launch in job.trainings
        if not (by_hand and launch.command.background)
    ]
    suspects = [suspect for suspect in found if suspect is not None]
    if not suspects:
        return
    # Of a download, a preprocessing and a training, the training is meant.
    suspects.sort(key=lambda suspect: suspect.severity == ERROR)
    launch, reason, severity = suspects[-1]
    size = f"{tasks} tasks" if tasks > 1 else f"{nodes} nodes"
    program = launch.python or f"-m {launch.module}"
    options = (*launching.TASK_OPTIONS, "nodes")
    yield Finding(
        launching.start_place(job, launch),
        f"one process is started, though the job has {size}",
        f"The batch shell runs once, on the first node, and {reason}",
        f"start it with srun, as in `srun python {program}`",
        severity,
        others(launching.request_place(job.request, *options)),
    )


def _judge(job: Job, launch: Launch, *, is_last: bool) -> _Suspect | None:
    """Whether a launch should have been a step; None where it need not."""
    context = launch.command.context
    if launch.where != BATCH or launch.launcher is not None or context.loop or context.handler:
        return None
    several = (job.request.total_nodes or 1) > 1
    program = job.program(launch)
    if program is not None and intent.hands_out(program):
        return None
    forks = bool(program is not None and spawns(program)) or any(
        _OWN_PROCESSES.match(word.text) for word in launch.words
    )
    if forks and not several:
        return None
    sign = intent.rank_sign(job, launch)
    if sign is not None:
        reason = f"{sign}: it waits for the other ranks, which nobody starts"
        return _Suspect(launch, reason, ERROR)
    if program is not None and intent.is_plain(program):
        return None
    return _by_request(job, launch) if is_last else None


def _by_request(job: Job, launch: Launch) -> _Suspect | None:
    """What the request alone lets assume of a program of which nothing is known."""
    request = job.request
    if (launch.module or "").split(".")[0] in _ONE_PROCESS or intent.is_preparation(launch):
        return None
    if "CUDA_VISIBLE_DEVICES" in launch.environment or not launching.has_gpus(request):
        return None
    if (request.total_nodes or 1) > 1:
        return _Suspect(launch, "the GPUs of the other nodes idle", ERROR)
    tasks, gpus = request.tasks_per_node, request.node_gpus
    # More tasks than GPUs are mostly meant as CPUs.
    if tasks is not None and gpus is not None and 1 < tasks <= gpus:
        return _Suspect(launch, f"{tasks} tasks were asked for to use its {gpus} GPUs", WARNING)
    return None


def _is_by_hand(job: Job) -> bool:
    """Whether the script starts several processes side by side itself."""
    started = {item.command.context.job for item in job.trainings if item.where == BATCH}
    return len(started - {-1}) > 1
