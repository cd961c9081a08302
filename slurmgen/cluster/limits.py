"""What a profile knows against what a job asks for, before any queue does."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.cluster import inventory, versions
from slurmgen.cluster.problems import UNAVAILABLE, refuse
from slurmgen.launchers import Layout, Problem

if TYPE_CHECKING:
    from slurmgen.cluster.profile import NodeType, Partition, Profile
    from slurmgen.plan import Directive
    from slurmgen.spec.job import JobSpec


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


def choose_node_type(
    spec: JobSpec,
    profile: Profile,
    gpu_type: str | None,
    gpus: int,
    problems: list[Problem],
) -> NodeType | None:
    """The kind of node the job will get, as far as the profile can tell.

    By GPU type (or the kind's own name) first, then by what the job names of the node
    types' own `select` (partition, constraint, QOS), then the only kind that has GPUs at all.
    """
    if not profile.node_types:
        return None
    partition = next((p for p in profile.partitions if p.name == spec.partition), None)
    kinds = [
        kind
        for kind in profile.node_types
        if partition is None or not partition.node_types or kind.name in partition.node_types
    ]
    if gpus:
        kinds = [kind for kind in kinds if kind.gpu or kind.gpus_per_node]
    if gpu_type is not None:
        typed = [kind for kind in kinds if gpu_type in (kind.gpu, kind.name)]
        typed = typed or [kind for kind in kinds if kind.gpu is None]
        if not typed:
            known = ", ".join(sorted({kind.gpu for kind in kinds if kind.gpu}))
            where = f"partition {spec.partition}" if partition is not None else profile.name
            refuse(
                problems,
                "gpus_per_node",
                f'{where} has no GPU of type "{gpu_type}"',
                UNAVAILABLE,
                f"known types: {known} (upper and lower case differ)"
                if known
                else "remove gpus_per_node, or choose another partition",
            )
            return None
        kinds = typed
    values = spec.__dict__
    named = []
    for kind in kinds:
        select = kind.select.given()
        if select and all(values.get(key) == value for key, value in select.items()):
            named.append(kind)
    if len(named or kinds) == 1:
        return (named or kinds)[0]
    return None


def check(
    spec: JobSpec,
    profile: Profile,
    ask: Ask,
    directives: list[Directive],
    problems: list[Problem],
) -> None:
    """Add a Problem for everything the profile says cannot run."""
    if profile.status == "closed":
        reason = profile.status_reason or "it no longer runs jobs"
        refuse(problems, "", f"{profile.name} is closed", reason, "choose another cluster")
    _check_rules(spec, profile, directives, problems)
    if profile.slurm is not None:
        versions.check(spec, profile, problems)
    if ask.gpus:
        _check_gpus(profile, ask, problems)
    if ask.node_type is not None:
        _check_node(spec, ask.node_type, ask, problems)
        _check_node_options(spec, ask.node_type, problems)
        if ask.gpus:
            _check_defaults(spec, profile, ask.node_type, problems)
    if profile.partitions:
        written = next((d.value for d in directives if d.option == "partition"), None)
        _check_partition(spec, profile, written, problems)
    inventory.check(spec, profile, problems)
    _check_array(spec, profile, problems)


def _check_rules(
    spec: JobSpec, profile: Profile, directives: list[Directive], problems: list[Problem]
) -> None:
    for key, reason in profile.required.items():
        option = key.replace("_", "-")
        if getattr(spec, key, None) is None and all(d.option != option for d in directives):
            refuse(problems, key, f"{profile.name} needs {key}", reason, f"add {key}:")
    for directive in directives if profile.forbidden else ():
        refused = profile.forbidden.get(directive.option)
        if refused is not None:
            refuse(
                problems,
                directive.key,
                f"{profile.name} refuses --{directive.option}",
                refused,
                f"remove {'.'.join(map(str, directive.key))}",
            )
    if profile.memory == "omit":
        for key in ("mem", "mem_per_cpu", "mem_per_gpu"):
            if getattr(spec, key) is not None:
                refuse(
                    problems,
                    key,
                    f"{profile.name} takes no memory option",
                    profile.forbidden.get("mem", "a job gets the memory of its nodes there"),
                    f"remove {key}",
                )


def _check_gpus(profile: Profile, ask: Ask, problems: list[Problem]) -> None:
    gpus, counts, why = ask.gpus, profile.gpus.counts, "the job would be refused"
    if profile.gpus.form == "none" and not counts:
        # Nothing asks for GPUs there: a job has all those of its nodes.
        kinds = (ask.node_type,) if ask.node_type is not None else profile.node_types
        counts = tuple(sorted({kind.gpus_per_node for kind in kinds if kind.gpus_per_node}))
        why = "the partition gives them, and a job has all GPUs of its nodes"
    if counts and gpus not in counts:
        allowed = " or ".join(str(count) for count in counts)
        refuse(
            problems,
            "gpus_per_node",
            f"{profile.name} gives {allowed} GPUs of a node, not {gpus}",
            why,
            f"write gpus_per_node: {min(counts, key=lambda count: abs(count - gpus))}",
        )
    if profile.gpus.typed == "always" and ask.gpu_type is None:
        known = ", ".join(sorted({kind.gpu for kind in profile.node_types if kind.gpu}))
        refuse(
            problems,
            "gpus_per_node",
            f"{profile.name} needs the type of the GPUs",
            "which one the job would get can't be told, and a job without a type is refused",
            f"write gpus_per_node: TYPE:{gpus}" + (f" with one of {known}" if known else ""),
        )


def _check_defaults(
    spec: JobSpec, profile: Profile, node_type: NodeType, problems: list[Problem]
) -> None:
    """A default that keeps the job from the nodes it asks for."""
    for key, chosen in node_type.select.given().items():
        written = getattr(spec, key)
        if written not in (None, chosen) and written == profile.defaults.get(key):
            refuse(
                problems,
                key,
                f"{key} {written} is the default of {profile.name}, and {node_type.name} nodes "
                f"are chosen by {key} {chosen}",
                "the job would not get the nodes it asks for",
                f"write {key}: {chosen}",
            )


def _check_node(spec: JobSpec, node_type: NodeType, ask: Ask, problems: list[Problem]) -> None:
    # No task has less than one.
    layout, gpus, cpus_per_task = ask.layout, ask.gpus, ask.cpus_per_task or 1
    already = any(problem.key == "gpus_per_node" for problem in problems)
    if node_type.gpus_per_node and gpus > node_type.gpus_per_node and not already:
        refuse(
            problems,
            "gpus_per_node",
            f"{gpus} GPUs per node, and {node_type.name} nodes have {node_type.gpus_per_node}",
            UNAVAILABLE,
            f"write gpus_per_node: {node_type.gpus_per_node} and more nodes",
        )
    cpus = layout.ntasks_per_node * cpus_per_task
    if node_type.cpus is not None and cpus > node_type.cpus:
        key = next(
            (k for k in ("cpus_per_task", "cpus_per_gpu") if getattr(spec, k)), "ntasks_per_node"
        )
        refuse(
            problems,
            key,
            f"{cpus} CPUs per node ({layout.ntasks_per_node} tasks x {cpus_per_task}), and "
            f"{node_type.name} nodes have {node_type.cpus} for jobs",
            UNAVAILABLE,
            f"ask for at most {node_type.cpus // layout.ntasks_per_node} CPUs per task",
        )
    if node_type.count is not None and spec.nodes > node_type.count:
        refuse(
            problems,
            "nodes",
            f"{spec.nodes} nodes, and there are {node_type.count} of {node_type.name}",
            UNAVAILABLE,
            f"write nodes: {node_type.count}",
        )
    if node_type.memory is not None:
        from slurmgen.spec.memory import parse_memory

        shares = (
            ("mem", 1, "per node"),
            ("mem_per_cpu", cpus, f"for each of {cpus} CPUs"),
            ("mem_per_gpu", gpus, f"for each of {gpus} GPUs"),
        )
        there = parse_memory(node_type.memory)
        for key, times, what in shares:
            value = getattr(spec, key)
            if value is not None and parse_memory(value) * times > there:
                refuse(
                    problems,
                    key,
                    f"{value} {what}, and {node_type.name} nodes have {node_type.memory}",
                    UNAVAILABLE,
                    f"write {key}: {node_type.memory if times == 1 else f'{there // times}M'}",
                )


# Options under `sbatch:` that ask for so much of something of each node.
_NODE_OPTIONS = (
    ("threads-per-core", "threads_per_core", "threads per core"),
    ("mincpus", "cpus", "CPUs for jobs"),
    ("tmp", "tmp", "of local disk"),
)


def _check_node_options(spec: JobSpec, node_type: NodeType, problems: list[Problem]) -> None:
    from slurmgen.spec.memory import parse_memory

    for option, fact, what in _NODE_OPTIONS:
        asked, there = spec.sbatch.get(option), getattr(node_type, fact)
        if asked is not None and there is not None:
            if parse_memory(asked) > parse_memory(str(there)):
                refuse(
                    problems,
                    ("sbatch", option),
                    f"{option}: {asked}, and {node_type.name} nodes have {there} {what}",
                    UNAVAILABLE,
                    f"write {option}: {there}" if there != "0" else f"remove {option}",
                )


def _check_array(spec: JobSpec, profile: Profile, problems: list[Problem]) -> None:
    if spec.array is None or profile.max_array_size is None:
        return
    from slurmgen.spec.array import parse_array

    highest = parse_array(spec.array).max_index
    if highest >= profile.max_array_size:
        refuse(
            problems,
            "array",
            f"index {highest}, and {profile.name} allows at most {profile.max_array_size - 1}",
            "Slurm would say: Invalid job array specification (its MaxArraySize)",
            "use smaller indices, several arrays, or several runs in each task",
        )


def _check_partition(
    spec: JobSpec, profile: Profile, written: str | None, problems: list[Problem]
) -> None:
    by_name: dict[str, Partition] = {p.name: p for p in profile.partitions}
    for name in written.split(",") if written else ():
        partition = by_name.get(name)
        if partition is None:
            refuse(
                problems,
                "partition",
                f'{profile.name} has no partition "{name}"',
                "Slurm would say: Invalid partition name specified",
                f"known: {', '.join(sorted(by_name))}",
            )
            continue
        if partition.unnamed is not None:
            refuse(
                problems,
                "partition",
                f"partition {name} must not be named on {profile.name}",
                partition.unnamed,
                "remove partition",
            )
        _check_partition_limits(spec, partition, problems)


def _check_partition_limits(spec: JobSpec, partition: Partition, problems: list[Problem]) -> None:
    from slurmgen.spec.time import format_time, limit_seconds, parse_time

    limit = parse_time(partition.max_time) if partition.max_time else None
    asked = limit_seconds(spec.time)
    endless = spec.time is not None and asked is None
    if limit is not None and (endless or (asked is not None and asked > limit)):
        refuse(
            problems,
            "time",
            f"time {spec.time} is over the {format_time(limit)} of partition {partition.name}",
            "the job would be refused, or wait for ever with PartitionTimeLimit",
            f"write time: {format_time(limit)}, or choose another partition",
        )
    if partition.max_nodes is not None and spec.nodes > partition.max_nodes:
        refuse(
            problems,
            "nodes",
            f"{spec.nodes} nodes, and partition {partition.name} allows {partition.max_nodes}",
            "the job would be refused, or wait for ever with PartitionNodeLimit",
            f"write nodes: {partition.max_nodes}, or choose another partition",
        )
    if partition.min_nodes is not None and spec.nodes < partition.min_nodes:
        refuse(
            problems,
            "nodes",
            f"{spec.nodes} node(s), and partition {partition.name} starts at {partition.min_nodes}",
            "the job would be refused",
            f"write nodes: {partition.min_nodes}, or choose another partition",
        )
