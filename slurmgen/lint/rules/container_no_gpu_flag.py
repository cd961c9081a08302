"""A program in a container doesn't see the job's GPUs.

## What it does

Finds `apptainer exec` (or `singularity`) without `--nv`, `--rocm` or `--nvccli`, `docker run` and
`podman run` without `--gpus` or `--device`, and `podman-hpc run` without `--gpu`, around a
training of a job with GPUs. Variables such as APPTAINER_NV=1 count, and images of AMD, which
bring ROCm with them, are passed over.

## Why is this bad

A container sees the GPU's device files or its driver's libraries only where the option brings them
in: `torch.cuda.is_available()` is False. The training stops, or runs on the CPU for days.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --gpus-per-node=1
#SBATCH --time=2:00:00
srun singularity exec image.sif python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --gpus-per-node=1
#SBATCH --time=2:00:00
srun singularity exec --nv image.sif python train.py
```

## References

- Apptainer, GPU Support: https://apptainer.org/docs/user/main/gpu.html
- docker run, --gpus: https://docs.docker.com/reference/cli/docker/container/run/
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts import intent, launching
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Container, Launch

NAME = "container-no-gpu-flag"
CODE = "SG316"
SEVERITY = ERROR

_APPTAINER = frozenset({"apptainer", "singularity"})
# What brings GPUs in, by runtime.
_OPTIONS = {
    **dict.fromkeys(_APPTAINER, ("nv", "nvccli", "rocm")),
    **dict.fromkeys(("docker", "podman"), ("gpus", "device", "runtime", "gpu", "privileged")),
    "podman-hpc": ("gpu", "gpus", "device"),
}
_FIXES = {
    **dict.fromkeys(_APPTAINER, "--nv (--rocm for AMD)"),
    "docker": "--gpus all",
    "podman": "--device nvidia.com/gpu=all",
    "podman-hpc": "--gpu",
}
_VARIABLES = frozenset(
    f"{prefix}_{name}"
    for prefix in ("APPTAINER", "SINGULARITY")
    for name in ("NV", "ROCM", "NVCCLI")
)
# A ROCm image needs no libraries of the host, and an instance was started before.
_AMD = re.compile(
    r"rocm|amd|lumi|mi[23]\d\d|(?:standard|small|dev)-g\b|/dev/(?:kfd|dri)|instance://|gaudi",
    re.IGNORECASE,
)
# Of a script for AMD GPUs; LUMI's images are named by a module.
_AMD_SITE = re.compile(r"(?i:rocm|miopen|amdgpu)|\bHIP_|\bROCR_|\bLUMI\b|/appl/local/")
_NVIDIA = re.compile(r"nvidia|libcuda|/dev(?::|$)", re.IGNORECASE)


def check(job: Job) -> Iterator[Finding]:
    for launch in job.launches:
        container = launch.container
        if container is None or container.runtime not in _OPTIONS or container.opaque:
            continue
        if not launching.has_gpus(job.request_of(launch)) or _brings_gpus(job, launch, container):
            continue
        if not launch.is_training and not _is_all(job, launch):
            continue
        if intent.is_preparation(launch):
            continue
        yield Finding(
            job.place(container.start, container.end),
            f"{container.runtime} is started without {_FIXES[container.runtime]}",
            "The container does not see the job's GPUs: torch.cuda.is_available() is False",
            f"add {_FIXES[container.runtime]} behind {_verb(launch)}",
            None if launch.is_training else WARNING,
        )
        return


def _brings_gpus(job: Job, launch: Launch, container: Container) -> bool:
    if container.option(*_OPTIONS[container.runtime]) is not None:
        return True
    if _VARIABLES & set(launch.environment):
        return True
    environment = launch.command.environment
    if _VARIABLES & set(environment) or "NVIDIA_VISIBLE_DEVICES" in environment:
        return True
    given = [container.image, *container.options.values()]
    text = " ".join(word.text for word in given if word is not None)
    request = job.request_of(launch)
    kind = request.gpu_type or ""
    bind = container.option("bind", "mount", "volume")
    return bool(
        _AMD.search(f"{text} {kind} {request.value('partition') or ''}")
        or (bind is not None and _NVIDIA.search(bind.text))
        or _AMD_SITE.search(job.text)
    )


def _is_all(job: Job, launch: Launch) -> bool:
    """Whether programs in containers without GPUs are all that the job runs."""
    return not launching.is_helper(launch) and all(
        item.container is not None
        and item.container.runtime in _OPTIONS
        and not _brings_gpus(job, item, item.container)
        for item in launching.programs(job)
    )


def _verb(launch: Launch) -> str:
    container = launch.container
    assert container is not None
    return "run" if container.runtime in ("docker", "podman", "podman-hpc") else "exec"
