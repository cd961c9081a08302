"""A DataLoader starts more workers than the task has CPUs.

## What it does

Compares `num_workers`, as written or as given on the command line, with the CPUs of the task,
shared among the processes that torchrun starts in it.

## Why is this bad

The workers are bound to the task's CPUs and take turns on them: loading becomes slower with
more workers, not faster, and each of them costs memory. torch warns: "This DataLoader will
create 16 worker processes … suggested max number of worker in current system is 4".

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=4
#SBATCH --time=1:00:00
srun --cpus-per-task=4 python train.py
```

```python train.py
from torch.utils.data import DataLoader

from data import samples

loader = DataLoader(samples, batch_size=64, num_workers=16)
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=16
#SBATCH --time=1:00:00
srun --cpus-per-task=16 python train.py
```

```python train.py
from torch.utils.data import DataLoader

from data import samples

loader = DataLoader(samples, batch_size=64, num_workers=16)
```

## References

- https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.python import directive_place, is_batch, others, runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.facts import whole
from slurmgen.reading.programs.torch_names import DATA_LOADER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call, Value

NAME = "workers-exceed-cpus"
CODE = "SG211"
SEVERITY = WARNING


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        cpus = _cpus(run)
        processes = _sharing(run)
        request = job.request_of(run.launch)
        asked = request.directive("cpus-per-task") or request.directive("cpus-per-gpu")
        if cpus is None or processes is None:
            continue
        for call in run.program.calls:
            given = _workers(call)
            if given is None or not run.reaches(call):
                continue
            count = whole(run.settled(given))
            if count is None or count * processes <= cpus:
                continue
            word = run.word_of(given.name) if given.kind == "option" else None
            typed = job.place_of(word) if word is not None else None
            yield Finding(
                typed or call.place,
                f"{_total(count, processes)} for {cpus} CPU{'s' if cpus != 1 else ''}",
                "They take turns on the CPUs of the task: loading becomes slower, not faster",
                f"use at most {max(1, cpus // processes)}, or ask for more with --cpus-per-task",
                also=others(
                    call.place if typed is not None else None,
                    directive_place(asked) if asked is not None else None,
                ),
            )
            break


def _total(count: int, processes: int) -> str:
    return f"num_workers={count}" + (f" in each of {processes} processes" if processes > 1 else "")


def _cpus(run: Run) -> int | None:
    """CPUs of a task, or of the batch shell on its node."""
    request = run.job.request_of(run.launch)
    step = run.launch.step
    word = step.option("cpus-per-task") if step is not None else None
    if word is not None:
        return run.job.number(word, run.launch.command.variables)
    tasks, gpus = request.tasks_per_node, request.node_gpus
    on_node = None
    if request.cpus_per_task is not None and tasks is not None:
        on_node = request.cpus_per_task * tasks
    elif request.cpus_per_gpu is not None and gpus:
        on_node = request.cpus_per_gpu * gpus
    if is_batch(run):
        return None if request.exclusive else on_node
    if request.cpus_per_task is not None:
        return request.cpus_per_task
    return None if on_node is None or not tasks else on_node // tasks


def _sharing(run: Run) -> int | None:
    """Processes that share those CPUs."""
    spawned, workers = run.spawned, run.extent.workers
    return None if spawned is None or workers is None else spawned * workers


def _workers(call: Call) -> Value | None:
    if call.name == DATA_LOADER:
        return call.argument(5, "num_workers")
    # Loaders of other packages, and the Trainer's arguments.
    if call.name.startswith(
        ("transformers.", "timm.", "webdataset.", "torch_geometric.", "monai.")
    ):
        return call.keyword("num_workers") or call.keyword("dataloader_num_workers")
    return None
