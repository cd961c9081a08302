"""A throwaway real Slurm on this machine, with as many nodes and GPUs as are wanted."""

from slurmgen.sandbox.removal import DEFAULT_NAME, remove
from slurmgen.sandbox.sandbox import Sandbox, Status, statuses
from slurmgen.sandbox.shape import NodeGroup, PartitionShape, Shape

__all__ = [
    "DEFAULT_NAME",
    "NodeGroup",
    "PartitionShape",
    "Sandbox",
    "Shape",
    "Status",
    "remove",
    "statuses",
]
