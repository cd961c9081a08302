"""Shape: what the pretend cluster looks like."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from slurmgen.errors import UsageError

# Node addresses and ports are laid out for this many; see addresses.py.
MAX_NODES = 1024
# Slurm's own most, in one name with brackets.
_MOST_NODES = 65_533

# The partition whose jobs preempt those of the others.
PREEMPTOR = "preempt"

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

# What the sandbox itself lives on: another value would put a daemon on the network, into
# another user's hands or out of reach of `down`.
_OWN_SETTINGS = frozenset(
    {
        "authinfo",
        "authtype",
        "communicationparameters",
        "include",
        "slurmctldhost",
        "slurmctldlogfile",
        "slurmctldpidfile",
        "slurmctldport",
        "slurmdlogfile",
        "slurmdpidfile",
        "slurmdport",
        "slurmdspooldir",
        "slurmduser",
        "slurmuser",
        "statesavelocation",
        "taskprolog",
    }
)


@dataclass(frozen=True)
class NodeGroup:
    """Nodes that are all alike. CPUs, memory (MiB) and GPUs are pretended.

    powered_off: more of them, which Slurm knows and nobody runs: `sbatch --test-only` judges a
    job by them too, and no job starts there.
    """

    nodes: int = 2
    gpus_per_node: int = 4
    gpu_type: str = "a100"
    cpus_per_node: int = 64
    memory_mb: int = 262_144
    features: tuple[str, ...] = ()
    powered_off: int = 0

    def __post_init__(self) -> None:
        _require_range("nodes", self.nodes, 1, MAX_NODES)
        _require_range("nodes that are powered off", self.powered_off, 0, _MOST_NODES)
        _require_range("gpus per node", self.gpus_per_node, 0, 64)
        _require_range("CPUs per node", self.cpus_per_node, 1, 4096)
        _require_range("memory per node (MiB)", self.memory_mb, 1, 1 << 40)
        if self.gpu_type and not _WORD.fullmatch(self.gpu_type):
            raise UsageError(
                f"{self.gpu_type!r} is not a GPU type",
                fix='write one word of letters, digits, "_", "-" and ".", such as a100',
            )
        for feature in self.features:
            if not _WORD.fullmatch(feature):
                raise UsageError(
                    f"{feature!r} is not a feature of a node",
                    fix='write one word of letters, digits, "_", "-" and ".", such as nvlink',
                )

    @property
    def gres(self) -> str:
        """A node's GPUs as Slurm spells them (`gpu:a100:4`); empty where it has none."""
        if not self.gpus_per_node:
            return ""
        kind = f"gpu:{self.gpu_type}" if self.gpu_type else "gpu"
        return f"{kind}:{self.gpus_per_node}"


@dataclass(frozen=True)
class PartitionShape:
    """A partition: its node groups, as they are counted from 0, and its limits.

    groups: none for all. max_minutes: the time limit; none for no limit. further: other words
    of its line in slurm.conf, such as `MaxMemPerNode=1000`.
    """

    name: str
    groups: tuple[int, ...] = ()
    max_minutes: int | None = None
    min_nodes: int = 1
    max_nodes: int | None = None
    further: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _WORD.fullmatch(self.name) or self.name.upper() in {"ALL", "DEFAULT"}:
            raise UsageError(
                f"{self.name!r} is not a partition name",
                fix="write one word, neither ALL nor DEFAULT (Slurm reserves them)",
            )
        if self.max_minutes is not None:
            _require_range("the time limit (minutes)", self.max_minutes, 1, 1 << 24)
        _require_range("the fewest nodes of a job", self.min_nodes, 1, _MOST_NODES)
        if self.max_nodes is not None:
            # Of a large cluster it is more than a sandbox has.
            _require_range("the most nodes of a job", self.max_nodes, self.min_nodes, _MOST_NODES)


