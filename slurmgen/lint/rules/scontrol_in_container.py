"""A program calls Slurm's commands from inside a container.

## What it does

Finds programs that run `scontrol`, `sbatch`, `squeue` or `srun` (Lightning's automatic requeue
included) where they are started in a container that does not bring Slurm along.

Silent where the container's mounts name Slurm or its commands.

## Why is this bad

The image has no Slurm client, no configuration and no munge socket: the call ends with
"scontrol: not found", and the job that should have been requeued is over.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
#SBATCH --open-mode=append
#SBATCH --signal=USR1@120
srun --container-image=torch.sqsh python train.py
```

```python train.py
import os
import signal

signal.signal(
    signal.SIGUSR1, lambda *_: os.system("scontrol requeue " + os.environ["SLURM_JOB_ID"])
)
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
#SBATCH --open-mode=append
#SBATCH --signal=USR1@120
srun --container-image=torch.sqsh python train.py
status=$?
if [ "$status" -eq 75 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
```

```python train.py
import signal
import sys

signal.signal(signal.SIGUSR1, lambda *_: sys.exit(75))
```

## References

- https://github.com/NVIDIA/pyxis/issues/129
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.lightning import requeue_signals, trainers
from slurmgen.lint.facts.python import runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.processes import processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Container

NAME = "scontrol-in-container"
CODE = "SG319"
SEVERITY = WARNING

_COMMANDS = ("scontrol", "sbatch", "squeue", "srun", "scancel", "sacct", "sinfo")
_CALLS = re.compile(rf"(?:^|[\s/;&|(])({'|'.join(_COMMANDS)})(?=\s|$)")
_MOUNTS = re.compile(r"mount|bind|volume|^[Bv]$")
_BRINGS = re.compile(r"slurm|munge|scontrol|/usr/bin|/usr/local|^/:|:/$")
_FIX = "requeue from the batch script: let the program exit with 75, and call scontrol there"


def check(job: Job) -> Iterator[Finding]:
    for launch in job.launches:
        container = launch.container
        if container is None or _brings_slurm(container):
            continue
        if launch.program in _COMMANDS and launch.where in ("batch", "task"):
            yield Finding(
                job.place(launch.start, launch.start + len(launch.program)),
                f"{launch.program} is called inside the container",
                f"The image has no Slurm: “{launch.program}: not found”",
                "call it in the batch script, outside the container",
            )
    for run in runs(job):
        container = run.launch.container
        if container is not None and not _brings_slurm(container):
            place, command = next(_calls(run), (None, ""))
            if place is not None:
                yield Finding(
                    place,
                    f"{command} is called inside the container",
                    f"The image has no Slurm: “{command}: not found”, and the job is not requeued",
                    _FIX,
                    also=(run.place,),
                )


def _brings_slurm(container: Container) -> bool:
    return any(
        _MOUNTS.search(name) and _BRINGS.search(word.text)
        for name, word in container.options.items()
    )


def _calls(run: Run) -> Iterator[tuple[Place, str]]:
    for process in processes(run.program):
        match = _CALLS.search(process.text)
        if match is not None and run.reaches(process.call):
            yield process.call.place, match[1]
    if run.job.request_of(run.launch).gives("signal") and requeue_signals(run):
        for call in trainers(run):
            yield call.place, "scontrol"
