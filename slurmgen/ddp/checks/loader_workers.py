"""The check for more DataLoader workers than there are CPUs."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slurmgen.ddp.checks.facts import Facts


def check(everyone: Sequence[Facts]) -> Iterator[str]:
    """More DataLoader workers on a node than CPUs for them.

    Mistake: num_workers copied from a machine with more CPUs, or meant for the node and given to
    each rank; or a job that asks for one CPU per task.
    Why: the workers and the ranks take turns on the CPUs, and the GPUs wait.
    Fix: fewer workers per rank, or more CPUs per task.

    As many workers as CPUs are fine, and so are none.
    """
    nodes: dict[str, list[Facts]] = defaultdict(list)
    for one in everyone:
        nodes[one.node].append(one)
    over = [here for here in nodes.values() if 0 < cpus(here) < sum(one.workers for one in here)]
    if over:
        here = over[0]
        count = cpus(here)
        total = sum(one.workers for one in here)
        more = f", and on {len(over) - 1} other node(s)" if len(over) > 1 else ""
        yield (
            f"{total} DataLoader workers of {len(here)} rank(s) share {count} CPU(s) on"
            f" {here[0].node}{more}: take num_workers={count // len(here)} per rank, or ask for"
            f" more CPUs (--cpus-per-task={-(-total // _tasks(here))})"
        )


def cpus(here: Sequence[Facts]) -> int:
    """The CPUs that the ranks of one node share, 0 where that isn't known.

    What they may run on, but no more than Slurm gave: without confinement they may run on all.
    """
    allowed = 0
    for one in here:
        allowed |= one.cpus
    bounds = [
        allowed.bit_count(),
        here[0].cpus_per_task * _tasks(here) or here[0].cpus_on_node,
    ]
    return min((bound for bound in bounds if bound), default=0)


def _tasks(here: Sequence[Facts]) -> int:
    return len({one.task for one in here})
