"""A Lightning program is started by torchrun inside a Slurm job.

## What it does

Finds programs that make a Lightning Trainer or Fabric and are started by `torchrun` or
`torch.distributed.launch`.

Silent where Lightning is kept from Slurm's variables: by another cluster environment
(`TorchElasticEnvironment`, `LightningEnvironment`), or by a job name of `interactive` or `bash`.

## Why is this bad

Lightning takes its ranks from the SLURM_* variables, which are the same for all of torchrun's
workers: each of them is rank 0 and binds the same port. Lightning 2.1 and later prefer
torchrun's variables; there the two launchers are merely one too many.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --time=1:00:00
srun --cpus-per-task=16 torchrun --standalone --nproc_per_node=4 train.py
```

```python train.py
import lightning as L

from model import Net

L.Trainer(accelerator="gpu", devices=4, strategy="ddp").fit(Net())
```

## Use instead

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
import lightning as L

from model import Net

L.Trainer(accelerator="gpu", devices=4, strategy="ddp").fit(Net())
```

## References

- https://lightning.ai/docs/pytorch/stable/clouds/cluster_advanced.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.lightning import trainers
from slurmgen.lint.facts.python import runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.starters import TORCH_LAUNCH, TORCHRUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "lightning-torchrun-in-slurm"
CODE = "SG306"
SEVERITY = ERROR
HIDES = ("tasks-gpus-mismatch",)


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        launcher = run.launch.launcher
        if launcher is None or launcher.kind not in (TORCHRUN, TORCH_LAUNCH):
            continue
        made = trainers(run)
        if made:
            yield Finding(
                run.place,
                f"Lightning is started by {launcher.kind} in a Slurm job",
                "Before 2.1 it takes its ranks from SLURM_*: all of torchrun's workers are rank 0 "
                "and bind one port",
                "start it with srun and a task per GPU, without torchrun",
                also=(made[0].place,),
            )
