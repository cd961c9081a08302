"""The facts in Slurm's texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import Refusal
from slurmgen.slurm.answers import records
from slurmgen.slurm.answers.texts import ASSOCIATION, QOS, USER
from slurmgen.slurm.grammars.nodes import expand_hostlist
from slurmgen.slurm.grammars.time import parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.slurm.answers.texts import Texts


class Gpus(NamedTuple):
    """GPUs of one type on a node; kind None: they have no type."""

    kind: str | None
    number: int


class Node(NamedTuple):
    """cpus: those that jobs may use. memory, tmp: MiB. state: its words, such as DRAIN."""

    name: str
    gpus: tuple[Gpus, ...]
    cpus: int
    memory: int
    tmp: int
    threads_per_core: int
    arch: str | None
    features: frozenset[str]
    state: frozenset[str]

    @property
    def is_up(self) -> bool:
        """Whether it takes jobs, now or once others have ended."""
        return _AWAY.isdisjoint(self.state)


class Partition(NamedTuple):
    """max_time, default_time: seconds, None: no limit. accounts, groups, qos: who is let in,
    None: everybody. max_mem: MiB on a node. cpus_per_gpu: what a GPU's job gets by default.
    """

    name: str
    state: str
    default: bool
    nodes: tuple[str, ...]
    min_nodes: int
    max_nodes: int | None
    max_time: int | None
    default_time: int | None
    max_cpus_per_node: int | None
    max_mem: int | None
    accounts: tuple[str, ...] | None
    denied_accounts: tuple[str, ...]
    groups: tuple[str, ...] | None
    qos: tuple[str, ...] | None
    denied_qos: tuple[str, ...]
    own_qos: str | None
    exclusive: bool
    root_only: bool
    hidden: bool
    preempt_mode: str
    tier: int
    cpus_per_gpu: int | None


class Qos(NamedTuple):
    """max_time: seconds. most, least: of a job, by TRES (`node`, `cpu`, `gres/gpu`). minutes: the
    most of each of them times the time limit.
    """

    name: str
    max_time: int | None
    most: dict[str, int]
    least: dict[str, int]
    minutes: dict[str, int]
    max_jobs: int | None
    max_submitted: int | None
    preempts: tuple[str, ...]
    flags: tuple[str, ...]


class Association(NamedTuple):
    """An account that the user may charge, with which QOS, and how much a job may be there.

    max_time: seconds. most: as in a QOS.
    """

    account: str
    partition: str | None
    qos: tuple[str, ...]
    default_qos: str | None
    max_time: int | None
    most: dict[str, int]


class Facts(NamedTuple):
    """settings: of slurm.conf. Lists are None where Slurm did not tell; `missing` says why."""

    version: str
    settings: dict[str, str]
    partitions: tuple[Partition, ...]
    nodes: tuple[Node, ...]
    licenses: tuple[str, ...] | None
    reservations: tuple[str, ...] | None
    associations: tuple[Association, ...] | None
    qos: tuple[Qos, ...] | None
    default_account: str | None
    missing: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """The cluster's, as Slurm calls it."""
        return self.settings.get("ClusterName", "cluster")

    @property
    def enforces_accounts(self) -> bool:
        """Whether a job needs an account that the user has an association with."""
        return "associations" in self.settings.get("AccountingStorageEnforce", "")

    @property
    def enforces_limits(self) -> bool:
        """Whether what accounts and QOS allow is kept to."""
        enforced = self.settings.get("AccountingStorageEnforce", "").split(",")
        return not {"limits", "safe", "all"}.isdisjoint(enforced)

    def default_qos(self, account: str | None) -> str | None:
        """The QOS of a job that names none: its account's default, else Slurm's own `normal`."""
        own = [a for a in self.associations or () if is_account(a.account, account)]
        named = next((a.default_qos for a in own if a.default_qos), None)
        return named or next(("normal" for a in own if "normal" in a.qos), None)


def is_account(known: str, named: str | None) -> bool:
    """Whether a job's account is one that Slurm knows, which keeps all of them in small letters."""
    return named is not None and named.lower() == known.lower()


# States in which a node takes no job until somebody does something (sinfo(1), NODE STATES).
_AWAY = frozenset(
    "DOWN DRAIN DRAINED DRAINING FAIL FAILING ERROR FUTURE NOT_RESPONDING UNKNOWN".split()
)


def read(texts: Texts) -> Facts:
    """Everything that the texts say."""
    settings = records.settings(texts.config)
    found = re.match(r"\d+\.\d+", settings.get("SLURM_VERSION", ""))
    users = [] if texts.user is None else list(records.rows(texts.user, USER))
    return Facts(
        version=found.group() if found else "",
        settings=settings,
        partitions=tuple(
            _partition(r) for r in records.records(texts.partitions) if "PartitionName" in r
        ),
        nodes=tuple(_node(r) for r in records.records(texts.nodes) if "NodeName" in r),
        licenses=_named(texts.licenses, "LicenseName"),
        reservations=_named(texts.reservations, "ReservationName"),
        associations=None
        if texts.associations is None
        else tuple(_association(row) for row in records.rows(texts.associations, ASSOCIATION)),
        qos=None if texts.qos is None else tuple(_qos(row) for row in records.rows(texts.qos, QOS)),
        default_account=next((row["DefaultAccount"] for row in users), None) or None,
        missing=texts.missing,
    )


def _named(text: str | None, key: str) -> tuple[str, ...] | None:
    return None if text is None else tuple(re.findall(rf"^{key}=(\S+)", text, re.MULTILINE))


