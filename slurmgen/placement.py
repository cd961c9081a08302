"""Which rank sits on which node, GPU and CPUs, as Slurm will place a plan's tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.plan import JobPlan


class Seat(NamedTuple):
    """A rank and where it sits; `gpus` are indices among the node's GPUs of the job."""

    rank: int
    node: int
    local_rank: int
    gpus: tuple[int, ...]
    cpus: int


def tasks_on_nodes(plan: JobPlan) -> list[int]:
    """Tasks on each node: Slurm spreads them evenly, the first nodes taking the rest."""
    each, rest = divmod(plan.layout.ntasks, plan.nodes)
    return [each + (node < rest) for node in range(plan.nodes)]


def seats(plan: JobPlan) -> Iterator[Seat]:
    """Every rank of the job, in the order of nodes and local ranks."""
    layout = plan.layout
    if plan.launcher == "plain":
        yield Seat(0, 0, 0, tuple(range(plan.gpus_per_node)), plan.cpus_per_task)
        return
    counts = tasks_on_nodes(plan)
    cyclic = plan.distribution.startswith("cyclic") and layout.nproc_per_task == 1
    first = 0
    for node, tasks in enumerate(counts):
        for local in range(tasks * layout.nproc_per_task):
            rank = sum(min(c, local + (n < node)) for n, c in enumerate(counts)) if cyclic else 0
            gpus = (local,) if plan.gpus_per_node else ()
            yield Seat(rank if cyclic else first + local, node, local, gpus, plan.cpus_per_rank)
        first += tasks * layout.nproc_per_task
