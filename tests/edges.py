"""For every limit of a profile a job that is just inside it, and one that is just outside."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from slurmgen.cluster.profile import Bounds, When
from slurmgen.errors import InvalidInput, Refusals
from slurmgen.jobfile.load import load_job
from slurmgen.sandbox import accounting
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from slurmgen.slurm.grammars.memory import parse_memory
from slurmgen.slurm.grammars.time import format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.cluster.profile import NodeType, Profile

ROOT = Path(__file__).resolve().parents[1]
CLUSTERS = tuple(sorted(path.stem for path in (ROOT / "configs" / "clusters").glob("*.yaml")))
# Those whose sandboxes `make matrix` brings up on every version of Slurm; WHOLE=1 takes them all.
SAMPLE = frozenset({"frontier", "lumi", "perlmutter", "vista"})
_WHO: dict[str, dict[str, Any]] = yaml.safe_load(
    (ROOT / "tests" / "golden" / "sites" / "who.yaml").read_text(encoding="utf-8")
)
_BOUNDS = tuple(Bounds.model_fields)
_OF_NODES = ("gpus_per_node", "cpus", "memory", "count", "gpu_counts", "cpus_per_gpu")
_TIMES = ("15m", "1h", "2h")


class Limit(NamedTuple):
    """One number of a profile.

    place: what has it: "partition", "qos", "node type", or "cluster". when: its condition.
    """

    place: str
    name: str
    bound: str
    value: Any
    when: When = When()

    def __str__(self) -> str:
        condition = " ".join(f"{k}={v}" for k, v in self.when if v not in (None, ()))
        named = " ".join(filter(None, (self.place, self.name, self.bound)))
        return f"{named} {condition}".strip()


class Edge(NamedTuple):
    """Keys of two jobs, and whether the number of nodes is what makes the difference."""

    limit: Limit
    inside: dict[str, Any]
    outside: dict[str, Any]

    @property
    def nodes(self) -> int:
        """How many of them the larger job has."""
        return max(self.inside["nodes"], self.outside["nodes"])


def limits_of(profile: Profile) -> list[Limit]:
    """Every limit that it has, a list of allowed numbers as one."""
    found = [
        Limit("cluster", "", bound, getattr(limit, bound), limit.when)
        for limit in profile.limits
        for bound in _BOUNDS
    ]
    found.append(Limit("cluster", "", "gpu_counts", profile.gpus.counts))
    found.append(Limit("cluster", "", "max_array_size", profile.max_array_size))
    for noun, places in (("partition", profile.partitions), ("qos", profile.qos)):
        for place in places:
            for one in (place, *place.limits):
                found += [
                    Limit(
                        noun, place.name, bound, getattr(one, bound), getattr(one, "when", When())
                    )
                    for bound in _BOUNDS
                ]
    for kind in profile.node_types:
        found += [
            Limit("node type", kind.name, bound, getattr(kind, bound))
            for bound in _OF_NODES
            if bound != "cpus_per_gpu" or kind.cpus_rule != "recommended"
        ]
        if kind.gpus_per_node == 0:
            found.remove(Limit("node type", kind.name, "gpus_per_node", 0))
    return [limit for limit in found if limit.value not in (None, ())]


def edge_of(limit: Limit, profile: Profile) -> Edge | None:
    """The first pair of jobs on both sides of it; None where no job comes so far.

    Nothing else of the profile is against the one, and what is against the other names the limit.
    """
    for frame in _frames(limit, profile):
        for inside, outside in _pairs(limit, profile, frame):
            if refusals(profile, inside) == [] and _is_told(limit, profile, outside):
                return Edge(limit, inside, outside)
    return None


def refusals(profile: Profile, job: dict[str, Any]) -> list[str]:
    """What the profile has against a job."""
    try:
        script_of(profile, job)
    except Refusals as error:
        return [problem.what for problem in error.problems]
    except InvalidInput as error:
        return [found.message for found in error.diagnostics]
    return []


def script_of(profile: Profile, job: dict[str, Any]) -> str:
    """Rendered on the profile; raises Refusals."""
    loaded = load_job(yaml.safe_dump(job), "job.yaml", defaults=profile.defaults)
    return render(resolve(loaded.spec, profile, source="job.yaml"))


def boundless(profile: Profile) -> Profile:
    """The same without a single limit: what is rendered for a job there is for Slurm to judge."""
    none = {bound: () if bound == "gpu_counts" else None for bound in _BOUNDS} | {"limits": ()}
    kinds = tuple(
        kind.model_copy(
            update={
                # A job that can't ask for GPUs has all of its nodes'.
                "gpus_per_node": kind.gpus_per_node
                and (kind.gpus_per_node if profile.gpus.form == "none" else 64),
                "cpus": None,
                "memory": None,
                "count": None,
                "gpu_counts": (),
                "cpus_rule": "recommended",
            }
        )
        for kind in profile.node_types
    )
    return profile.model_copy(
        update={
            "limits": (),
            "node_types": kinds,
            "gpus": profile.gpus.model_copy(update={"counts": ()}),
            "qos": tuple(qos.model_copy(update=none) for qos in profile.qos),
            "partitions": tuple(place.model_copy(update=none) for place in profile.partitions),
        }
    )


class _Frame(NamedTuple):
    """What a job has beside what the limit is about."""

    job: dict[str, Any]
    kind: NodeType | None
    gpus: int
    nodes: int


def _frames(limit: Limit, profile: Profile) -> Iterator[_Frame]:
    who = {
        key: value
        for key, value in _WHO.get(profile.name, {}).items()
        if key in ("account", "exclusive", "mem")
    }
    for kind, place, time in product(_kinds(limit, profile), _places(limit, profile), _TIMES):
        for gpus, nodes in product(_gpus(kind, profile), _nodes(limit, profile)):
            if limit.place == "node type" and not gpus and kind is not None and kind.gpu:
                # Nothing would say that the job is for these nodes.
                continue
            job: dict[str, Any] = {"command": "true", "launcher": "torchrun", **who, **place}
            job |= {"time": time, "nodes": nodes}
            if kind is not None and kind.account:
                job["account"] = kind.account.replace("*", "proj")
            job.setdefault("account", _account(profile))
            if gpus:
                typed = kind.name if kind is not None else profile.gpus.typed == "always" and "a100"
                job["gpus_per_node"] = f"{typed}:{gpus}" if typed else gpus
            yield _Frame(job, kind, gpus, nodes)


def _account(profile: Profile) -> str:
    own = profile.account
    return own.example if own is not None and own.example else accounting.ACCOUNT


def _kinds(limit: Limit, profile: Profile) -> list[NodeType | None]:
    named = (limit.name,) if limit.place == "node type" else limit.when.node_type
    for place in (*profile.partitions, *profile.qos):
        if place.name == limit.name and not named:
            named = place.node_types
    return [kind for kind in profile.node_types if not named or kind.name in named] or [None]


def _places(limit: Limit, profile: Profile) -> list[dict[str, str]]:
    """Where jobs go: to the limit's own place, else wherever they may."""
    if limit.place in ("partition", "qos"):
        place = next(one for one in (*profile.partitions, *profile.qos) if one.name == limit.name)
        own = {} if getattr(place, "unnamed", None) is not None else {limit.place: limit.name}
        if limit.place == "qos":
            return [*({**own, "partition": one.name} for one in profile.partitions), own]
        return [own, *({**own, "qos": one.name} for one in profile.qos)]
    # Where no partition is named, the default one may be unknown.
    return [
        *({"partition": one.name} for one in profile.partitions if one.unnamed is None),
        {},
        *({"qos": one.name} for one in profile.qos),
        *(
            {"partition": one.name, "qos": other.name}
            for one in profile.partitions
            for other in profile.qos
        ),
    ]


