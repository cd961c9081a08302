"""A job against the bounds of its partition, its QOS and the whole cluster.

A QOS comes before the partition: every bound that it gives counts in place of the
partition's, unless it says that it does not replace them. Of several bounds of a kind the
tightest is told, with the nearest job that would fit and the other partition or QOS that takes
this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from slurmgen.cluster.citation import cite
from slurmgen.cluster.conditions import describe, holds
from slurmgen.cluster.problems import refusal, refuse
from slurmgen.cluster.trial_partitions import is_for_trials
from slurmgen.slurm.grammars.time import format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slurmgen.cluster.conditions import Circumstances
    from slurmgen.cluster.profile import Bounds, Partition, Profile, Qos
    from slurmgen.cluster.profile.limits import Selectable
    from slurmgen.errors import Refusal
    from slurmgen.jobfile.job import JobSpec

_Place = TypeVar("_Place", bound="Selectable")

_FIELDS = (
    "min_time", "max_time", "min_nodes", "max_nodes", "min_gpus", "max_gpus", "max_cpus",
    "max_mem", "max_node_time", "gpu_counts",
)  # fmt: skip


class _Bound(NamedTuple):
    """One bound: its value, whose it is, and the site's reason with its source."""

    value: Any
    of: str
    why: str
    source: tuple[str, ...]


def check(profile: Profile, job: Circumstances, problems: list[Refusal]) -> None:
    """Add a Refusal for every bound that the job breaks."""
    qos = _current(profile.qos, (job.qos,) if job.qos else (), job)
    chosen: list[Partition | None] = [
        partition for partition in profile.partitions if partition.name in job.partitions
    ]
    if not chosen:
        chosen = [_current(profile.partitions, job.partitions, job)]
    said: set[str] = set()
    for partition in chosen:
        for bound, found in _excesses(profile, partition, qos, job):
            if found.what in said:
                continue
            said.add(found.what)
            why = cite(profile, bound.why or found.why, bound.source)
            other = _elsewhere(profile, job)
            fix = f"{found.fix}, or {other}" if other else found.fix
            refuse(problems, found.key, found.what, why, fix)


def _current(places: Sequence[_Place], names: tuple[str, ...], job: Circumstances) -> _Place | None:
    """Where the job goes: the place it names, or the site's own choice where it names none."""
    for place in places:
        if place.name in names:
            return place
        if not names and place.default and _takes(place, job):
            return place
    return None


def _elsewhere(profile: Profile, job: Circumstances) -> str:
    """A partition or a QOS that takes the job as it is; none that needs special access.

    What is for trials last.
    """
    present = _current(profile.qos, (job.qos,) if job.qos else (), job)
    for partition in sorted(profile.partitions, key=is_for_trials):
        if partition.name in job.partitions or not _is_open(partition, job):
            continue
        moved = job._replace(partitions=(partition.name,))
        if partition.unnamed is None and not any(_excesses(profile, partition, present, moved)):
            return f"partition: {partition.name}"
    current = _current(profile.partitions, job.partitions, job)
    for qos in sorted(profile.qos, key=is_for_trials):
        if qos.name == job.qos or not _is_open(qos, job):
            continue
        if not any(_excesses(profile, current, qos, job._replace(qos=qos.name))):
            return f"qos: {qos.name}"
    return ""


def _is_open(place: Selectable, job: Circumstances) -> bool:
    return not (place.access or place.preemptible) and _takes(place, job)


def _takes(place: Selectable, job: Circumstances) -> bool:
    return not place.node_types or job.node_type is None or job.node_type in place.node_types


def _excesses(
    profile: Profile,
    partition: Partition | None,
    qos: Qos | None,
    job: Circumstances,
) -> Iterator[tuple[_Bound, Refusal]]:
    for field, bound in _tightest(profile, partition, qos, job).items():
        found = _CHECKS[field](job, bound)
        if found is not None:
            yield bound, found


