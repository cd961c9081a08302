"""A Lightning Trainer expects other processes than Slurm starts.

## What it does

Compares `devices` and `num_nodes` of a Lightning Trainer or Fabric with the tasks per node and
the nodes of the srun that starts it.

## Why is this bad

In a Slurm job Lightning starts no processes, but takes those of srun: `devices` must be the
tasks per node and `num_nodes` (1 unless given) the nodes. Otherwise it stops with "does not
match the number of tasks", or waits at "Initializing distributed" for ranks that never come.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=4
#SBATCH --time=1:00:00
srun --cpus-per-task=4 python train.py
```

```python train.py
import lightning as L

from model import Net

L.Trainer(accelerator="gpu", devices=4, strategy="ddp").fit(Net())
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=4
#SBATCH --time=1:00:00
srun --cpus-per-task=4 python train.py
```

```python train.py
import lightning as L

from model import Net

L.Trainer(accelerator="gpu", devices=4, num_nodes=2, strategy="ddp").fit(Net())
```

## References

- https://lightning.ai/docs/pytorch/stable/clouds/cluster_advanced.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.lightning import trainers
from slurmgen.lint.facts.python import is_batch, option_place, others, runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.facts import whole
from slurmgen.reading.programs.roles import counts_gpus
from slurmgen.reading.programs.torch_names import LIGHTNING_CLI
from slurmgen.reading.programs.values import Value, constant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call

NAME = "tasks-gpus-mismatch"
CODE = "SG209"
SEVERITY = ERROR

_ONE_PROCESS = frozenset({"dp", "ddp_spawn", "ddp_notebook", "ddp_fork"})


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        if run.launch.launcher is not None:
            continue
        for call in trainers(run):
            strategy = call.text(1, "strategy")
            if (
                call.name == LIGHTNING_CLI
                or call.is_open
                or strategy in _ONE_PROCESS
                or call.text(0, "accelerator") == "cpu"
            ):
                continue
            found = _nodes(run, call) or _tasks(run, call)
            if found is not None:
                yield found


def _nodes(run: Run, call: Call) -> Finding | None:
    given = call.keyword("num_nodes")
    asked = whole(run.settled(given)) if given is not None else 1
    nodes = run.extent.nodes
    if asked is None or nodes is None or nodes == asked or is_batch(run):
        return None
    return Finding(
        call.place,
        f"a Trainer for {_count(asked, 'node')} in a step on {nodes}",
        "Lightning stops, or waits for ranks that never come",
        f"pass num_nodes={nodes}",
        also=others(option_place(run, "nodes")),
    )


def _tasks(run: Run, call: Call) -> Finding | None:
    devices = _devices(run, call)
    tasks = run.extent.tasks_per_node
    if is_batch(run):
        # With more tasks it is srun that is missing.
        tasks = 1 if run.job.request_of(run.launch).total_tasks == 1 else None
    if devices is None or tasks is None or devices == tasks:
        return None
    where = option_place(run, "ntasks-per-node", "ntasks")
    return Finding(
        where or call.place,
        f"{_count(tasks, 'task')} on a node for a Trainer with {_count(devices, 'device')}",
        "Lightning starts no processes under Slurm: it stops, or waits for ranks that never come",
        f"ask for --ntasks-per-node={devices}, one task for each device, and start it with srun",
        also=others(call.place if where is not None else None),
    )


def _devices(run: Run, call: Call) -> int | None:
    """How many GPUs of a node the Trainer uses; None where that isn't sure."""
    given = call.keyword("devices") or call.keyword("gpus") or constant("auto")
    value = run.settled(given)
    visible = run.extent.gpus_per_task
    if value.kind == "tuple":
        return len(value.parts)
    if counts_gpus(value):
        return visible or None
    return _count_of(value, visible)


def _count_of(value: Value, visible: int | None) -> int | None:
    literal = value.literal if value.is_constant else None
    if literal in ("auto", "-1", -1):
        return visible or None
    if isinstance(literal, str):
        entries = [entry for entry in literal.split(",") if entry.strip()]
        if "," in literal:
            return len(entries)
        return int(literal) if literal.isdecimal() else None
    return whole(value)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