def _gpus(kind: NodeType | None, profile: Profile) -> list[int]:
    """All GPUs of a node first, none last."""
    most = kind.gpus_per_node if kind is not None and kind.gpus_per_node else 4
    return [*range(most, 0, -1), 0] if profile.gpus.form != "none" else [most, 0]


def _nodes(limit: Limit, profile: Profile) -> list[int]:
    places = [one for one in (*profile.partitions, *profile.qos) if one.name == limit.name]
    least = [place.min_nodes for place in places]
    found = [1, 2, 4, limit.when.min_nodes, limit.when.max_nodes, *least]
    return list(dict.fromkeys(nodes for nodes in found if nodes))


def _pairs(
    limit: Limit, profile: Profile, frame: _Frame
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Jobs that differ by the least that a job can."""
    job, kind, gpus, nodes = frame
    value = limit.value
    total = gpus * nodes
    if limit.bound in ("max_time", "min_time", "max_node_time"):
        seconds = parse_time(value)
        assert seconds is not None
        edge = seconds // nodes if limit.bound == "max_node_time" else seconds
        outside = edge + (-60 if limit.bound == "min_time" else 60)
        yield {**job, "time": format_time(edge)}, {**job, "time": format_time(outside)}
    elif limit.bound in ("max_nodes", "count"):
        yield {**job, "nodes": value}, {**job, "nodes": value + 1}
    elif limit.bound == "min_nodes" and value > 1:
        yield {**job, "nodes": value}, {**job, "nodes": value - 1}
    elif limit.bound in ("max_gpus", "min_gpus"):
        step = 1 if limit.bound == "max_gpus" else -1
        if value == 0 and not gpus:
            name = "1" if kind is None else f"{kind.name}:1"
            yield job, {**job, "gpus_per_node": name}
        elif nodes == 1 and gpus == value:
            yield job, {**job, "gpus_per_node": _counted(job, gpus + step)}
        if gpus and value and value % gpus == 0 and value // gpus + step > 0:
            edge = value // gpus
            yield {**job, "nodes": edge}, {**job, "nodes": edge + step}
    elif limit.bound == "gpu_counts" and total and gpus in value:
        for other in sorted(range(1, max(_gpus(kind, profile)) + 1), key=lambda n: abs(n - gpus)):
            if other not in value:
                yield job, {**job, "gpus_per_node": _counted(job, other)}
    elif limit.bound == "gpus_per_node" and gpus == value:
        yield job, {**job, "gpus_per_node": _counted(job, gpus + 1)}
    elif limit.bound in ("cpus", "cpus_per_gpu", "max_cpus"):
        most = value * gpus if limit.bound == "cpus_per_gpu" else value
        there = kind.cpus if kind is not None and kind.cpus else most
        if limit.bound == "max_cpus" and most > there:
            whole = {**job, "cpus_per_task": there}
            yield {**whole, "nodes": most // there}, {**whole, "nodes": most // there + 1}
        elif most and nodes == 1:
            yield {**job, "cpus_per_task": most}, {**job, "cpus_per_task": most + 1}
    elif limit.bound in ("memory", "max_mem"):
        most = parse_memory(value)
        yield {**job, "mem": f"{most}M"}, {**job, "mem": f"{most + 1}M"}
    elif limit.bound == "max_array_size":
        yield {**job, "array": f"0-{value - 1}"}, {**job, "array": f"0-{value}"}


def _counted(job: dict[str, Any], gpus: int) -> str | None:
    kind, colon, _ = str(job["gpus_per_node"]).rpartition(":")
    return f"{kind}{colon}{gpus}" if gpus else None


def _is_told(limit: Limit, profile: Profile, job: dict[str, Any]) -> bool:
    """Whether a job is refused for this limit: its number is named."""
    value = limit.value
    if limit.bound in ("max_time", "min_time", "max_node_time"):
        value = format_time(parse_time(value) or 0)
    values = value if isinstance(value, tuple) else (value,)
    if limit.bound == "max_gpus" and value == 0:
        values = ("none",)
    elif limit.bound == "max_array_size":
        values = (value - 1,)
    # Behind what the job asks for.
    told = [what.rpartition(", and ")[2] for what in refusals(profile, job)]
    return any(
        all(re.search(rf"(?<![\w:]){one}(?![\w:])", words) for one in values) for words in told
    )
