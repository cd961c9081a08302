"""spawn: a task per node, and the program starts the node's ranks by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.launchers import Layout, one_task_per_node

if TYPE_CHECKING:
    from slurmgen.spec.job import JobSpec

ARGUMENTS = '"$@"'


def layout(spec: JobSpec, gpus: int) -> Layout:
    """A task per node; the program forks a rank per GPU."""
    return one_task_per_node(spec, gpus)


def program(world: Layout, nodes: int, rdzv: str) -> tuple[str, ...]:
    """Nothing stands before the command."""
    return ()
