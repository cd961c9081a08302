"""Every rank of a DDP program reads the whole data set.

## What it does

Finds a training `DataLoader` without a sampler in a program that wraps its model with
DistributedDataParallel or FSDP and runs with several processes.

Silent where one of the loaders has a sampler or batch sampler, where the data set is iterable
or is split by rank, and where a framework puts the sampler in (Lightning, Accelerate, …).

## Why is this bad

DDP averages gradients and does nothing about data. Without a DistributedSampler all ranks walk
through all samples: an epoch takes as long on eight GPUs as on one, and without shuffling all
ranks compute the very same gradient (seen with torch 2.13).

## Example

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
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from data import samples

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
net = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
for batch in DataLoader(samples, batch_size=32, shuffle=True):
    net(batch.cuda()).sum().backward()
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
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from data import samples

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
net = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
for batch in DataLoader(samples, batch_size=32, sampler=DistributedSampler(samples)):
    net(batch.cuda()).sum().backward()
```

## References

- https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.python import runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.data import loaders, samplers
from slurmgen.reading.programs.distributed import is_distributed
from slurmgen.reading.programs.frameworks import CARING, class_bases, frameworks
from slurmgen.reading.programs.roles import is_rank
from slurmgen.reading.programs.values import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Program, Value
    from slurmgen.reading.programs.data import Loader

NAME = "no-distributed-sampler"
CODE = "SG606"
SEVERITY = WARNING

# Loaders that are not for training, by the name they are given.
_OTHER_LOADERS = re.compile(
    r"val|test|eval|dev_|infer|predict|holdout|query|gallery", re.IGNORECASE
)
_SPLIT = re.compile(
    r"rank|shard|world|replica|split_by|by_node|partition|distributed", re.IGNORECASE
)
# Ranks of one model-parallel group read the same data.
_MODEL_PARALLEL = (
    "torch.distributed.tensor.",
    "torch.distributed.pipelining.",
    "torch.distributed.pipeline.",
    "torch.distributed.device_mesh.",
    "torch.distributed.rpc.",
)


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        program = run.program
        if run.processes == 1 or not is_distributed(program) or "backward" not in program.words:
            continue
        if frameworks(program) & CARING or any(program.called(*_MODEL_PARALLEL)):
            continue
        loader = _unsampled(run)
        if loader is not None:
            yield Finding(
                loader.call.place,
                "a DataLoader without a DistributedSampler under DDP",
                "Every rank walks through the whole data set: more GPUs make an epoch no shorter",
                "pass sampler=DistributedSampler(dataset) in place of shuffle, and call "
                "sampler.set_epoch(epoch) before each epoch",
            )


def _unsampled(run: Run) -> Loader | None:
    """The first training loader that nothing splits by rank, if no loader of all is split."""
    if samplers(run.program) or _splits_itself(run.program):
        return None
    found = [loader for loader in loaders(run.program) if run.reaches(loader.call)]
    for loader in found:
        given = (loader.sampler, loader.batch_sampler)
        if loader.call.is_open or any(
            item is not None and not _splits_nothing(item) for item in given
        ):
            return None
        if loader.dataset is not None and _is_split(run.program, loader.dataset):
            return None
    training = [loader for loader in found if not _is_other(run, loader)]
    # One that shuffles is for training, whatever it is called.
    return next((loader for loader in training if _shuffles(loader)), next(iter(training), None))


# They draw from the whole data set, on every rank.
_OF_ONE_PROCESS = frozenset(
    f"torch.utils.data.{name}"
    for name in (
        "RandomSampler",
        "SequentialSampler",
        "SubsetRandomSampler",
        "WeightedRandomSampler",
    )
)


def _splits_nothing(value: Value) -> bool:
    """Whether no sampler is given, or one that knows of no ranks."""
    if value.kind == "call" and value.name.replace(".sampler.", ".") in _OF_ONE_PROCESS:
        return True
    return value.is_constant and value.literal is None


def _shuffles(loader: Loader) -> bool:
    return loader.shuffle is not None and loader.shuffle.literal is True


def _is_other(run: Run, loader: Loader) -> bool:
    """Whether a loader is not for training: it says so, or only some ranks have it."""
    call = loader.call
    if run.program.by_rank(call):
        return True
    unit = next(item for item in run.program.units if str(item.path) == call.place.path)
    before = unit.lines[call.place.line - 1][: call.place.column - 1]
    names = [before, call.function.rpartition(".")[2]]
    for node in call.node.args[:1]:
        names += [item.id for item in ast.walk(node) if isinstance(item, ast.Name)]
    return not _shuffles(loader) and any(_OTHER_LOADERS.search(name) for name in names)


def _splits_itself(program: Program) -> bool:
    """Whether a data set of the program's own is iterable or asks for its rank."""
    if program.words & {"IterableDataset", "get_worker_info", "split_dataset_by_node"}:
        return True
    datasets = {
        scope.name
        for unit in program.units
        for scope in unit.table.scopes.values()
        if scope.kind == "class" and "dataset" in scope.name.rpartition(".")[2].lower()
    }
    return any(
        call.name in ("torch.distributed.get_rank", "torch.distributed.get_world_size")
        and any(call.function.startswith(f"{name}.") for name in datasets)
        for call in program.calls
    )


def _is_split(program: Program, dataset: Value) -> bool:
    if any("Iterable" in base for base in class_bases(program, dataset)):
        return True
    for part in walk(dataset):
        if (
            is_rank(part)
            or _SPLIT.search(part.name)
            or part.name.startswith(("webdataset.", "wds."))
        ):
            return True
        if any(_SPLIT.search(key) for key, _ in part.keywords):
            return True
    return False
