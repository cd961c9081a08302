"""Which rank sits on which node, GPU and CPUs, as Slurm will place a plan's tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen import launchers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.script.plan import JobPlan


class Seat(NamedTuple):
    """A rank and where it sits; `gpus` are indices among the node's GPUs of the job.

    cpus: None where they are left to the site.
    """

    rank: int
    node: int
    local_rank: int
    gpus: tuple[int, ...]
    cpus: int | None


def seat(plan: JobPlan, index: int) -> Seat:
    """Seat number `index` (from 0) in the order of nodes and local ranks.

    Slurm spreads tasks evenly, the first nodes taking the rest.
    """
    layout = plan.layout
    if launchers.find(plan.launcher).is_one_process:
        return Seat(0, 0, 0, tuple(range(plan.gpus_per_node)), plan.cpus_per_task)
    each, rest = divmod(layout.ntasks, plan.nodes)
    each *= layout.nproc_per_task
    most = each + layout.nproc_per_task
    if index < rest * most:
        node, local = divmod(index, most)
    else:
        node, local = divmod(index - rest * most, each)
        node += rest
    # Dealt out in turn, every node before this one has its task of this round, and all nodes
    # have one of each round before.
    cyclic = plan.distribution.startswith("cyclic") and layout.nproc_per_task == 1
    rank = local * plan.nodes + node if cyclic else index
    gpus = (local,) if plan.gpus_per_node else ()
    return Seat(rank, node, local, gpus, plan.cpus_per_rank)


def seats(plan: JobPlan) -> Iterator[Seat]:
    """Every rank of the job, in the order of nodes and local ranks."""
    return (seat(plan, index) for index in range(plan.world_size))


def seats_on(plan: JobPlan, node: int) -> range:
    """The numbers of the seats on one node."""
    each, rest = divmod(plan.layout.ntasks, plan.nodes)
    nproc = plan.layout.nproc_per_task
    first = (node * each + min(node, rest)) * nproc
    return range(first, first + (each + (node < rest)) * nproc)
