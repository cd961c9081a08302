"""Nodes of a cluster by kind: those that a job could not tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slurmgen.slurm.answers.facts import Gpus, Node

# Nodes of a kind may differ in memory by a fiftieth: a DIMM's firmware, a larger kernel.
_ALIKE = 50
# More sets of features than this on equal nodes are racks and switches, and no kinds.
_MOST_FEATURE_SETS = 4


class Kind(NamedTuple):
    """gpus: one type; nodes with several are of several kinds. The numbers are the largest
    that any of its nodes has: what is over them runs nowhere. features: of any of them.
    total_gpus: of a node, of all types.
    """

    name: str
    gpus: Gpus | None
    total_gpus: int
    cpus: int
    memory: int
    tmp: int
    threads_per_core: int
    arch: str | None
    features: frozenset[str]
    nodes: tuple[str, ...]


def kinds(nodes: Iterable[Node]) -> tuple[Kind, ...]:
    """Every kind, those with GPUs first, in an order that depends on the nodes alone."""
    groups: list[list[Node]] = []
    for node in sorted(nodes, key=lambda n: (_hardware(n), n.memory, n.name)):
        last = groups[-1] if groups else None
        if last is not None and _hardware(last[0]) == _hardware(node):
            if node.memory - last[0].memory <= last[0].memory // _ALIKE:
                last.append(node)
                continue
        groups.append([node])
    found = [kind for group in groups for part in _by_features(group) for kind in _kinds_of(part)]
    found.sort(
        key=lambda k: (
            -k.total_gpus,
            ((k.gpus.kind or "", k.gpus.number) if k.gpus else ()),
            -k.cpus,
            -k.memory,
            k.nodes,
        )
    )
    return tuple(_named(found))


def _hardware(node: Node) -> tuple[object, ...]:
    gpus = sorted((gpu.kind or "", gpu.number) for gpu in node.gpus)
    return (gpus, node.cpus, node.threads_per_core, node.arch or "")


def _by_features(group: Sequence[Node]) -> list[list[Node]]:
    sets: dict[frozenset[str], list[Node]] = {}
    for node in group:
        sets.setdefault(node.features, []).append(node)
    return list(sets.values()) if len(sets) <= _MOST_FEATURE_SETS else [list(group)]


def _kinds_of(group: Sequence[Node]) -> Iterable[Kind]:
    first = group[0]
    each: list[Gpus | None] = list(first.gpus) or [None]
    for gpus in each:
        yield Kind(
            name="",
            gpus=gpus,
            total_gpus=sum(gpu.number for gpu in first.gpus),
            cpus=first.cpus,
            memory=max(node.memory for node in group),
            tmp=max(node.tmp for node in group),
            threads_per_core=first.threads_per_core,
            arch=first.arch,
            features=frozenset().union(*(node.features for node in group)),
            nodes=tuple(sorted(node.name for node in group)),
        )


def _named(found: Sequence[Kind]) -> list[Kind]:
    """Names as short as tells them apart: h100, h100-8, h100-8-96c, h100-8-96c-512g."""
    parts = [_parts(kind, found) for kind in found]
    names = [own[0] for own in parts]
    for length in range(2, 6):
        clashing = {name for name in names if names.count(name) > 1}
        names = [
            "-".join(own[:length]) if name in clashing else name
            for name, own in zip(names, parts, strict=True)
        ]
    counted: dict[str, int] = {}
    named = []
    for kind, name in zip(found, names, strict=True):
        counted[name] = counted.get(name, 0) + 1
        own = name if names.count(name) == 1 else f"{name}-{counted[name]}"
        named.append(kind._replace(name=own))
    return named


def _parts(kind: Kind, found: Sequence[Kind]) -> list[str]:
    alike = [k.features for k in found if k is not kind and k.gpus == kind.gpus]
    special = sorted(kind.features.difference(*alike)) if alike else []
    return [
        (kind.gpus.kind or "gpu") if kind.gpus else "cpu",
        *([str(kind.gpus.number)] if kind.gpus else []),
        f"{kind.cpus}c",
        f"{round(kind.memory / 1024)}g",
        *special[:1],
    ]
