"""What a profile knows against what a job asks for, before any queue does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.cluster import inventory
from slurmgen.cluster.citation import cite
from slurmgen.cluster.problems import UNAVAILABLE, refuse
from slurmgen.errors import Refusal
from slurmgen.jobfile.keys import MEMORY, OPTIONS

if TYPE_CHECKING:
    from slurmgen.cluster.ask import Ask
    from slurmgen.cluster.conditions import Circumstances
    from slurmgen.cluster.profile import NodeType, Partition, Profile
    from slurmgen.jobfile.job import JobSpec
    from slurmgen.jobfile.keys import Directive


def choose_node_type(
    spec: JobSpec,
    profile: Profile,
    gpu_type: str | None,
    gpus: int,
    problems: list[Refusal],
) -> NodeType | None:
    """The kind of node the job will get, as far as the profile can tell.

    By GPU type (or the kind's own name) first, then by what the job names of the node
    types' own `select` (partition, constraint, QOS), then the only kind that has GPUs at all,
    or the one that the site gives where nothing is said.
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
        if gpu_type is None and not kinds and partition is not None and partition.node_types:
            refuse(
                problems,
                "gpus_per_node",
                f"partition {partition.name} has no nodes with GPUs",
                UNAVAILABLE,
                "remove gpus_per_node, or choose another partition",
            )
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
    left = named or kinds
    if len(left) > 1 and not named:
        left = [kind for kind in left if kind.default]
    return left[0] if len(left) == 1 else None


def check(
    spec: JobSpec,
    profile: Profile,
    ask: Ask,
    directives: list[Directive],
    problems: list[Refusal],
) -> None:
    """Add a Refusal for everything the profile says cannot run."""
    if profile.status == "closed":
        # Whatever else is wrong with the job matters no more.
        problems.clear()
        refuse_closed(profile, problems)
        return
    if _has_rules(profile):
        _check_as_a_whole(spec, profile, ask, directives, problems)
    if profile.memory == "omit":
        _check_memory_option(spec, profile, problems)
    if profile.slurm is not None:
        from slurmgen.cluster import versions

        versions.check(spec, profile, problems)
    if ask.gpus:
        _check_gpus(profile, ask, problems)
        _check_account(spec, profile, ask, problems)
    if ask.node_type is not None:
        _check_node(spec, ask.node_type, ask, problems)
        _check_node_options(spec, ask.node_type, problems)
        if ask.gpus:
            _check_cpu_share(spec, profile, ask.node_type, ask, problems)
            _check_defaults(spec, profile, ask.node_type, problems)
    if profile.container is not None:
        _check_container(spec, profile, problems)
    inventory.check(spec, profile, problems)
    _check_array(spec, profile, problems)


def _has_rules(profile: Profile) -> bool:
    return bool(
        profile.required or profile.forbidden or profile.partitions or profile.qos or profile.limits
    )


def _check_as_a_whole(
    spec: JobSpec,
    profile: Profile,
    ask: Ask,
    directives: list[Directive],
    problems: list[Refusal],
) -> None:
    """Rules about the whole job: what it has, where it goes, how large and long it is."""
    from slurmgen.cluster import bounds, conditions

    job = conditions.of(spec, profile, ask)
    _check_rules(spec, profile, job, directives, problems)
    if profile.partitions:
        _check_partition(profile, job, problems)
    bounds.check(profile, job, problems)


def refuse_closed(profile: Profile, problems: list[Refusal]) -> None:
    """Add the Refusal that the cluster runs no jobs any more."""
    since = f" since {profile.ends}" if profile.ends else ""
    reason = cite(profile, profile.status_reason or "it no longer runs jobs", profile.status_source)
    refuse(problems, "", f"{profile.name} is closed{since}", reason, "choose another cluster")


def _check_rules(
    spec: JobSpec,
    profile: Profile,
    job: Circumstances,
    directives: list[Directive],
    problems: list[Refusal],
) -> None:
    from slurmgen.cluster.conditions import describe, holds

    given = {directive.option for directive in directives}
    for key, reason in profile.required.items():
        if not holds(reason.when, job):
            continue
        if getattr(spec, key, None) is None and key.replace("_", "-") not in given:
            why = cite(profile, reason.why, reason.source)
            what = describe(reason.when)
            needs = f"{profile.name} needs {key}" + (f" for {what}" if what else "")
            refuse(problems, key, needs, why, f"add {key}:")
    for directive in directives:
        refused = profile.forbidden.get(directive.option)
        if refused is not None and holds(refused.when, job):
            refuse(
                problems,
                directive.key,
                f"{profile.name} refuses --{directive.option}",
                cite(profile, refused.why, refused.source),
                f"remove {'.'.join(map(str, directive.key))}",
            )


def _check_memory_option(spec: JobSpec, profile: Profile, problems: list[Refusal]) -> None:
    for key in MEMORY:
        if getattr(spec, key) is None:
            continue
        reason = profile.forbidden.get(OPTIONS[key]) or profile.forbidden.get("mem")
        refuse(
            problems,
            key,
            f"{profile.name} takes no memory option",
            cite(profile, reason.why, reason.source)
            if reason is not None
            else "a job gets the memory of its nodes, or of its GPUs, there",
            f"remove {key}",
        )


def _check_account(spec: JobSpec, profile: Profile, ask: Ask, problems: list[Refusal]) -> None:
    """An account that is not one for the GPUs that are asked for."""
    known = profile.account
    pattern = (ask.node_type.account if ask.node_type else None) or (known and known.pattern)
    if spec.account is None or not pattern:
        return
    from fnmatch import fnmatchcase

    if fnmatchcase(spec.account, pattern):
        return
    own = ask.node_type is not None and ask.node_type.account is not None
    example = "" if own or known is None else known.example
    refuse(
        problems,
        "account",
        f"account {spec.account} is none for these GPUs: {profile.name} has {pattern}",
        cite(
            profile,
            (known.why if known else "")
            or "the job would be refused, or charged to another budget",
            known.source if known else (),
        ),
        f"write an account like {example or pattern}",
    )


def _check_cpu_share(
    spec: JobSpec, profile: Profile, node_type: NodeType, ask: Ask, problems: list[Refusal]
) -> None:
    share, rule = node_type.cpus_per_gpu, node_type.cpus_rule
    if share is None or rule == "recommended" or ask.cpus_per_task is None:
        return
    cpus, most = ask.layout.ntasks_per_node * ask.cpus_per_task, share * ask.gpus
    if cpus == most or (rule == "maximum" and cpus < most):
        return
    key = next((k for k in ("cpus_per_task", "cpus_per_gpu") if getattr(spec, k)), "cpus_per_task")
    right = share if key == "cpus_per_gpu" else most // ask.layout.ntasks_per_node
    allowed = f"exactly {share}" if rule == "exact" else f"at most {share}"
    refuse(
        problems,
        key,
        f"{cpus} CPUs for {ask.gpus} GPU(s) of each node, and {profile.name} gives {allowed} a GPU",
        cite(profile, "the job would be refused", node_type.source),
        f"remove {key}, or write {key}: {right}",
    )


def _check_container(spec: JobSpec, profile: Profile, problems: list[Refusal]) -> None:
    container, there = spec.setup.container, profile.container
    if container is None or container.runtime is not None or there is None:
        return
    if there.runtime in ("shifter", "container-engine"):
        refuse(
            problems,
            ("setup", "container"),
            f"{profile.name} runs containers by {there.runtime}",
            cite(profile, there.why or "no script is rendered for it", there.source),
            "use venv, conda or uv, or name a runtime that you have there "
            "(container: {image: …, runtime: apptainer})",
        )


def _check_gpus(profile: Profile, ask: Ask, problems: list[Refusal]) -> None:
    own = ask.node_type.gpu_counts if ask.node_type is not None else ()
    gpus, counts = ask.gpus, own or profile.gpus.counts
    why = profile.gpus.why or "the job would be refused"
    if profile.gpus.form == "none" and not counts:
        # Nothing asks for GPUs there: a job has all those of its nodes.
        kinds = (ask.node_type,) if ask.node_type is not None else profile.node_types
        counts = tuple(sorted({kind.gpus_per_node for kind in kinds if kind.gpus_per_node}))
        why = profile.gpus.why or "the partition gives them, and a job has all GPUs of its nodes"
    if counts and gpus not in counts:
        allowed = " or ".join(str(count) for count in counts)
        refuse(
            problems,
            "gpus_per_node",
            f"{profile.name} gives {allowed} GPUs of a node, not {gpus}",
            cite(profile, why, profile.gpus.source),
            f"write gpus_per_node: {min(counts, key=lambda count: abs(count - gpus))}",
        )
    if profile.gpus.typed == "always" and ask.gpu_type is None:
        known = ", ".join(sorted({kind.gpu for kind in profile.node_types if kind.gpu}))
        refuse(
            problems,
            "gpus_per_node",
            f"{profile.name} needs the type of the GPUs",
            cite(
                profile,
                "which one the job would get can't be told, and a job without a type is refused",
                profile.gpus.source,
            ),
            f"write gpus_per_node: TYPE:{gpus}" + (f" with one of {known}" if known else ""),
        )


def _check_defaults(
    spec: JobSpec, profile: Profile, node_type: NodeType, problems: list[Refusal]
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


def _check_node(spec: JobSpec, node_type: NodeType, ask: Ask, problems: list[Refusal]) -> None:
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
    key = next((k for k in ("cpus_per_task", "cpus_per_gpu") if getattr(spec, k)), None)
    # Else it is the site's share of a GPU, for more of them than there are.
    matters = key is not None or all(problem.key != "gpus_per_node" for problem in problems)
    if node_type.cpus is not None and cpus > node_type.cpus and matters:
        refuse(
            problems,
            key or "ntasks_per_node",
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
        from slurmgen.slurm.grammars.memory import parse_memory

        shares = (
            ("mem", 1, "per node"),
            ("mem_per_cpu", cpus, f"for each of {cpus} CPUs"),
            ("mem_per_gpu", gpus, f"for each of {gpus} GPUs"),
        )
        there = parse_memory(node_type.memory)
        for key, times, what in shares:
            value = getattr(spec, key)
            if value is not None and value.mib * times > there:
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


def _check_node_options(spec: JobSpec, node_type: NodeType, problems: list[Refusal]) -> None:
    from slurmgen.slurm.grammars.memory import parse_memory

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


def _check_array(spec: JobSpec, profile: Profile, problems: list[Refusal]) -> None:
    if spec.array is None or profile.max_array_size is None:
        return
    highest = spec.array.max_index
    if highest >= profile.max_array_size:
        refuse(
            problems,
            "array",
            f"index {highest}, and {profile.name} allows at most {profile.max_array_size - 1}",
            "Slurm would say: Invalid job array specification (its MaxArraySize)",
            "use smaller indices, several arrays, or several runs in each task",
        )


def _check_partition(profile: Profile, job: Circumstances, problems: list[Refusal]) -> None:
    by_name: dict[str, Partition] = {p.name: p for p in profile.partitions}
    for name in job.partitions:
        partition = by_name.get(name)
        if partition is None:
            if not profile.other_partitions:
                refuse(
                    problems,
                    "partition",
                    f'{profile.name} has no partition "{name}"',
                    "Slurm would say: Invalid partition name specified",
                    f"known: {', '.join(sorted(by_name))}",
                )
        elif partition.unnamed is not None:
            refuse(
                problems,
                "partition",
                f"partition {name} must not be named on {profile.name}",
                cite(profile, partition.unnamed, partition.source),
                "remove partition",
            )
