"""A program expects torchrun's variables, but srun starts it.

## What it does

Finds `init_process_group()` without a rank, `Accelerator()` and Transformers' Trainer in
programs that srun (or mpirun) starts as they are, where nothing sets RANK.

Silent where the program sets them itself, where Lightning or another framework reads Slurm's
variables, and where a sourced file or a wrapper may set them.

## Why is this bad

srun sets SLURM_PROCID, not RANK. `init_process_group` stops with "environment variable RANK
expected, but not set"; Accelerate and Transformers do not even stop: each task takes itself for
the only one and trains alone.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=4
#SBATCH --time=1:00:00
srun --cpus-per-task=4 python train.py
```

```python train.py
from accelerate import Accelerator

accelerator = Accelerator()
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --time=1:00:00
torchrun --standalone --nproc_per_node=4 train.py
```

```python train.py
from accelerate import Accelerator

accelerator = Accelerator()
```

## References

- https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization
- sbatch(1), SLURM_PROCID
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.python import is_batch, runs, sets_up_elsewhere
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs import truth
from slurmgen.reading.programs.distributed import groups
from slurmgen.reading.programs.facts import whole
from slurmgen.reading.programs.frameworks import CARING, frameworks, transformers_trainers
from slurmgen.reading.shell.starters import MPIRUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call
    from slurmgen.reading.programs.distributed import Group

NAME = "rank-env-not-set"
CODE = "SG413"
SEVERITY = ERROR
HIDES = ("no-set-device", "dataparallel-fallback")

# These take RANK from the environment alone.
_TAKING = frozenset({"accelerate", "transformers"})
_STATES = ("accelerate.Accelerator", "accelerate.PartialState", "accelerate.state.PartialState")


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        if run.launch.launcher is not None and run.launch.launcher.kind != MPIRUN:
            continue
        if is_batch(run) and (job.request_of(run.launch).total_tasks or 1) > 1:
            # That srun is missing is another fault.
            continue
        if _knows_better(run):
            continue
        found = _waiting(run) or _alone(run)
        if found is None:
            yield from _reading(run)
            continue
        call, names = found
        step = "srun does" if run.launch.step is not None else "mpirun does"
        starter = "is" if is_batch(run) else step
        yield Finding(
            run.place,
            f"{call.method}() needs {' and '.join(names)}, which {starter} not set",
            f"It stops with “environment variable {names[0]} expected, but not set”"
            if call.method == "init_process_group"
            else "Each task takes itself for the only one and trains alone",
            "start it with torchrun"
            if is_batch(run)
            else "start it with torchrun, or set RANK, LOCAL_RANK and WORLD_SIZE inside the task "
            "from SLURM_PROCID, SLURM_LOCALID and SLURM_NTASKS, and MASTER_ADDR and MASTER_PORT "
            "before srun",
            also=(call.place,),
        )


def _knows_better(run: Run) -> bool:
    program = run.program
    return (
        bool(frameworks(program) & (CARING - _TAKING))
        or program.uses("mpi4py", "idr_torch")
        or sets_up_elsewhere(program)
    )


def _waiting(run: Run) -> tuple[Call, list[str]] | None:
    """Where a process group is made of what the environment says, and what it does not say."""
    several = (run.extent.tasks or 1) > 1
    for group in groups(run.program):
        is_run = run.reaches(group.call) if several else run.surely_reaches(group.call)
        missing = [name for name in _needed(group) if run.present(name) is False]
        if is_run and missing:
            return group.call, missing
    return None


def _needed(group: Group) -> list[str]:
    """The variables that init_process_group reads."""
    if group.call.is_open or group.store is not None:
        return []
    method = group.init_method
    if method is not None and method.literal not in (None, "env://"):
        return []
    if method is not None and not method.is_constant:
        return []
    names = []
    if group.rank is None or whole(group.rank) == -1:
        names.append("RANK")
    if group.world_size is None or whole(group.world_size) == -1:
        names.append("WORLD_SIZE")
    return [*names, "MASTER_ADDR", "MASTER_PORT"]


def _reading(run: Run) -> Iterator[Finding]:
    """Where the program itself reads what only a launcher sets."""
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
    for read in run.program.reads(*names):
        is_needed = read.how == "item" or (read.is_int and read.default is None)
        if not is_needed or run.present(read.name) is not False or is_batch(run):
            continue
        # What a test decides that isn't known may never be read.
        if any(truth(c.test, run.present) != c.holds for c in read.conditions):
            continue
        yield Finding(
            run.place,
            f"the program reads {read.name}, which srun does not set",
            "It stops with a KeyError" if read.how == "item" else "It stops with a TypeError",
            "start it with torchrun, or set RANK, LOCAL_RANK and WORLD_SIZE inside the task from "
            "SLURM_PROCID, SLURM_LOCALID and SLURM_NTASKS",
            also=(read.place,),
        )
        return


def _alone(run: Run) -> tuple[Call, list[str]] | None:
    """Where Accelerate or Transformers finds itself alone among several tasks."""
    tasks = run.extent.tasks
    missing = [name for name in ("RANK", "LOCAL_RANK") if run.present(name) is False]
    if is_batch(run) or tasks is None or tasks < 2 or not missing:
        return None
    made = [*run.program.called(*_STATES), *transformers_trainers(run.program)]
    call = next((call for call in made if run.reaches(call)), None)
    return None if call is None else (call, missing)
