"""Options that ask for GPUs contradict each other.

## What it does

Finds GPUs that are asked for in two ways which do not agree, or which no release takes together:
per node and per task, per node and in all, `--gres=gpu` and `--gpus-per-node` (for 26.05 also one
in the job and the other at srun); and shares of GPUs that are not asked for, or of tasks that
nobody counts.

## Why is this bad

Slurm refuses the job, or silently takes more nodes: `--ntasks=4 --gres=gpu:2 --gpus-per-task=1` is
spread over two nodes (20.11 to 25.11). `--gres=gpu` beside `--gpus-per-node` is fatal from 26.05,
where srun reads the job's `--gpus-per-node` from its environment.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --gres=gpu:2
#SBATCH --gpus-per-task=1
#SBATCH --time=2:00:00
srun hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --time=2:00:00
srun hostname
```

## References

- sbatch(1), --gpus, --gpus-per-node, --gpus-per-task, --gres
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.options import place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.directives import Directive
    from slurmgen.slurm.request import Request

NAME = "gpu-request-conflict"
CODE = "SG205"
SEVERITY = ERROR

_FATAL_SINCE = "26.05"
_VARIABLE = "SLURM_GPUS_PER_NODE"
# Shares of the job's GPUs, and the lines from which Slurm refuses them without any.
_SHARES = (("mem-per-gpu", "21.08"), ("cpus-per-gpu", "23.02"))
_GPUS = ("gres", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "tres-per-task")


def check(job: Job) -> Iterator[Finding]:
    for request in job.script.requests:
        per_node = request.directive("gpus-per-node") or _gres(request)
        found = (
            _twice_per_node(job, request)
            or _per_task(request, per_node)
            or _in_all(request, per_node)
            or _lonely(job, request)
        )
        if found is not None:
            yield found
    if job.slurm is not None and job.slurm >= _FATAL_SINCE:
        yield from _steps(job)


def _gres(request: Request) -> Directive | None:
    """--gres, where there are GPUs in it."""
    has_gpus = not request.gives("gpus-per-node") and request.gpus_per_node
    return request.directive("gres") if has_gpus else None


def _twice_per_node(job: Job, request: Request) -> Finding | None:
    gres, per_node = request.directive("gres"), request.directive("gpus-per-node")
    if gres is None or per_node is None or "gpu" not in (gres.value or ""):
        return None
    is_fatal = job.slurm is not None and job.slurm >= _FATAL_SINCE
    late, early = sorted((gres, per_node), key=lambda directive: -directive.start)
    return Finding(
        place(late),
        "GPUs of a node are asked for by --gres and by --gpus-per-node",
        "from 26.05 on they are mutually exclusive, and before that one of them does not count",
        "keep one of them",
        severity=ERROR if is_fatal else WARNING,
        also=(place(early),),
    )


def _steps(job: Job) -> Iterator[Finding]:
    """srun asks by --gres in a job by --gpus-per-node, which it has in SLURM_GPUS_PER_NODE."""
    asked = job.request.directive("gpus-per-node")
    if asked is None or _VARIABLE in job.text:
        return
    for launch in job.steps:
        step = launch.step
        gres = step.option("gres") if step is not None else None
        if step is None or gres is None or "gpu" not in gres.text:
            continue
        if step.option("gpus-per-node") is None:
            yield Finding(
                job.place(gres.start, gres.end),
                "srun asks for GPUs by --gres, and the job by --gpus-per-node",
                "srun 26.05 takes that from its environment, and ends: they are mutually exclusive",
                "ask for them by --gpus-per-node in both places",
                also=(place(asked),),
            )


def _per_task(request: Request, per_node: Directive | None) -> Finding | None:
    """GPUs per task against those of a node, and the number of tasks."""
    task, each = request.directive("gpus-per-task"), request.gpus_per_task
    if task is None or each is None:
        return None
    if not request.gives("ntasks", "gpus", "nodes", "ntasks-per-node"):
        return Finding(
            place(task),
            "GPUs per task, and nothing says how many tasks there are",
            "Slurm refuses --gpus-per-task without --ntasks, --gpus or --nodes",
            "add --ntasks, or --nodes and --ntasks-per-node",
        )
    gpus, tasks = request.gpus, request.ntasks
    if gpus is not None and (gpus % max(1, each) or (tasks is not None and gpus != tasks * each)):
        total = request.directive("gpus")
        assert total is not None
        what = f"{tasks} tasks with {each} each" if tasks is not None else f"tasks with {each} each"
        return Finding(
            place(total),
            f"{gpus} GPUs in all, and {what}",
            "Slurm refuses the job: the numbers contradict each other",
            "keep one of --gpus and --gpus-per-task",
            also=(place(task),),
        )
    if per_node is None or request.gpus_per_node is None:
        return None
    there = request.gpus_per_node
    count = None if request.gives("ntasks") else request.ntasks_per_node
    if count is None and request.gives("nodes", "ntasks-per-node"):
        count = request.tasks_per_node
    if count is not None and count * each == there:
        return None
    is_refused = count is not None and request.gives("ntasks-per-node")
    return Finding(
        place(task),
        f"{there} GPUs on each node, and {each} for each "
        + (f"of {count} tasks there" if count is not None else "task"),
        "Slurm refuses the job: the numbers contradict each other"
        if is_refused
        else "Slurm takes as many nodes as the tasks' GPUs need, and hides them from each other",
        "keep the GPUs of the node, with --nodes and --ntasks-per-node",
        severity=ERROR if is_refused else WARNING,
        also=(place(per_node),),
    )


def _in_all(request: Request, per_node: Directive | None) -> Finding | None:
    """GPUs in all against those of a node."""
    total, gpus, each = request.directive("gpus"), request.gpus, request.gpus_per_node
    if total is None or gpus is None or per_node is None or not each:
        return None
    nodes = request.total_nodes if request.gives("nodes", "nodelist") else None
    if nodes is not None:
        if gpus == nodes * each:
            return None
        why = "Slurm refuses the job: the numbers contradict each other"
        what = f"{gpus} GPUs in all, and {each} on each of {nodes} nodes"
    elif gpus % each:
        why = "Slurm refuses the job: no number of nodes gives that"
        what = f"{gpus} GPUs in all, and {each} on each node"
    elif gpus > each:
        why = f"Slurm takes {gpus // each} nodes, which nothing in the script says"
        what = f"{gpus} GPUs in all, and {each} on each node"
    else:
        return None
    is_silent = nodes is None and not gpus % each
    return Finding(
        place(total),
        what,
        why,
        "remove --gpus, and write --nodes",
        severity=WARNING if is_silent else ERROR,
        also=(place(per_node),),
    )


def _lonely(job: Job, request: Request) -> Finding | None:
    """A share of something that is not there."""
    sockets = request.directive("gpus-per-socket")
    if sockets is not None and not request.gives("sockets-per-node", "extra-node-info"):
        return Finding(
            place(sockets),
            "GPUs per socket, and nothing says how many sockets",
            "Slurm refuses --gpus-per-socket without --sockets-per-node",
            "add --sockets-per-node, or write --gpus-per-node",
        )
    if request.gives(*_GPUS) or (job.profile is not None and job.profile.gpus.form == "none"):
        return None
    for option, since in _SHARES:
        directive = request.directive(option)
        if directive is not None and (job.slurm is None or job.slurm >= since):
            return Finding(
                place(directive),
                f"--{option}, and no GPU is asked for",
                f"Slurm refuses it without GPUs (from {since} on)",
                "add --gpus-per-node, or remove it",
            )
    return None
