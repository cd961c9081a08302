"""A planned job against what the running cluster says of itself.

Its limits are those of a profile, made from its facts, and checked as any profile's are.
What changes by the hour, or by the user, has its checks here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.cluster import bounds, conditions, limits, waste
from slurmgen.cluster.live.profile import TRES_BOUNDS
from slurmgen.cluster.problems import refuse
from slurmgen.cluster.profile import Limit, Profile
from slurmgen.jobfile.replaced import replaced
from slurmgen.slurm.answers.facts import is_account
from slurmgen.slurm.grammars.time import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slurmgen.cluster.ask import Ask
    from slurmgen.cluster.profile import NodeType
    from slurmgen.errors import Refusal
    from slurmgen.jobfile.job import JobSpec
    from slurmgen.jobfile.keys import Directive
    from slurmgen.slurm.answers.facts import Facts, Partition

_CHOSEN = ("account", "partition", "qos", "reservation", "constraint")


class Verdict(NamedTuple):
    """refusals: the job can't run as it is. doubts: it would wait, or take what it won't use.

    untestable: why `sbatch --test-only` refuses a job that sbatch takes; empty where it is right.
    """

    refusals: list[Refusal]
    doubts: list[Refusal]
    untestable: str = ""


def judge(
    spec: JobSpec, ask: Ask, directives: Sequence[Directive], live: Profile, facts: Facts
) -> Verdict:
    """ask: what the directives ask for, GPUs by the type that is written, on nodes that are
    not chosen yet. live: the profile of `facts`, with the names of its nodes."""
    given = {d.option.replace("-", "_"): d.value for d in directives}
    # What the plan chose counts as if the job file said it.
    spec = replaced(spec, **{key: given.get(key) for key in _CHOSEN})
    verdict = Verdict([], [])
    partitions = _partitions(spec, facts, verdict.refusals)
    account = spec.account or facts.default_account
    if not facts.enforces_limits:
        live = live.model_copy(update={"qos": ()})
    # Its limits count for a job that names none, whatever other accounts have for a default.
    qos = spec.qos or facts.default_qos(account)
    ask = _check_limits(replaced(spec, qos=qos), ask, directives, live, verdict.refusals)
    _check_association(spec, ask, account, facts, verdict.refusals)
    _check_submitted(spec, qos, facts, verdict.refusals)
    for partition in partitions:
        _check_state(partition, verdict)
        _check_cpus(partition, ask, spec, verdict.refusals)
        _check_access(partition, spec, facts, verdict.refusals)
    _check_account(spec, facts, verdict.refusals)
    _check_nodes_up(spec, ask, partitions, live, facts, verdict)
    whole = bool(partitions) and all(p.exclusive for p in partitions)
    waste.check(spec, ask, whole_nodes=whole, problems=verdict.doubts)
    return verdict._replace(untestable=_untestable(spec, qos, partitions, facts))


def _untestable(
    spec: JobSpec, name: str | None, partitions: Sequence[Partition], facts: Facts
) -> str:
    """A QOS with the flag PartitionMaxNodes counts in place of the partition, and Slurm's own test
    forgets it (seen in 22.05)."""
    qos = next((qos for qos in facts.qos or () if qos.name == name), None)
    if qos is None or not facts.enforces_limits or "PartitionMaxNodes" not in qos.flags:
        return ""
    for partition in partitions:
        if partition.max_nodes is not None and spec.nodes > partition.max_nodes:
            return (
                f"QOS {qos.name} lets a job have more nodes than partition "
                f"{partition.name} ({partition.max_nodes}), and that test forgets it"
            )
    return ""


def _partitions(spec: JobSpec, facts: Facts, problems: list[Refusal]) -> list[Partition]:
    """Those that the job names, or the default one."""
    if spec.partition is not None:
        names = spec.partition.split(",")
        return [p for p in facts.partitions if p.name in names]
    default = [p for p in facts.partitions if p.default]
    if not default:
        known = ", ".join(p.name for p in facts.partitions)
        refuse(
            problems,
            "partition",
            f"no partition is named, and {facts.name} has no default one",
            "Slurm would say: No partition specified or system default partition",
            f"write partition: auto, or one of {known}",
        )
    return default


def _check_limits(
    spec: JobSpec,
    ask: Ask,
    directives: Sequence[Directive],
    live: Profile,
    problems: list[Refusal],
) -> Ask:
    choice: list[Refusal] = []
    kind = limits.choose_node_type(spec, live, ask.gpu_type, ask.gpus, choice)
    ask = ask._replace(node_type=kind)
    if choice:
        problems += choice
        return ask
    candidates: list[NodeType | None] = [kind]
    if kind is None:
        candidates = [*_candidates(spec, live, ask)] or [None]
    tried = []
    for kind in candidates:
        candidate = kind
        if candidate is not None and len(candidates) > 1:
            # Nodes of several kinds may make up the number together.
            candidate = candidate.model_copy(update={"count": None})
        own = ask._replace(node_type=candidate)
        found: list[Refusal] = []
        limits.check(spec, live, own, list(directives), found)
        tried.append((len(found), found, own))
    # Of several kinds of nodes any may run it.
    _, found, ask = min(tried, key=lambda one: one[0])
    problems += found
    return ask


def _candidates(spec: JobSpec, live: Profile, ask: Ask) -> list[NodeType]:
    """Kinds of nodes that the job may get, those with the fewest GPUs first."""
    names = spec.partition.split(",") if spec.partition else None
    places = [p for p in live.partitions if (p.name in names if names else p.default)]
    held = {name for place in places for name in place.node_types}
    kinds = [
        kind
        for kind in live.node_types
        if (not held or kind.name in held)
        and bool(kind.gpus_per_node) >= bool(ask.gpus)
        and ask.gpu_type in (None, kind.gpu)
    ]
    return sorted(kinds, key=lambda kind: (kind.gpus_per_node, kind.cpus or 0))


def _check_state(partition: Partition, verdict: Verdict) -> None:
    if partition.state == "UP":
        return
    waits = partition.state == "DOWN"
    refuse(
        verdict.doubts if waits else verdict.refusals,
        "partition",
        f"partition {partition.name} is {partition.state}",
        "a job there waits until somebody sets it up again"
        if waits
        else "it takes no jobs until somebody sets it up again",
        "choose another partition, or wait",
    )


def _check_cpus(partition: Partition, ask: Ask, spec: JobSpec, problems: list[Refusal]) -> None:
    most = partition.max_cpus_per_node
    if most is None or ask.cpus_per_task is None:
        return
    cpus = ask.layout.ntasks_per_node * ask.cpus_per_task
    if cpus > most:
        refuse(
            problems,
            "cpus_per_gpu" if spec.cpus_per_gpu is not None else "cpus_per_task",
            f"{cpus} CPUs per node, and partition {partition.name} gives {most} (MaxCPUsPerNode)",
            "Slurm would say: Requested node configuration is not available",
            f"ask for at most {most // ask.layout.ntasks_per_node} CPUs per task",
        )


def _check_access(
    partition: Partition, spec: JobSpec, facts: Facts, problems: list[Refusal]
) -> None:
    account = spec.account or facts.default_account
    name = partition.name
    if account is not None:
        allowed, denied = partition.accounts, partition.denied_accounts
        if (allowed is not None and not _is_among(account, allowed)) or _is_among(account, denied):
            refuse(
                problems,
                "account" if spec.account else "partition",
                f"partition {name} is not for account {account}",
                "Slurm would say: Invalid account or account/partition combination specified",
                f"one of {', '.join(allowed)} may use it"
                if allowed
                else "choose another partition",
            )
    qos = spec.qos or facts.default_qos(account)
    if qos is not None:
        if (partition.qos is not None and qos not in partition.qos) or qos in partition.denied_qos:
            refuse(
                problems,
                "qos" if spec.qos else "partition",
                f"partition {name} is not for QOS {qos}",
                "Slurm would say: Invalid qos specification",
                f"write qos: {' or '.join(partition.qos)}"
                if partition.qos
                else "choose another partition",
            )


def _is_among(account: str, known: Iterable[str]) -> bool:
    return any(is_account(name, account) for name in known)


def _check_association(
    spec: JobSpec, ask: Ask, account: str | None, facts: Facts, problems: list[Refusal]
) -> None:
    """What a job of the user may be in this account, where Slurm keeps to it."""
    if not facts.enforces_limits:
        return
    for own in facts.associations or ():
        if not is_account(own.account, account) or own.partition not in (None, spec.partition):
            continue
        most = {f"max_{key}": own.most.get(name) for name, key in TRES_BOUNDS.items()}
        time = None if own.max_time is None else format_time(own.max_time)
        limit = Limit(max_time=time, **{key: value or None for key, value in most.items()})
        bounded = Profile(name=f"account {account}", limits=(limit,))
        bounds.check(bounded, conditions.of(spec, bounded, ask), problems)


def _check_submitted(
    spec: JobSpec, name: str | None, facts: Facts, problems: list[Refusal]
) -> None:
    """An array counts as many jobs as it has tasks."""
    qos = next((qos for qos in facts.qos or () if qos.name == name), None)
    if spec.array is None or qos is None or not facts.enforces_limits:
        return
    tasks = spec.array.tasks
    if qos.max_submitted is not None and tasks > qos.max_submitted:
        refuse(
            problems,
            "array",
            f"{tasks} tasks, and a user may have {qos.max_submitted} jobs in QOS {name} at once",
            "Slurm would say: Job violates accounting/QOS policy (its MaxSubmitJobsPerUser)",
            "use fewer tasks, or several runs in each",
        )


def _check_account(spec: JobSpec, facts: Facts, problems: list[Refusal]) -> None:
    """The user's own accounts and QOS, where Slurm keeps and enforces any."""
    if facts.associations is None or not facts.enforces_accounts:
        return
    own = sorted({a.account for a in facts.associations})
    account = spec.account or facts.default_account
    if account is None or not _is_among(account, own):
        what = f"account {spec.account} is none of yours" if spec.account else "no account"
        refuse(
            problems,
            "account",
            f"{what} on {facts.name}",
            "Slurm would say: Invalid account or account/partition combination specified",
            f"write account: {' or '.join(own)}" if own else "ask the site for an account",
        )
        return
    allowed = sorted(
        {q for a in facts.associations if is_account(a.account, account) for q in a.qos}
    )
    if spec.qos is not None and allowed and spec.qos not in allowed:
        refuse(
            problems,
            "qos",
            f"QOS {spec.qos} is none of those of account {account}",
            "Slurm would say: Invalid qos specification",
            f"write qos: {' or '.join(allowed)}",
        )


