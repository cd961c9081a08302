"""Whether a launch has several tasks, or runs on several nodes, where that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.reading.shell.starters import DEEPSPEED, HOROVODRUN

if TYPE_CHECKING:
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.slurm.request import Request


def most_nodes(request: Request) -> int | None:
    """The most nodes that a job can get, None where nothing says so."""
    if request.total_nodes is not None:
        return request.total_nodes
    return None if request.nodes is None else request.nodes[1]


def has_nodes(job: Job) -> bool:
    """Whether some component of the job asks for several nodes."""
    return any((most_nodes(request) or 1) > 1 for request in job.script.requests)


def spans_nodes(job: Job, launch: Launch) -> bool:
    """Whether a launch runs on several nodes; the job counts where its srun doesn't say."""
    launcher = launch.launcher
    if launch.step is None and launcher is not None and launcher.kind in (DEEPSPEED, HOROVODRUN):
        # These reach the other nodes by themselves.
        return has_nodes(job)
    nodes = job.extent(launch).nodes
    if nodes is not None:
        return nodes > 1
    return (most_nodes(job.request_of(launch)) or 1) > 1


def has_tasks(job: Job, launch: Launch) -> bool:
    """Whether a launch is several tasks; the job counts where its srun doesn't say."""
    tasks = job.extent(launch).tasks
    if tasks is not None:
        return tasks > 1
    request = job.request_of(launch)
    if request.total_tasks is not None:
        return request.total_tasks > 1
    return (request.ntasks_per_node or 1) > 1 or (most_nodes(request) or 1) > 1


def is_one_of_many(launch: Launch) -> bool:
    """Whether a loop starts a launcher on one node after the other, which form one group."""
    command, launcher = launch.command, launch.launcher
    if not (command.loop and command.background) or launcher is None:
        return False
    nodes = launcher.option("nnodes", "num_machines")
    return nodes is not None and nodes.literal != "1"
