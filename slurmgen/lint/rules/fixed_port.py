"""A port written as a number, on a node that other jobs share.

## What it does

Finds a constant master port (in the script, on a launcher's line, or in the Python program) in a
job that does not have its nodes to itself, and one port for several trainings of the same job.
`torchrun` and `deepspeed` without a port use 29500; that is found where the job has so few GPUs
that others surely fit beside it.

A job has its nodes to itself with `--exclusive`, `--mem=0`, or all GPUs of its nodes (a cluster
profile says how many that are; without one, eight).

## Why is this bad

The second job on the node fails with "address already in use" (EADDRINUSE; torch 2.13), or its
ranks join the process group of the first.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --time=1:00:00
export MASTER_ADDR=localhost MASTER_PORT=29500
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python train.py'
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --time=1:00:00
export MASTER_ADDR=localhost MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python train.py'
```

## References

- https://docs.pytorch.org/docs/stable/elastic/run.html, --standalone
- sbatch(1), --exclusive
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.endpoints import PORT, endpoints, places
from slurmgen.lint.facts.ports import FIXED, faults, shares_nodes
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.starters import DEEPSPEED, TORCH_LAUNCH, TORCHRUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.endpoints import Endpoint
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch

NAME = "fixed-port"
CODE = "SG408"
SEVERITY = WARNING

# Any node has room for another job beside one with fewer GPUs.
_FEW_GPUS = 4
_DEFAULT = "29500"


def check(job: Job) -> Iterator[Finding]:
    found = [fault.endpoint for fault in faults(job) if fault.kind == FIXED]
    together = list(_together(job))
    if together:
        yield _same(job, together)
    elif found:
        first, *others = places(found)
        # Per file: a program is mended apart from the script.
        yield Finding(
            first,
            f"the port is always {found[0].literal}",
            'the second job on the node fails with "address already in use", or joins this one\'s '
            "process group",
            "derive it from the job: export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))"
            if found[0].run is None
            else "read MASTER_PORT from the environment, and derive it from SLURM_JOB_ID in the "
            "batch script",
            also=tuple(others),
        )
    else:
        for launch in job.trainings:
            if _uses_default(job, launch) and shares_nodes(job, launch):
                gpus = job.request_of(launch).node_gpus
                if gpus is not None and 0 < gpus < _FEW_GPUS:
                    yield _default(job, launch)
                    return


def _default(job: Job, launch: Launch) -> Finding:
    launcher = launch.launcher
    assert launcher is not None
    is_deepspeed = launcher.kind == DEEPSPEED
    return Finding(
        job.place(launcher.start, launcher.end),
        f"{launcher.kind} is given no port, and uses {_DEFAULT}",
        'the second job on the node fails with "address already in use"',
        "add --master_port=$((20000 + SLURM_JOB_ID % 10000))"
        if is_deepspeed
        else "add --standalone",
    )


def _uses_default(job: Job, launch: Launch) -> bool:
    """Whether a launcher on one node listens at its default port."""
    launcher = launch.launcher
    if launcher is None or launcher.opaque:
        return False
    if launcher.kind not in (TORCHRUN, TORCH_LAUNCH, DEEPSPEED):
        return False
    if launcher.option("master_port", "standalone", "rdzv_endpoint", "rdzv_backend") is not None:
        return False
    if any(name.startswith("PET_") for name in launch.environment):
        return False
    nodes = launcher.option("nnodes", "num_nodes")
    workers = job.extent(launch).workers
    return (nodes is None or nodes.literal == "1") and workers != 1


def _together(job: Job) -> Iterator[Launch]:
    """Trainings in the background, side by side on one node, that have the same port."""
    ports: dict[str, list[Launch]] = {}
    of_launch: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints(job):
        if endpoint.kind == PORT:
            of_launch.setdefault(id(endpoint.launch), []).append(endpoint)
    for launch in job.trainings:
        if not launch.command.background or job.extent(launch).nodes != 1:
            continue
        if launch.launcher is not None and launch.launcher.option("node_rank", "machine_rank"):
            continue
        given = of_launch.get(id(launch), [])
        port = given[0].literal if given else None
        if port is None and not given and _uses_default(job, launch):
            port = _DEFAULT
        if port is not None and port != "0" and (job.request.total_nodes or 1) == 1:
            ports.setdefault(port, []).append(launch)
    for group in ports.values():
        # A loop starts the same line several times.
        if len(group) > 1 or group[0].command.loop:
            yield from group


def _same(job: Job, group: list[Launch]) -> Finding:
    together = {id(launch) for launch in group}
    given = [e for e in endpoints(job) if e.kind == PORT and id(e.launch) in together]
    found = places(given) or [job.place_of(launch.command) for launch in group]
    port = given[0].literal if given else _DEFAULT
    return Finding(
        found[0],
        f"several trainings run side by side with the port {port}",
        'only the first can listen there: the others fail with "address already in use"',
        "give each its own: --standalone, or a port with the loop's number in it",
        ERROR,
        tuple(found[1:]),
    )
