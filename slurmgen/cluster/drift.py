"""Where a profile and the cluster have drifted apart, in words.

Only what both say is compared: a profile holds rules that no Slurm knows of, and an absent
fact is unknown. A site may enforce less than it writes down, so every line is for a person
to judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurmgen.slurm.grammars.memory import parse_memory
from slurmgen.slurm.grammars.time import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slurmgen.cluster.profile import NodeType, Profile
    from slurmgen.cluster.profile.limits import Selectable

_BOUNDS = {
    "max_time": "time limit",
    "min_nodes": "least nodes of a job",
    "max_nodes": "most nodes of a job",
    "min_gpus": "least GPUs of a job",
    "max_gpus": "most GPUs of a job",
    "max_cpus": "most CPUs of a job",
    "max_mem": "most memory of a node",
    "max_node_time": "most of nodes times time",
}
_NODE_FACTS = {
    "gpus_per_node": "GPUs",
    "cpus": "CPUs for jobs",
    "memory": "memory for jobs",
    "tmp": "local disk",
    "threads_per_core": "threads per core",
    "count": "how many there are",
}


def differences(profile: Profile, live: Profile) -> list[str]:
    """A line for each. live: the profile that the running cluster makes."""
    lines = [
        f"{what}: {_said(getattr(profile, key), getattr(live, key))}"
        for key, what in (
            ("slurm", "Slurm's version"),
            ("max_array_size", "MaxArraySize"),
            ("preemption", "whether jobs can be preempted"),
            ("constrain_devices", "whether a task is kept to its own GPUs (ConstrainDevices)"),
        )
        if _differ(key, getattr(profile, key), getattr(live, key))
    ]
    lines += _node_types(profile, live)
    lines += _places(
        "partition", profile.partitions, live.partitions, is_open=profile.other_partitions
    )
    # What a user may not use is not shown to him: a QOS less says nothing.
    if profile.qos and live.qos:
        lines += _places("QOS", profile.qos, live.qos, is_open=True)
    for key in ("nodes", "licenses", "reservations", "gres"):
        lines += _names(
            key, getattr(profile.inventory, key), getattr(live.inventory, key), "inventory"
        )
    return lines


def _differ(key: str, written: Any, there: Any) -> bool:
    if written is None or there is None:
        return False
    if key == "slurm":
        return _line(written) != _line(there)
    return bool(_value(key, written) != _value(key, there))


def _line(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _value(key: str, value: Any) -> Any:
    if key in ("max_time", "max_node_time"):
        return parse_time(value)
    return parse_memory(value) if key in ("memory", "max_mem", "tmp") else value


def _said(written: Any, there: Any) -> str:
    return f"{_word(there)} on the cluster, {_word(written)} in the profile"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def _node_types(profile: Profile, live: Profile) -> Iterator[str]:
    known = [kind for kind in profile.node_types if kind.gpu or kind.gpus_per_node]
    matched: set[str] = set()
    for kind in profile.node_types:
        alike = _alike(kind, live.node_types)
        if not alike:
            if kind.gpu or kind.gpus_per_node:
                wanted = f"GPUs of type {kind.gpu}" if kind.gpu else "GPUs"
                yield f"node type {kind.name}: no node of the cluster has {wanted}"
            continue
        nearest = min(alike, key=lambda other: len(list(_of_node(kind, other))))
        matched |= {other.gpu or "" for other in alike}
        yield from _of_node(kind, nearest)
    if known:
        for other in live.node_types:
            if other.gpus_per_node and (other.gpu or "") not in matched:
                matched.add(other.gpu or "")
                gpu = f"{other.gpus_per_node} x {other.gpu or 'GPU'}"
                yield f"node type {other.name} ({gpu}) is on the cluster, and not in the profile"


def _alike(kind: NodeType, others: Iterable[NodeType]) -> list[NodeType]:
    """The cluster's kinds that may be this one: by name, else by their GPUs."""
    others = [other for other in others if bool(other.gpus_per_node) == _has_gpus(kind)]
    named = [other for other in others if other.name == kind.name and other.gpu == kind.gpu]
    if named or not _has_gpus(kind):
        return named
    typed = [other for other in others if kind.gpu is None or other.gpu in (kind.gpu, None)]
    return [o for o in typed if o.gpus_per_node == kind.gpus_per_node] or typed


def _has_gpus(kind: NodeType) -> bool:
    return bool(kind.gpu or kind.gpus_per_node)


def _of_node(kind: NodeType, other: NodeType) -> Iterator[str]:
    for key, what in _NODE_FACTS.items():
        written, there = getattr(kind, key), getattr(other, key)
        if key == "gpus_per_node" and not (written and there):
            continue
        if _differ(key, written, there):
            yield f"node type {kind.name}, {what}: {_said(written, there)}"
    if kind.features is not None:
        yield from _names("features", kind.features, other.features, f"node type {kind.name}")


def _places(
    noun: str,
    written: tuple[Selectable, ...],
    there: tuple[Selectable, ...],
    *,
    is_open: bool,
) -> Iterator[str]:
    if not written:
        return
    on_cluster = {place.name: place for place in there}
    for place in written:
        other = on_cluster.pop(place.name, None)
        if other is None:
            yield f"{noun} {place.name} is in the profile, and not on the cluster"
            continue
        yield from _bounds(noun, place, other)
    if not is_open:
        for name in on_cluster:
            yield f"{noun} {name} is on the cluster, and not in the profile"


def _bounds(noun: str, place: Selectable, other: Selectable) -> Iterator[str]:
    if noun == "partition" and place.default != other.default:
        said = _said(place.default, other.default)
        yield f"{noun} {place.name}, whether it is the default: {said}"
    for key, what in _BOUNDS.items():
        written, there = getattr(place, key), getattr(other, key)
        # A rule by node count says more than one number can.
        by_condition = [getattr(limit, key) for limit in place.limits]
        if written is None and any(value is not None for value in by_condition):
            if None in by_condition:
                # No one number lets through what the rules do.
                continue
            written = _loosest(key, by_condition)
        if written is None and there is None:
            continue
        if _value_or_none(key, written) != _value_or_none(key, there):
            yield f"{noun} {place.name}, {what}: {_said(written, there)}"


def _value_or_none(key: str, value: Any) -> Any:
    return None if value is None else _value(key, value)


def _loosest(key: str, values: list[Any]) -> Any:
    """Of bounds by condition the one that Slurm's single one has to let through."""
    numbers = {value: _value(key, value) for value in values}

    def size(value: Any) -> float:
        return float("inf") if numbers[value] is None else float(numbers[value])

    return min(values, key=size) if key.startswith("min") else max(values, key=size)


def _names(
    key: str, written: tuple[str, ...] | None, there: tuple[str, ...] | None, of: str
) -> Iterator[str]:
    if written is None or there is None:
        return
    gone, new = sorted(set(written) - set(there)), sorted(set(there) - set(written))
    if gone:
        yield f"{of}, {key}: not on the cluster any more: {', '.join(gone)}"
    if new:
        yield f"{of}, {key}: not in the profile: {', '.join(new)}"
