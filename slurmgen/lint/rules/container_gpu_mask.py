r"""The host's list of GPUs is carried into a container that numbers them anew.

## What it does

Finds ROCm images under pyxis in jobs that take a part of a node, containers that are given the
devices of NVIDIA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES and that list too, and `docker run` or
`podman run` that pick some devices and hand on CUDA_VISIBLE_DEVICES or one of its relatives.

## Why is this bad

Slurm says which GPUs of the node are the job's in CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES and
GPU_DEVICE_ORDINAL. A container that is given only these devices counts them from 0: with the
list 4,5,6,7 there is no such device. The job works while it gets the first GPUs of a node, and
finds none when it gets others.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
srun --container-image=rocm.sqsh python serve.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
srun --container-image=rocm.sqsh env -u ROCR_VISIBLE_DEVICES -u GPU_DEVICE_ORDINAL \
    -u CUDA_VISIBLE_DEVICES python serve.py
```

## References

- gres.conf(5), AutoDetect and Flags
- ROCm, GPU isolation techniques: https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts import launching
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Container, Launch

NAME = "container-gpu-mask"
CODE = "SG317"
SEVERITY = WARNING

_ROCM = re.compile(r"rocm|amdgpu|(?<![a-z0-9])mi[23]\d\d", re.IGNORECASE)
_MASK = re.compile(r"(?:CUDA|ROCR|HIP)_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|ZE_AFFINITY_MASK")
_GPU_IDS = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "GPU_DEVICE_ORDINAL")
# A whole node of these has 8: its GPUs are numbered alike inside and outside.
_WHOLE = 8


def check(job: Job) -> Iterator[Finding]:
    for launch in job.launches:
        container = launch.container
        if container is None or launching.is_helper(launch):
            continue
        request = job.request_of(launch)
        if not launching.has_gpus(request) or request.exclusive:
            continue
        chosen = launch.environment.get("NVIDIA_VISIBLE_DEVICES")
        if chosen is not None and chosen.value.uses("CUDA_VISIBLE_DEVICES", *_GPU_IDS):
            if container.runtime == "pyxis" or "nvccli" in container.options:
                yield _finding(job, launch, container, "CUDA_VISIBLE_DEVICES")
                return
        if container.runtime == "pyxis":
            gpus = request.node_gpus
            if not _is_rocm(job, launch, container) or (gpus is not None and gpus >= _WHOLE):
                continue
            if _is_handled(job, launch):
                continue
            yield _finding(job, launch, container, "ROCR_VISIBLE_DEVICES")
            return
        mask = _handed_on(launch) if container.runtime in ("docker", "podman") else None
        if mask is not None:
            yield _finding(job, launch, container, mask)
            return


def _finding(job: Job, launch: Launch, container: Container, mask: str) -> Finding:
    return Finding(
        launching.start_place(job, launch),
        f"{mask} of the node goes into a container that has the job's GPUs only",
        "Inside they are numbered from 0; where the job gets other GPUs than the node's first, the "
        "list names devices that are not there",
        "unset ROCR_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES and GPU_DEVICE_ORDINAL inside, as with "
        "`env -u ROCR_VISIBLE_DEVICES ...` in front of the program"
        if container.runtime == "pyxis"
        else f"leave {mask} out: the container has no other GPUs",
    )


def _is_rocm(job: Job, launch: Launch, container: Container) -> bool:
    request = job.request_of(launch)
    image = container.image.text if container.image is not None else ""
    places = [request.gpu_type, request.value("constraint"), request.value("partition")]
    return any(_ROCM.search(text or "") for text in (image, *places))


def _is_handled(job: Job, launch: Launch) -> bool:
    """Whether the script does something about the list where it starts the program."""
    command = launch.command
    code = job.text[command.start : command.end]
    bodies = [redirect.body.text for redirect in command.redirects if redirect.body is not None]
    words = [word.text for word in command.words]
    return any(_MASK.search(text) for text in (code, *bodies, *words))


def _handed_on(launch: Launch) -> str | None:
    """The list that docker is told to hand on beside a choice of devices."""
    texts = [word.text for word in launch.inner.words]
    chosen = False
    mask = None
    for text, behind in zip_longest(texts, texts[1:], fillvalue=""):
        name, _, value = text.partition("=")
        if name in ("--gpus", "--device"):
            value = value or behind
            chosen = chosen or ("device=" in value or value.isdecimal() or "gpu=" in value)
        if name in ("-e", "--env"):
            found = _MASK.match(value or behind)
            if found is not None and "=0" not in (value or behind)[found.end() :][:2]:
                mask = found[0]
    return mask if chosen else None
