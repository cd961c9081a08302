"""Like: the shape of a sandbox that stands for a cluster, by its profile.

Partitions, their limits, kinds of nodes, features and types of GPUs are the cluster's; nodes
are fewer. With accounting, so are its QOS, and the limits of partitions that slurm.conf has no
words for, which Slurm keeps in a QOS of the partition's own. What a profile leaves open has a
value here that lets jobs pass, and is told.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from slurmgen.errors import UsageError
from slurmgen.sandbox.accounting import ACCOUNT, ENFORCED, USER
from slurmgen.sandbox.shape import NodeGroup, PartitionShape, Shape
from slurmgen.slurm.grammars.constraint import features
from slurmgen.slurm.grammars.memory import parse_memory
from slurmgen.slurm.grammars.time import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from slurmgen.cluster.profile import NodeType, Partition, Profile, Qos
    from slurmgen.cluster.profile.limits import Selectable

_CPUS, _MEMORY_MB, _GPUS = 64, 262_144, 4
# Of a cluster without partitions, or where none may be named.
_PARTITION = "batch"
# Before a partition's name: the QOS with its limits.
_OF_PARTITION = "partition-"
# A bound, sacctmgr's name of it, and what is counted.
_SETTINGS = {
    "max_time": ("MaxWall", ""),
    "max_nodes": ("MaxTRESPerJob", "node="),
    "max_gpus": ("MaxTRESPerJob", "gres/gpu="),
    "max_cpus": ("MaxTRESPerJob", "cpu="),
    "min_nodes": ("MinTRESPerJob", "node="),
    "min_gpus": ("MinTRESPerJob", "gres/gpu="),
    "max_node_time": ("MaxTRESMinsPerJob", "node="),
}
# Those that slurm.conf has no words for.
_PARTITION_KEYS = ("max_gpus", "max_cpus", "min_gpus", "max_node_time")
# By which flag a QOS's bound counts in place of the partition's.
_OVER_PARTITION = {
    "max_time": "PartitionTimeLimit",
    "max_nodes": "PartitionMaxNodes",
    "min_nodes": "PartitionMinNodes",
}


class Like(NamedTuple):
    """shape: of the sandbox. told: where it is not the cluster's own."""

    shape: Shape
    told: tuple[str, ...]


def shape_like(
    profile: Profile, nodes: int, *, accounting: bool = False, powered_off: int = 0
) -> Like:
    """A sandbox like the cluster, with at most `nodes` nodes of each kind.

    accounting: whether it will keep accounts. powered_off: how many nodes of each kind at most
    Slurm knows beside them, so that it can be asked about larger jobs than run here.
    Raises UsageError for a profile that knows no kind of node.
    """
    if not profile.node_types:
        raise UsageError(
            f"the profile {profile.name} says nothing of its nodes",
            fix="choose another one (slurmgen cluster list), or give --nodes, --gpus and so on",
        )
    told: list[str] = []
    common = sorted(_features_of_all(profile))
    groups = tuple(
        replace(
            _group(kind, nodes, common, told),
            powered_off=max(0, min(powered_off, (kind.count or nodes + powered_off) - nodes)),
        )
        for kind in profile.node_types
    )
    partitions = tuple(
        _partition(one, groups, profile, has_qos=accounting) for one, groups in _partitions(profile)
    )
    if len(partitions) > 1 and not any(partition.default for partition in profile.partitions):
        told.append(f"the profile knows no default partition; here it is {partitions[0].name}")
    if any("clusters" in options for options in _directives(profile)):
        told.append("jobs with --clusters are refused: this Slurm is the only one here")
    if profile.qos and not accounting:
        told.append(
            "it keeps no accounts: any account and QOS is taken, and no QOS has limits; "
            "with --accounting it has those of the profile"
        )
    elif accounting:
        named = [name for name in (ACCOUNT, _account(profile)) if name]
        told.append(f"its accounts are {' and '.join(named)}; no other is taken")
    shape = Shape(
        groups=groups,
        partitions=partitions,
        extra_conf=(*_extra_conf(profile), *([ENFORCED] if accounting else [])),
        sacctmgr=tuple(_sacctmgr(profile)) if accounting else (),
    )
    return Like(shape, tuple(told))


