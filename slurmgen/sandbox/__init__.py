"""A throwaway real Slurm on this machine, with as many nodes and GPUs as are wanted."""

from slurmgen.sandbox.sandbox import DEFAULT_NAME, Sandbox, Status, remove, statuses
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