def _tightest(
    profile: Profile, partition: Partition | None, qos: Qos | None, job: Circumstances
) -> dict[str, _Bound]:
    """By field, of all bounds that count for the job."""
    found: dict[str, _Bound] = {}
    replaced: set[str] = set()
    if qos is not None:
        of_qos = list(_bounds_of(qos, f"QOS {qos.name}", job))
        replaced = {field for field, _ in of_qos} if qos.replaces else set()
        _merge(found, of_qos)
    if partition is not None:
        rest = _bounds_of(partition, f"partition {partition.name}", job)
        _merge(found, [(field, bound) for field, bound in rest if field not in replaced])
    for limit in profile.limits:
        if holds(limit.when, job):
            what = describe(limit.when)
            of = f"{profile.name} for {what}" if what else profile.name
            _merge(found, list(_given(limit, of, limit.why, limit.source)))
    return found


def _bounds_of(place: Selectable, of: str, job: Circumstances) -> Iterator[tuple[str, _Bound]]:
    yield from _given(place, of, place.why, place.source)
    for limit in place.limits:
        if holds(limit.when, job):
            what = describe(limit.when)
            why, source = limit.why or place.why, limit.source or place.source
            yield from _given(limit, f"{of} for {what}" if what else of, why, source)


def _given(
    bounds: Bounds, of: str, why: str, source: tuple[str, ...]
) -> Iterator[tuple[str, _Bound]]:
    for field in _FIELDS:
        value = getattr(bounds, field)
        if value not in (None, ()):
            yield field, _Bound(value, of, why, source)


def _merge(found: dict[str, _Bound], more: list[tuple[str, _Bound]]) -> None:
    for field, bound in more:
        present = found.get(field)
        if present is None or _is_tighter(field, bound.value, present.value):
            found[field] = bound


def _is_tighter(field: str, value: Any, than: Any) -> bool:
    if field == "gpu_counts":
        return False
    one, other = _number(field, value), _number(field, than)
    return one > other if field.startswith("min") else one < other


def _number(field: str, value: Any) -> float:
    if field.endswith("time"):
        seconds = parse_time(value)
        return float("inf") if seconds is None else seconds
    if field == "max_mem":
        from slurmgen.slurm.grammars.memory import parse_memory

        return parse_memory(value)
    return float(value)


# --- one check for each bound ------------------------------------------------------------


def _max_time(job: Circumstances, bound: _Bound) -> Refusal | None:
    limit = parse_time(bound.value)
    if limit is None or not (job.endless or (job.time is not None and job.time > limit)):
        return None
    return refusal(
        "time",
        f"time {job.spec.time} is over the {format_time(limit)} of {bound.of}",
        "the job would be refused, or wait for ever with PartitionTimeLimit",
        f"write time: {format_time(limit)}",
    )


def _min_time(job: Circumstances, bound: _Bound) -> Refusal | None:
    limit = parse_time(bound.value)
    if limit is None or job.time is None or job.time >= limit:
        return None
    return refusal(
        "time",
        f"time {job.spec.time} is under the {format_time(limit)} of {bound.of}",
        "the job would be refused",
        f"write time: {format_time(limit)} or more",
    )


def _max_nodes(job: Circumstances, bound: _Bound) -> Refusal | None:
    if job.nodes <= bound.value:
        return None
    return refusal(
        "nodes",
        f"{job.nodes} nodes, and {bound.of} allows {bound.value}",
        "the job would be refused, or wait for ever with PartitionNodeLimit",
        f"write nodes: {bound.value}",
    )


def _min_nodes(job: Circumstances, bound: _Bound) -> Refusal | None:
    if job.nodes >= bound.value:
        return None
    return refusal(
        "nodes",
        f"{job.nodes} node(s), and {bound.of} starts at {bound.value}",
        "the job would be refused",
        f"write nodes: {bound.value}",
    )