def _node(record: dict[str, str]) -> Node:
    total = records.number(record.get("CPUTot")) or 1
    threads = records.number(record.get("ThreadsPerCore")) or 1
    # Before 22.05 there is no CPUEfctv, and what the system keeps is counted here.
    usable = records.number(record.get("CPUEfctv"))
    if usable is None:
        usable = total - _kept_cpus(record, threads)
    memory = records.number(record.get("RealMemory")) or 1
    arch = record.get("Arch", "").replace("amd64", "x86_64")
    return Node(
        name=record["NodeName"],
        gpus=_gpus(record.get("Gres", "")),
        cpus=max(1, usable),
        memory=max(1, memory - (records.number(record.get("MemSpecLimit")) or 0)),
        tmp=records.number(record.get("TmpDisk")) or 0,
        threads_per_core=threads,
        arch=arch if arch in ("x86_64", "aarch64", "ppc64le") else None,
        features=frozenset(records.names(record.get("AvailableFeatures")) or ()),
        state=frozenset(re.findall(r"[A-Z_]+", record.get("State", "").replace("*", "+DOWN"))),
    )


def _kept_cpus(record: dict[str, str], threads: int) -> int:
    listed = record.get("CPUSpecList") or record.get("CpuSpecList") or ""
    if re.fullmatch(r"[\d,-]+", listed):
        return len(expand_hostlist(f"cpu[{listed}]"))
    return (records.number(record.get("CoreSpecCount")) or 0) * threads


# gpu:h100:8(S:0-1), gpu:4, gpu:a100:2(IDX:0,1); other names are other things.
_GPU = re.compile(r"gpu:(?:([^:,()]+):)?(\d+)(?:\([^)]*\))?")


def _gpus(gres: str) -> tuple[Gpus, ...]:
    counts: dict[str | None, int] = {}
    for item in re.split(r",(?![^(]*\))", gres):
        found = _GPU.fullmatch(item.strip())
        if found is not None and int(found[2]):
            counts[found[1]] = counts.get(found[1], 0) + int(found[2])
    return tuple(Gpus(kind, count) for kind, count in counts.items())


def _partition(record: dict[str, str]) -> Partition:
    per_node = record.get("MaxMemPerNode")
    defaults = records.tres(record.get("JobDefaults"))
    return Partition(
        name=record["PartitionName"],
        state=record.get("State", "UP"),
        default=record.get("Default") == "YES",
        nodes=_hosts(record.get("Nodes", "")),
        min_nodes=records.number(record.get("MinNodes")) or 0,
        max_nodes=records.number(record.get("MaxNodes")),
        max_time=_time(record.get("MaxTime")),
        default_time=_time(record.get("DefaultTime")),
        max_cpus_per_node=records.number(record.get("MaxCPUsPerNode")),
        max_mem=records.number(per_node) or None,
        accounts=records.names(record.get("AllowAccounts")),
        denied_accounts=records.names(record.get("DenyAccounts")) or (),
        groups=records.names(record.get("AllowGroups")),
        qos=records.names(record.get("AllowQos")),
        denied_qos=records.names(record.get("DenyQos")) or (),
        own_qos=next(iter(records.names(record.get("QoS")) or ()), None),
        # 26.05 says it in a word of its own, before which Exclusive was ExclusiveUser.
        exclusive="EXCLUSIVE" in record.get("OverSubscribe", "")
        or record.get("Exclusive") == "NODE",
        root_only=record.get("RootOnly") == "YES",
        hidden=record.get("Hidden") == "YES",
        preempt_mode=record.get("PreemptMode", "OFF"),
        tier=records.number(record.get("PriorityTier")) or 1,
        cpus_per_gpu=records.number(defaults.get("DefCpuPerGPU")),
    )


def _hosts(text: str) -> tuple[str, ...]:
    if not text or text == "(null)":
        return ()
    try:
        return tuple(expand_hostlist(text))
    except Refusal:
        # A grammar of a newer Slurm: the nodes themselves say where they are.
        return ()


def _time(text: str | None) -> int | None:
    """Seconds; None for UNLIMITED, NONE and what is not there."""
    try:
        return parse_time(text) if text and text != "NONE" else None
    except Refusal:
        return None


def _association(cells: Mapping[str, str]) -> Association:
    return Association(
        account=cells["Account"],
        partition=cells["Partition"] or None,
        qos=records.names(cells["QOS"]) or (),
        default_qos=cells["DefaultQOS"] or None,
        max_time=_time(cells["MaxWall"]),
        most=_counts(cells["MaxTRES"]),
    )


def _qos(cells: Mapping[str, str]) -> Qos:
    most = _counts(cells["MaxTRES"])
    # A job that is over what its user, or everybody, may have at once never starts.
    for column in ("MaxTRESPU", "GrpTRES"):
        for name, count in _counts(cells[column]).items():
            most[name] = min(count, most.get(name, count))
    return Qos(
        name=cells["Name"],
        max_time=_time(cells["MaxWall"]),
        most=most,
        least=_counts(cells["MinTRES"]),
        minutes=_counts(cells["MaxTRESMins"]),
        max_jobs=records.number(cells["MaxJobsPU"]),
        max_submitted=records.number(cells["MaxSubmitPU"]),
        preempts=records.names(cells["Preempt"]) or (),
        flags=records.names(cells["Flags"]) or (),
    )


def _counts(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in records.tres(text).items() if value.isdigit()}
