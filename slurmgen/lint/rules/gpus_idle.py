"""The job has several GPUs, but its program can use fewer.

## What it does

Finds jobs with several GPUs whose programs can all be read, and use one GPU per process: a single
process that names one device and knows of no second, or ranks of a process group that are fewer
than the GPUs. It is silent where anything else runs besides, or where a library that isn't known
may use the other GPUs.

## Why is this bad

The GPUs that nobody uses are reserved and charged all the same, the job waits longer in the
queue for them, and nothing says that they idle.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
srun python train.py
```

```python train.py
import torch

net = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for _ in range(100):
    optimizer.zero_grad()
    net(torch.rand(8, 4).cuda()).sum().backward()
    optimizer.step()
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=1
#SBATCH --time=2:00:00
srun python train.py
```

## References

- PyTorch, DistributedDataParallel: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts import launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.distributed import groups
from slurmgen.reading.shell.starters import ACCELERATE, TORCH_LAUNCH, TORCHRUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Program
    from slurmgen.reading.shell.launch import Launch

NAME = "gpus-idle"
CODE = "SG212"
SEVERITY = WARNING

# Packages that use the GPU they are told to use, or none.
_KNOWN = frozenset(sys.stdlib_module_names) | frozenset(
    """
    torch torchvision torchaudio torchtext torchmetrics numpy scipy pandas sklearn matplotlib PIL
    cv2 tqdm yaml timm einops wandb tensorboardX tensorboard omegaconf rich loguru click typer h5py
    zarr seaborn albumentations safetensors psutil requests skimage torch_geometric
    """.split()
)
# What may bring a second GPU, or another process, into play.
_MORE = re.compile(
    r"DataParallel|FullyShard|fully_shard|device_map|\bTrainer\b|\bFabric\b|parallelize|pipeline|"
    r"cuda:(?!0\b)|cuda\([1-9]|device_count|device_ids|multiprocessing|subprocess|concurrent|"
    r"os\.(?:system|fork|popen|exec)|\bdevices?\[|tensor_parallel|importlib|exec\(|__import__"
)
# Where each rank has one device: these two are ranks' own.
_MORE_OF_A_RANK = re.compile(
    r"device_map|\bTrainer\b|\bFabric\b|parallelize|PipelineStage|DeviceMesh|init_device_mesh|"
    r"device_count|multiprocessing|subprocess|concurrent|os\.(?:system|fork|popen|exec)|"
    r"\bdevices?\[|device_ids=\[[^\]]*,|tensor_parallel|importlib|exec\(|__import__"
)
_CUDA = re.compile(r"\.cuda\(|[\"']cuda|torch\.cuda\.")
_GPU_WORD = re.compile(r"gpu|device|parallel|cuda|node", re.IGNORECASE)


def check(job: Job) -> Iterator[Finding]:
    request = job.request
    gpus, nodes = request.node_gpus, request.total_nodes
    launches = list(launching.programs(job))
    if job.is_submitter or len(job.script.requests) > 1 or not gpus or nodes is None:
        return
    used = [_gpus_used(job, launch) for launch in launches]
    counts = [count for count in used if count is not None]
    if not counts or len(counts) < len(used) or max(counts) >= gpus * nodes:
        return
    place = launching.request_place(request, *launching.GPU_OPTIONS, "nodes")
    launch = launches[counts.index(max(counts))]
    start = launching.start_place(job, launch)
    most = max(counts)
    one = "one of them" if most == 1 else f"{most} of them"
    yield Finding(
        place or start,
        f"the job has {gpus * nodes} GPUs, its program uses {one}",
        f"{launch.python or 'it'} uses one GPU per process and is started as "
        f"{'one process' if most == 1 else f'{most} processes'}; the other GPUs idle, and are "
        "charged",
        f"ask for {'one GPU' if most == 1 else f'{most} GPUs'}, or train with "
        "DistributedDataParallel and a process per GPU",
        also=others(start if place is not None else None),
    )


def _gpus_used(job: Job, launch: Launch) -> int | None:
    """The GPUs that a launch uses at most; None where it may be any number."""
    context = launch.command.context
    run = launching.run_of(job, launch)
    if context.background or context.loop:
        return None
    if run is None:
        return _started(job, launch)
    if any(_GPU_WORD.search(word.text) for word in launch.words[1:]):
        return None
    if not _is_known(run.program) or not _CUDA.search(_text(run.program)):
        return None
    is_rank = bool(groups(run.program))
    more = _MORE_OF_A_RANK if is_rank else _MORE
    if more.search(_text(run.program)) or (launch.launcher is not None and not is_rank):
        return None
    if is_rank and launch.launcher is None and launch.step is None:
        # Without a launcher it waits for others, which is another fault.
        return None
    return _processes(run, is_rank=is_rank)


def _started(job: Job, launch: Launch) -> int | None:
    """The processes that a launcher starts for a program that can't be read: a GPU each."""
    launcher = launch.launcher
    if launcher is None or launcher.kind not in (TORCHRUN, TORCH_LAUNCH, ACCELERATE):
        return None
    # Over several nodes, what is left idle is another fault's.
    if launcher.opaque or job.request_of(launch).total_nodes != 1:
        return None
    return job.extent(launch).processes


def _processes(run: Run, *, is_rank: bool) -> int | None:
    processes = run.processes
    if processes is None or (not is_rank and processes != 1):
        return None
    # Bound tasks and a device by hand are others' faults.
    return processes if run.extent.gpus_per_task != 0 else None


def _is_known(program: Program) -> bool:
    """Whether all that it imports is read, or known to use no GPU by itself."""
    local = {name.partition(".")[0] for name in program.modules}
    return all(item.name.partition(".")[0] in _KNOWN | local for item in program.imports)


def _text(program: Program) -> str:
    return "\n".join(unit.text for unit in program.units)