def _sacctmgr(profile: Profile) -> Iterator[str]:
    """The profile's QOS, and its example of an account, of whoever runs the sandbox."""
    for qos in profile.qos:
        yield _qos(qos.name, _limits(qos, _SETTINGS), _flags(qos))
    for partition, _ in _partitions(profile):
        limits = _limits(partition, _PARTITION_KEYS)
        if limits:
            yield _qos(f"{_OF_PARTITION}{partition.name}", limits, ["DenyOnLimit"])
    account = _account(profile)
    if account:
        yield f"add account {account}"
        yield f"add user {USER} account={account}"
    named = ",".join(["normal", *(qos.name for qos in profile.qos)])
    default = [f"defaultqos={qos.name}" for qos in profile.qos if qos.default]
    yield " ".join([f"modify user where name={USER} set qos={named}", *default])


def _account(profile: Profile) -> str:
    return profile.account.example if profile.account is not None else ""


def _qos(name: str, limits: Sequence[str], flags: Sequence[str]) -> str:
    return " ".join([f"add qos {name}", *limits, f"flags={','.join(flags)}"])


def _flags(qos: Qos) -> list[str]:
    flags = ["DenyOnLimit"]
    if qos.replaces:
        # Else a partition's own QOS comes first.
        flags.append("OverPartQOS")
        flags += [flag for key, flag in _OVER_PARTITION.items() if _bound(qos, key) is not None]
    return flags


def _limits(place: Selectable, keys: Iterable[str]) -> list[str]:
    """A place's bounds in sacctmgr's words."""
    found: dict[str, list[str]] = {}
    for key in keys:
        value = _bound(place, key)
        if value is None:
            continue
        setting, tres = _SETTINGS[key]
        if key == "max_node_time":
            value = (parse_time(value) or 0) // 60
        elif key == "max_time" and parse_time(value) is None:
            continue
        found.setdefault(setting, []).append(f"{tres}{value}")
    return [f"{setting}={','.join(values)}" for setting, values in found.items()]


def _bound(place: Selectable, key: str) -> Any:
    """Slurm has one number for each bound: of several by condition the loosest."""
    value = getattr(place, key)
    if value is None:
        return _loosest(key, [getattr(limit, key) for limit in place.limits])
    return value


def _group(kind: NodeType, nodes: int, common: list[str], told: list[str]) -> NodeGroup:
    has_gpus = bool(kind.gpu or kind.gpus_per_node)
    gpus = kind.gpus_per_node or (_GPUS if has_gpus else 0)
    cpus = kind.cpus or (kind.cpus_per_gpu or 0) * gpus or _CPUS
    memory = kind.memory and parse_memory(kind.memory)
    if not memory and kind.mem_per_gpu:
        memory = parse_memory(kind.mem_per_gpu) * gpus
    unknown = [
        f"{amount} {what}"
        for known, amount, what in (
            (kind.gpus_per_node or not has_gpus, gpus, "GPUs"),
            (kind.cpus or kind.cpus_per_gpu, cpus, "CPUs"),
            (memory, _MEMORY_MB, "MiB of memory"),
        )
        if not known
    ]
    if unknown:
        told.append(f"the profile does not know {kind.name} nodes whole: {', '.join(unknown)}")
    chosen = features(kind.select.constraint or "")
    own = dict.fromkeys([*(kind.features or ()), *chosen, *common])
    return NodeGroup(
        nodes=min(kind.count or nodes, nodes),
        gpus_per_node=gpus,
        gpu_type=kind.gpu or "",
        cpus_per_node=cpus,
        memory_mb=memory or _MEMORY_MB,
        features=tuple(own),
    )


def _directives(profile: Profile) -> list[Mapping[str, str | None]]:
    """Those that the profile itself gives to jobs."""
    return [profile.sbatch, *(addition.sbatch for addition in profile.add)]


def _features_of_all(profile: Profile) -> set[str]:
    """Those that the profile itself gives to jobs."""
    given = [profile.defaults.get("constraint")]
    given += [options.get("constraint") for options in _directives(profile)]
    return {word for text in given if text for word in features(text)}


def _partitions(profile: Profile) -> list[tuple[Partition, tuple[int, ...]]]:
    """Each with its node groups: the profile's, and those that jobs there name or go to."""
    from slurmgen.cluster.profile import Partition

    known = sorted(profile.partitions, key=_rank)
    found = [(one, _groups(one.name, one.node_types, profile)) for one in known]
    names = {partition.name for partition in known}
    chosen = [profile.defaults.get("partition")]
    for kind in profile.node_types:
        chosen += (kind.select.partition or "").split(",")
    for name in chosen:
        if name and name not in names:
            names.add(name)
            found.append((Partition(name=name), _groups(name, (), profile)))
    taken = {group for _, groups in found for group in groups}
    rest = tuple(index for index in range(len(profile.node_types)) if index not in taken)
    if rest and all(groups for _, groups in found):
        # No partition is named for them, so it is where a job goes that names none.
        found.insert(0, (Partition(name=_PARTITION), rest if taken else ()))
    bounds = _everywhere(profile)
    return [(_tightened(partition, bounds), groups) for partition, groups in found]