@dataclass(frozen=True)
class Shape:
    """Nodes `n1` to `nN`, all alike, or in groups of which each is alike.

    The first partition is the default one; one that is given by name alone holds every
    node. `extra_conf` lines end up at the end of slurm.conf, where they override the
    sandbox's own settings. A shape that Slurm couldn't start is a `UsageError` as early as
    it is built.

    The first fields are those of a `NodeGroup`, and make the only one where `groups` is empty;
    with groups they don't count. n1 is the first node of the first group.

    grace_seconds: jobs can be preempted, and are told this long before; none where they can't.

    sacctmgr: what else the accounting is told, a line of sacctmgr's words each, such as
    `add qos debug MaxWall=30`; it counts in a sandbox that keeps accounts.
    """

    nodes: int = 2
    gpus_per_node: int = 4
    gpu_type: str = "a100"
    cpus_per_node: int = 64
    memory_mb: int = 262_144
    partitions: tuple[str | PartitionShape, ...] = ("gpu",)
    extra_conf: tuple[str, ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    grace_seconds: int | None = None
    sacctmgr: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require_range("nodes", self.node_count, 1, MAX_NODES)
        if self.grace_seconds is not None:
            _require_range("the grace time (seconds)", self.grace_seconds, 0, 86_400)
        self._check_partitions()
        for line in self.extra_conf:
            _check_extra_line(line)

    @classmethod
    def of_description(cls, description: dict[str, Any]) -> Shape:
        """The one that `dataclasses.asdict` took apart, and JSON since."""
        given = _tuples(description)
        given["groups"] = tuple(NodeGroup(**_tuples(group)) for group in given["groups"])
        given["partitions"] = tuple(
            one if isinstance(one, str) else PartitionShape(**_tuples(one))
            for one in given["partitions"]
        )
        return cls(**given)

    @property
    def node_groups(self) -> tuple[NodeGroup, ...]:
        """Every group, in the order of its nodes."""
        return self.groups or (
            NodeGroup(
                self.nodes, self.gpus_per_node, self.gpu_type, self.cpus_per_node, self.memory_mb
            ),
        )

    @property
    def node_count(self) -> int:
        """How many nodes there are in all."""
        return sum(group.nodes for group in self.node_groups)

    @property
    def partition_shapes(self) -> tuple[PartitionShape, ...]:
        """Every partition, those given by name too."""
        return tuple(
            PartitionShape(one) if isinstance(one, str) else one for one in self.partitions
        )

    def numbers(self, group: int) -> range:
        """The numbers of the nodes of a group, counted from 0; nodes count from 1."""
        first = 1 + sum(one.nodes for one in self.node_groups[:group])
        return range(first, first + self.node_groups[group].nodes)

    def powered_off(self, group: int) -> range:
        """The numbers of its nodes that are powered off; they count from 1 too."""
        first = 1 + sum(one.powered_off for one in self.node_groups[:group])
        return range(first, first + self.node_groups[group].powered_off)

    def _check_partitions(self) -> None:
        if not self.partitions:
            raise UsageError("a sandbox needs a partition", fix="name one, such as gpu")
        names = [partition.name for partition in self.partition_shapes]
        if len(set(names)) != len(names):
            raise UsageError("a partition is named twice", fix="name each partition once")
        if self.grace_seconds is not None and PREEMPTOR in names:
            raise UsageError(
                f"where jobs can be preempted, {PREEMPTOR!r} is the partition that does it",
                fix="give yours another name",
            )
        for partition in self.partition_shapes:
            for group in partition.groups:
                _require_range(
                    f"a node group of partition {partition.name}",
                    group,
                    0,
                    len(self.node_groups) - 1,
                )


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
    }


def _require_range(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UsageError(
            f"{value} is out of range for {what}", fix=f"give a number from {low} to {high}"
        )


def _check_extra_line(line: str) -> None:
    if "\n" in line or "\r" in line:
        raise UsageError(
            f"{line!r} is more than one line of slurm.conf", fix="give each line separately"
        )
    key = re.split(r"[\s=]", line.strip(), maxsplit=1)[0].lower()
    if key in _OWN_SETTINGS:
        raise UsageError(
            f"{line.strip()!r} changes a setting that the sandbox depends on",
            fix="leave that line out",
        )
