"""Each rank can open its own GPU only, so that NCCL can't go from GPU to GPU.

## What it does

Finds ranks of one training on one node, each bound to a GPU of its own by `--gpus-per-task` or
`--gpu-bind`, on a cluster that keeps a task from opening the other devices
(`ConstrainDevices=yes` in cgroup.conf).

## Why is this bad

NCCL sends from GPU to GPU over NVLink or PCIe where a process can open both devices. Behind a
device cgroup it can't: it goes through the host's memory, many times slower, or fails with
"invalid argument" while it sets up its peers.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-task=1
#SBATCH --time=2:00:00
srun python train.py --backend nccl
```

```yaml cluster.yaml
name: mycluster
constrain_devices: true
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
srun python train.py --backend nccl
```

## References

- cgroup.conf(5), ConstrainDevices
- srun(1), --gpus-per-task and --gpu-bind
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts import intent, launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "gpu-isolated-nccl"
CODE = "SG208"
SEVERITY = WARNING
NEEDS = "a cluster profile with `constrain_devices: true`"


def check(job: Job) -> Iterator[Finding]:
    if job.profile is None or not job.profile.constrain_devices:
        return
    for launch in job.trainings:
        extent, request = job.extent(launch), job.request_of(launch)
        seen, tasks = extent.gpus_per_task, extent.tasks_per_node
        if seen is None or tasks is None or tasks < 2 or (extent.gpus_per_node or 0) <= seen:
            continue
        if not launching.is_bound(request, launch) or intent.runs_apart(launch):
            continue
        if intent.rank_sign(job, launch) is None:
            continue
        names = ("gpus-per-task", "gpu-bind", "ntasks-per-gpu")
        places = [launching.option_place(job, launch, name) for name in names]
        given = [place for place in places if place is not None]
        yield Finding(
            given[0] if given else launching.start_place(job, launch),
            f"each of the {tasks} ranks of a node can open {seen} of its GPUs only",
            "This cluster confines a task to its devices: NCCL can't copy from GPU to GPU and "
            "goes through the host's memory, or fails",
            "ask for the GPUs with --gpus-per-node (or --gres) and leave the binding out",
            also=others(*given[1:]),
        )
        return
