"""What slurmgen knows of one cluster: facts and rules, no code.

A profile says how GPUs are asked for there, what must and must not be written, what the
nodes and partitions hold, and what a job gets when it says nothing. Everything is
optional: an absent fact is unknown and never checked. Conditions are data (`conditions.py`),
so that whoever reviews a profile reads what the site's documents say and nothing else.
"""

from slurmgen.cluster.profile.about import Detection, Note, Source
from slurmgen.cluster.profile.conditions import When
from slurmgen.cluster.profile.limits import Bounds, Limit, Partition, Qos
from slurmgen.cluster.profile.model import Profile
from slurmgen.cluster.profile.nodes import Inventory, NodeType, Select
from slurmgen.cluster.profile.options import Account, Addition, Gpus, Reason
from slurmgen.cluster.profile.starting import (
    Binding,
    Container,
    Launch,
    PortRange,
    Preemption,
    Rendezvous,
    Suggestion,
)

__all__ = [
    "Account",
    "Addition",
    "Binding",
    "Bounds",
    "Container",
    "Detection",
    "Gpus",
    "Inventory",
    "Launch",
    "Limit",
    "NodeType",
    "Note",
    "Partition",
    "PortRange",
    "Preemption",
    "Profile",
    "Qos",
    "Reason",
    "Rendezvous",
    "Select",
    "Source",
    "Suggestion",
    "When",
]