def _everywhere(profile: Profile) -> dict[str, Any]:
    """The cluster's own bounds, which Slurm has for each partition; none with a condition."""
    found: dict[str, Any] = {}
    for limit in profile.limits:
        if limit.when == type(limit.when)():
            for key in (*_SETTINGS, "max_mem"):
                value = getattr(limit, key)
                if value is not None:
                    found[key] = _tightest(key, found.get(key), value)
    return found


def _tightened(partition: Partition, bounds: Mapping[str, Any]) -> Partition:
    return partition.model_copy(
        update={key: _tightest(key, _bound(partition, key), value) for key, value in bounds.items()}
    )


def _rank(partition: Partition) -> tuple[bool, bool, float]:
    """The first one is where a job goes that names none: if no default is known, the widest of
    those that must not be named."""
    seconds = parse_time(partition.max_time or "0")
    longest = float("-inf") if seconds is None else -float(seconds)
    unnamed = partition.unnamed is not None
    return not partition.default, not unnamed, longest if unnamed else 0


def _partition(
    partition: Partition, groups: tuple[int, ...], profile: Profile, *, has_qos: bool
) -> PartitionShape:
    limits: dict[str, Any] = {}
    for field in ("max_time", "min_nodes", "max_nodes", "max_mem"):
        value = _bound(partition, field)
        if value is not None and not has_qos:
            # A QOS's bound counts in place of it, and this Slurm knows no QOS.
            others = [getattr(qos, field) for qos in profile.qos]
            value = _loosest(field, [value, *(other for other in others if other is not None)])
        limits[field] = value
    seconds = parse_time(limits["max_time"] or "0")
    further = []
    if limits["max_mem"] is not None:
        further.append(f"MaxMemPerNode={parse_memory(limits['max_mem'])}")
    if profile.gpus.form == "none" or partition.whole_nodes:
        further.append("OverSubscribe=EXCLUSIVE")
    if profile.preemption:
        further.append(f"PriorityTier={1 if partition.preemptible else 2}")
    if has_qos and _limits(partition, _PARTITION_KEYS):
        further.append(f"QOS={_OF_PARTITION}{partition.name}")
    return PartitionShape(
        name=partition.name,
        groups=groups,
        max_minutes=None if seconds is None else max(1, seconds // 60),
        min_nodes=limits["min_nodes"] or 1,
        max_nodes=limits["max_nodes"],
        further=tuple(further),
    )


def _loosest(field: str, values: Iterable[Any]) -> Any:
    values = list(values)
    if not values or None in values:
        # A condition without this bound lets everything through.
        return None
    choose = min if field.startswith("min") else max
    return choose(values, key=lambda value: _size(field, value))


def _tightest(field: str, *values: Any) -> Any:
    choose = max if field.startswith("min") else min
    return choose(
        (value for value in values if value is not None), key=lambda value: _size(field, value)
    )


def _size(field: str, value: Any) -> float:
    if field.endswith("time"):
        seconds = parse_time(value)
        return float("inf") if seconds is None else seconds
    return float(parse_memory(value) if field == "max_mem" else value)


def _groups(name: str, kinds: tuple[str, ...], profile: Profile) -> tuple[int, ...]:
    """The node groups of a partition: those it names, else those that name it, else all."""
    choosing = [
        index
        for index, kind in enumerate(profile.node_types)
        if name in (kind.select.partition or "").split(",")
    ]
    named = [i for i, kind in enumerate(profile.node_types) if kind.name in kinds]
    return tuple(named or choosing)


def _extra_conf(profile: Profile) -> Iterable[str]:
    # Else a job over a limit is taken, and waits for ever.
    yield "EnforcePartLimits=ALL"
    if profile.max_array_size is not None:
        yield f"MaxArraySize={profile.max_array_size}"
    if profile.inventory.licenses:
        yield f"Licenses={','.join(f'{name}:100' for name in profile.inventory.licenses)}"
    if profile.preemption:
        yield "PreemptType=preempt/partition_prio"
        yield "PreemptMode=REQUEUE"
    how = profile.when_preempted
    if how is not None and how.requeue == "on request":
        yield "JobRequeue=0"