def _check_nodes_up(
    spec: JobSpec,
    ask: Ask,
    partitions: list[Partition],
    live: Profile,
    facts: Facts,
    verdict: Verdict,
) -> None:
    """Nodes that could run it: there, but away."""
    if verdict.refusals or not partitions:
        return
    held = {name for partition in partitions for name in partition.nodes}
    fit = [
        node
        for node in facts.nodes
        if node.name in held
        and sum(g.number for g in node.gpus if ask.gpu_type in (None, g.kind)) >= ask.gpus
        and node.cpus >= ask.layout.ntasks_per_node * (ask.cpus_per_task or 1)
    ]
    up = sum(node.is_up for node in fit)
    if up >= spec.nodes:
        return
    where = f"partition {', '.join(p.name for p in partitions)}"
    enough = len(fit) >= spec.nodes
    refuse(
        verdict.doubts if enough else verdict.refusals,
        "nodes",
        f"{spec.nodes} nodes, and {up} of the {len(fit)} in {where} that could run it are up"
        if enough
        else f"{spec.nodes} nodes, and {where} of {live.name} has {len(fit)} that could run it",
        "the job would wait until the others come back"
        if enough
        else "Slurm would say: Requested node configuration is not available",
        f"write nodes: {up if enough else len(fit)}"
        if (up if enough else len(fit))
        else "choose another partition (slurmgen cluster detect lists them), or ask for less",
    )