def _max_gpus(job: Circumstances, bound: _Bound) -> Refusal | None:
    if job.gpus <= bound.value:
        return None
    if bound.value == 0:
        what = f"{job.gpus} GPUs in the job, and {bound.of} has none"
        return refusal("gpus_per_node", what, "the job would be refused", "remove gpus_per_node")
    nodes = bound.value // job.gpus_per_node
    key, fix = "nodes", f"write nodes: {nodes}"
    if not nodes or job.nodes == 1:
        each = bound.value // job.nodes
        key, fix = "gpus_per_node", f"write gpus_per_node: {each or bound.value}"
        if not each:
            fix = f"write nodes: 1 and {fix.removeprefix('write ')}"
    return refusal(
        key,
        f"{job.gpus} GPUs in the job, and {bound.of} allows {bound.value}",
        "the job would be refused, or wait for ever",
        fix,
    )


def _min_gpus(job: Circumstances, bound: _Bound) -> Refusal | None:
    if job.gpus >= bound.value:
        return None
    each = -(-bound.value // job.nodes)
    return refusal(
        "gpus_per_node",
        f"{job.gpus} GPU(s) in the job, and {bound.of} starts at {bound.value}",
        "the job would be refused",
        f"write gpus_per_node: {each}",
    )


def _max_cpus(job: Circumstances, bound: _Bound) -> Refusal | None:
    if job.cpus is None or job.cpus <= bound.value:
        return None
    each = -(-job.cpus // job.nodes)
    nodes = bound.value // each
    return refusal(
        "nodes" if nodes else _cpu_key(job.spec),
        f"{job.cpus} CPUs in the job, and {bound.of} allows {bound.value}",
        "the job would be refused, or wait for ever",
        f"write nodes: {nodes}" if nodes else f"ask for at most {bound.value} CPUs",
    )


def _cpu_key(spec: JobSpec) -> str:
    return "cpus_per_gpu" if spec.cpus_per_gpu is not None else "cpus_per_task"


def _max_mem(job: Circumstances, bound: _Bound) -> Refusal | None:
    from slurmgen.slurm.grammars.memory import parse_memory

    most = parse_memory(bound.value)
    for key, times in (("mem", 1), ("mem_per_gpu", job.gpus_per_node)):
        given = getattr(job.spec, key)
        if given is not None and given.mib * times > most:
            return refusal(
                key,
                f"{key} {given}, and {bound.of} allows {bound.value} of a node",
                "the job would be refused, or wait for ever",
                f"write {key}: {bound.value if times == 1 else f'{most // times}M'}",
            )
    return None


def _max_node_time(job: Circumstances, bound: _Bound) -> Refusal | None:
    most = parse_time(bound.value)
    if most is None or job.time is None or job.nodes * job.time <= most:
        return None
    # Slurm counts whole minutes.
    each = most // job.nodes // 60 * 60
    nodes = most // job.time
    fixes = [f"write time: {format_time(each)}"] if each else []
    fixes += [f"write nodes: {nodes}"] if nodes else []
    return refusal(
        "time",
        f"{job.nodes} node(s) for {job.spec.time} are {format_time(job.nodes * job.time)} of one, "
        f"and {bound.of} allows {format_time(most)}",
        "nodes times time is limited there",
        ", or ".join(fixes),
    )


def _gpu_counts(job: Circumstances, bound: _Bound) -> Refusal | None:
    if not job.gpus_per_node or job.gpus_per_node in bound.value:
        return None
    nearest = min(bound.value, key=lambda count: abs(count - job.gpus_per_node))
    return refusal(
        "gpus_per_node",
        f"{job.gpus_per_node} GPUs of a node, and {bound.of} allows "
        f"{' or '.join(map(str, bound.value))}",
        "the job would be refused",
        f"write gpus_per_node: {nearest}",
    )


_CHECKS = {
    "max_time": _max_time,
    "min_time": _min_time,
    "max_nodes": _max_nodes,
    "min_nodes": _min_nodes,
    "max_gpus": _max_gpus,
    "min_gpus": _min_gpus,
    "max_cpus": _max_cpus,
    "max_mem": _max_mem,
    "max_node_time": _max_node_time,
    "gpu_counts": _gpu_counts,
}
