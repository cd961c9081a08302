"""What a job asks of each node, as a profile's rules look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from slurmgen.cluster.profile import NodeType
    from slurmgen.launchers import Layout


class Ask(NamedTuple):
    """What a job asks of each node.

    node_type: None where the profile can't tell. gpu_type: as it is written; None: it is
    not. gpus: on each node. cpus_per_task: None where it is left to the site.
    """

    node_type: NodeType | None
    layout: Layout
    gpu_type: str | None
    gpus: int
    cpus_per_task: int | None
