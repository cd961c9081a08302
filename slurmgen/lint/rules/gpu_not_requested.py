"""A program wants GPUs, but the job asks for none.

## What it does

Finds programs that need GPUs (they are given `--device cuda` and the like, call `.cuda()`
without a question, join an NCCL group, run in a container with `--nv`, or under deepspeed) in a
job without `--gres`, `--gpus` or one of their relatives. A partition, constraint or QOS whose
name says GPU may bring them, and silences this rule; another partition makes it a warning.

## Why is this bad

Slurm gives a job the GPUs that it asks for. `--exclusive` is about the node's CPUs and not about
its GPUs: a step of an exclusive job has no CUDA_VISIBLE_DEVICES (seen on 22.05 to 26.05; on
20.11 it has all of them), and where devices are confined nothing but "No CUDA GPUs are available".

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --ntasks-per-node=4
#SBATCH --time=2:00:00
srun python train.py --device cuda
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
srun python train.py --device cuda
```

## References

- sbatch(1), --exclusive, --gres and --gpus-per-node
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts import intent, launching
from slurmgen.lint.facts.python import directive_place, others
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.distributed import devices, groups
from slurmgen.reading.programs.frameworks import lightning_trainers
from slurmgen.reading.programs.roles import device_roles
from slurmgen.reading.shell.starters import ACCELERATE, DEEPSPEED
from slurmgen.reading.shell.words import TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.slurm.request import Request

NAME = "gpu-not-requested"
CODE = "SG206"
SEVERITY = ERROR

# Options that may bring GPUs without naming them.
_PLACES = ("partition", "constraint", "qos", "nodelist", "reservation", "account")
_RESOURCES = ("gres", "tres-per-task", "tres-per-node", "gpus-per-socket", "prefer", "bb")
_GPU_NAME = re.compile(
    r"gpu|cuda|accel|booster|volta|ampere|hopper|tesla|dgx|gh200|gb200|rtx|geforce|titan|quadro|"
    r"(?<![a-z])[abhlpvk]\d{2,3}s?(?![0-9])|(?<![a-z])t4|mi\d{3}|nvidia|amd|vis\b|-g\b|_g\b|ml\b|"
    r"deep|(?<![a-z])ai(?![a-z])",
    re.IGNORECASE,
)
_GPU_WORD = re.compile(
    r"-*(?:\w+\.)*(?:device[= ][\"']?cuda.*|accelerator[= ][\"']?(?:gpu|cuda).*|"
    r"(?:n[_-]?|num[_-]?)?gpus?[= ][1-9]\d?|gpus?[= ]-1|(?:use[_-]?|with[_-]?)?cuda|use[_-]?gpu|"
    r"(?:dist[_-])?backend[= ][\"']?nccl.*)"
)
# How the options of the command line are told to whoever submits the script.
_USAGE = re.compile(r"^#.*\bsbatch\b.*(--gres|--gpus|-G\b)", re.MULTILINE)


# Seen not to be given on 22.05, and still given on 20.11.
_NO_LONGER_GIVEN = "22.05"


def check(job: Job) -> Iterator[Finding]:
    requests = job.script.requests
    if job.is_submitter or not job.script.directives or _USAGE.search(job.text):
        return
    if any(_may_have_gpus(request) for request in requests) or _is_misspelt(job):
        return
    if job.profile is not None and job.profile.gpus.form == "none":
        return
    exclusive = requests[0].directive("exclusive") if requests[0].exclusive else None
    if exclusive is not None and job.slurm is not None and job.slurm < _NO_LONGER_GIVEN:
        return
    for launch in launching.programs(job):
        sign, is_unsure = _sign(job, launch), _is_unsure(requests[0], launch)
        if exclusive is not None and sign is not None and sign == _sign_in_environment(launch):
            # Where devices aren't confined, the GPUs of a whole node are there for all.
            is_unsure = True
        if sign is None and exclusive is not None:
            sign, is_unsure = _sign_in_workers(job, launch), True
        asks = launch.step is not None and bool(
            {"gres", "gpus", "gpus-per-node", "gpus-per-task"} & set(launch.step.options)
        )
        # A step may ask for the GPUs of a node that the job has to itself.
        if (asks and exclusive is not None) or (sign is None and not asks):
            continue
        start = launching.start_place(job, launch)
        message = "the job asks for no GPU"
        if exclusive is not None:
            message = "--exclusive does not include the GPUs of the node"
        yield Finding(
            directive_place(exclusive) if exclusive is not None else start,
            f"{message}, but {sign or 'its step does'}",
            "A step has the GPUs that its job was given: none",
            "add --gpus-per-node=N (or --gres=gpu:N)",
            WARNING if is_unsure else None,
            others(start if exclusive is not None else None),
        )
        return


def _may_have_gpus(request: Request) -> bool:
    if request.node_gpus != 0 or request.gives(*_RESOURCES):
        return True
    return any(_GPU_NAME.search(request.value(name) or "") for name in _PLACES)


def _is_misspelt(job: Job) -> bool:
    """Whether GPUs are asked for in a line that sbatch does not take."""
    lines = job.script.lines
    return any(
        re.search(r"gpu|gres", lines[problem.line - 1], re.IGNORECASE)
        for problem in job.script.block.problems
        if problem.line <= len(lines)
    )


def _is_unsure(request: Request, launch: Launch) -> bool:
    """Whether GPUs may be there all the same, or the program may do without.

    A partition may bring them, the batch shell of a whole node may see them, and a container
    with --nv starts without a GPU too.
    """
    return (
        request.gives("partition", "constraint", "qos", "nodelist", "reservation")
        or (request.exclusive and launch.where != TASK)
        or launch.container is not None
    )


def _sign(job: Job, launch: Launch) -> str | None:
    """What shows that a program needs a GPU, as a clause."""
    container, launcher = launch.container, launch.launcher
    if container is not None and launch.is_training:
        for option in ("nv", "rocm", "nvccli", "gpus"):
            if option in container.options and container.runtime != "pyxis":
                return f"its container is started with --{option}"
    if launcher is not None:
        if launcher.kind == DEEPSPEED:
            return "deepspeed needs them"
        if launcher.kind == ACCELERATE and "multi_gpu" in launcher.options:
            return "accelerate is given --multi_gpu"
        asked = launcher.option("nproc_per_node")
        if asked is not None and asked.literal == "gpu":
            return "torchrun is given --nproc_per_node=gpu"
    if not launch.is_training:
        return None
    for text, behind in intent.arguments(launch):
        if _GPU_WORD.fullmatch(text):
            return f"its program is given {text}"
        if text.startswith("-") and _GPU_WORD.fullmatch(f"{text} {behind}"):
            return f"its program is given {text} {behind}"
    return _sign_in_environment(launch) or _sign_in_program(job, launch)


def _sign_in_workers(job: Job, launch: Launch) -> str | None:
    """A launcher of several processes on a node that the job has to itself."""
    launcher, workers = launch.launcher, job.extent(launch).workers
    if launcher is None or launcher is launch.mpirun or workers is None or workers < 2:
        return None
    given = (*launch.inner.words, *launch.words, *launcher.options.values())
    words = [word.text.lower() for word in given] + [(job.request.value("job-name") or "").lower()]
    if job.program(launch) is not None or "cpu" in launcher.options:
        return None
    if any("cpu" in word or "gloo" in word for word in words):
        return None
    return f"{launcher.kind} starts {workers} processes on it"


def _sign_in_environment(launch: Launch) -> str | None:
    for name, assignment in launch.environment.items():
        value = assignment.value.text
        if name == "CUDA_VISIBLE_DEVICES" and value not in ("", "-1", "NoDevFiles"):
            return f"the script sets {name}"
        if name.startswith("NCCL_"):
            return f"the script sets {name}"
    return None


def _sign_in_program(job: Job, launch: Launch) -> str | None:
    run = launching.run_of(job, launch)
    # A program that asks whether there are GPUs can do without them.
    if run is None or run.program.words & {"is_available", "device_count"}:
        return None
    if any(group.call.text(0, "backend") == "nccl" for group in groups(run.program)):
        return "its program joins an NCCL group"
    for trainer in lightning_trainers(run.program):
        given = trainer.keyword("accelerator")
        if given is not None and given.literal in ("gpu", "cuda"):
            return "Lightning's Trainer is told to use them"
    for device in devices(run.program):
        if device.call.conditions or not run.reaches(device.call):
            continue
        if device.how in ("cuda", "set") and device.call.method in ("cuda", "set_device"):
            return f"its program calls {device.call.method}"
        if device.device is not None and device_roles(device.device) <= {"plain", "constant"}:
            return "its program uses CUDA devices"
    return None
