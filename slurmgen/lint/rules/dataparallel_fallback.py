"""One process drives several GPUs with nn.DataParallel.

## What it does

Finds `nn.DataParallel`, and a Transformers Trainer that is started by plain `python`, in jobs
where the process sees several GPUs.

Silent where the program also knows DistributedDataParallel, and where the model is spread over
the GPUs (`device_map`).

## Why is this bad

The Trainer falls back to nn.DataParallel, which copies the model to all GPUs in every step,
gathers all outputs on GPU 0 and runs in one Python process: GPU 0 fills up, the speed-up is
small, and a second node is never used. torch's documentation advises against it.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --time=1:00:00
python train.py
```

```python train.py
from transformers import Trainer, TrainingArguments

from model import net, samples

Trainer(model=net(), args=TrainingArguments("out"), train_dataset=samples()).train()
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --time=1:00:00
torchrun --standalone --nproc_per_node=4 train.py
```

```python train.py
from transformers import Trainer, TrainingArguments

from model import net, samples

Trainer(model=net(), args=TrainingArguments("out"), train_dataset=samples()).train()
```

## References

- https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
- https://huggingface.co/docs/transformers/perf_train_gpu_many
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.python import runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.distributed import data_parallels, is_distributed, spawns
from slurmgen.reading.programs.frameworks import transformers_trainers
from slurmgen.reading.programs.processes import processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call

NAME = "dataparallel-fallback"
CODE = "SG307"
SEVERITY = WARNING

_MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_STARTERS = ("torchrun", "accelerate launch", "torch.distributed", "deepspeed")


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        gpus = run.extent.gpus_per_task
        if gpus is None or gpus < 2 or run.extent.workers != 1 or _is_masked(run):
            continue
        wraps = [call for call in data_parallels(run.program) if _on_several(run, call)]
        if wraps and not is_distributed(run.program):
            yield Finding(
                wraps[0].place,
                f"nn.DataParallel over {gpus} GPUs",
                "One process copies the model to all GPUs in every step: GPU 0 fills up, and the "
                "others mostly wait",
                "use DistributedDataParallel with a process per GPU",
                also=(run.place,),
            )
        elif not wraps:
            yield from _trainer(run, gpus)


def _is_masked(run: Run) -> bool:
    return any(name in run.launch.environment for name in _MASKS) or any(
        run.program.writes(*_MASKS)
    )


def _on_several(run: Run, call: Call) -> bool:
    ids = call.argument(1, "device_ids")
    alone = ids is not None and ids.kind == "tuple" and len(ids.parts) < 2
    return run.reaches(call) and not alone


def _trainer(run: Run, gpus: int) -> Iterator[Finding]:
    """A Trainer of transformers that finds no RANK and more than one GPU."""
    made = [call for call in transformers_trainers(run.program) if run.reaches(call)]
    if not made or run.launch.launcher is not None or run.present("LOCAL_RANK") is not False:
        return
    if _is_spread(run) or spawns(run.program):
        return
    if any(name in item.text for item in processes(run.program) for name in _STARTERS):
        return
    yield Finding(
        run.place,
        f"a Transformers Trainer is started by plain python on {gpus} GPUs",
        "It falls back to nn.DataParallel: GPU 0 fills up, and the others mostly wait",
        f"start it with torchrun --nproc_per_node={gpus}",
        also=(made[0].place,),
    )


def _is_spread(run: Run) -> bool:
    """Whether the model itself lies on several GPUs, or the Trainer is told to use one."""
    names = {"device_map", "no_cuda", "use_cpu"}
    return any(key in names for call in run.program.calls for key, _ in call.keywords)
