"""The number of workers is taken from the CPUs of the whole node.

## What it does

Finds `os.cpu_count()` (and multiprocessing's and psutil's) where it decides how many worker
processes or threads are started.

## Why is this bad

It counts the node's CPUs and ignores the affinity mask that Slurm sets. On a node with 128 CPUs
each of four ranks starts 128 workers on the eight CPUs it has: they thrash, and their memory
gets the job killed.

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
import os

from torch.utils.data import DataLoader

from data import samples

loader = DataLoader(samples, batch_size=64, num_workers=os.cpu_count())
```

## Use instead

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
import os

from torch.utils.data import DataLoader

from data import samples

loader = DataLoader(samples, batch_size=64, num_workers=len(os.sched_getaffinity(0)))
```

## References

- https://docs.python.org/3/library/os.html#os.cpu_count
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.python import runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.facts import whole
from slurmgen.reading.programs.torch_names import DATA_LOADER
from slurmgen.reading.programs.values import alternatives, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call, Value

NAME = "cpu-count-not-affinity"
CODE = "SG607"
SEVERITY = WARNING

_COUNTS = frozenset(
    {
        "os.cpu_count",
        "multiprocessing.cpu_count",
        "torch.multiprocessing.cpu_count",
        "psutil.cpu_count",
        "joblib.cpu_count",
    }
)
_WORKERS = re.compile(r"workers?$|num_proc|n_jobs|n_?processes|n_?threads|num_threads|nproc")
_TAKERS = frozenset({"torch.set_num_threads", "torch.set_num_interop_threads"})
_POOLS = frozenset({"Pool", "ThreadPool", "ProcessPoolExecutor", "ThreadPoolExecutor"})


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        takers = [call for call in run.program.calls if run.reaches(call) and _takes(run, call)]
        if not takers:
            continue
        counts = [call for call in run.program.called(*_COUNTS) if run.reaches(call)]
        first = counts[0] if counts else takers[0]
        yield Finding(
            first.place,
            f"{first.name or 'cpu_count'}() decides the number of workers",
            "It counts the CPUs of the node, not those that Slurm gives to the task: each rank "
            "starts as many workers as the node has CPUs",
            "use len(os.sched_getaffinity(0)), or SLURM_CPUS_PER_TASK",
            also=tuple(call.place for call in takers[:1] if call.place.line != first.place.line),
        )


def _takes(run: Run, call: Call) -> bool:
    """Whether a call starts as many workers as the node has CPUs."""
    given = [value for key, value in call.keywords if _WORKERS.search(key)]
    if call.name == DATA_LOADER:
        given += [value for value in (call.argument(5, "num_workers"),) if value is not None]
    elif (call.name in _TAKERS or call.method in _POOLS) and call.args:
        given.append(call.args[0])
    return any(
        _counts(run, item)
        for value in given
        if not _asks_affinity(value)
        for item in alternatives(value, run.present)
    )


def _counts(run: Run, value: Value) -> bool:
    if value.kind == "option":
        # What the command line gives counts.
        is_given = run.word_of(value.name) is not None
        return not is_given and any(_counts(run, part) for part in value.parts)
    if value.kind == "call" and value.name == "min":
        limit = min((n for n in map(whole, value.parts) if n is not None), default=None)
        cpus = run.job.request_of(run.launch).cpus_per_task
        if limit is not None and (cpus is None or limit <= cpus):
            return False
    if run.job.request_of(run.launch).exclusive and value.kind == "binary":
        # The job has the whole node, and the program shares it out.
        return False
    return any(part.kind == "call" and part.name in _COUNTS for part in walk(value))


def _asks_affinity(value: Value) -> bool:
    return any(
        "affinity" in part.name or part.name.startswith("SLURM_CPUS") for part in walk(value)
    )
