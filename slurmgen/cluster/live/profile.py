"""The profile that a running cluster's facts make, as the data of a profile's file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from slurmgen.slurm.answers.kinds import kinds
from slurmgen.slurm.grammars.time import format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slurmgen.slurm.answers.facts import Facts, Partition, Qos
    from slurmgen.slurm.answers.kinds import Kind

# What Slurm never says, and a person has to add.
_UNTOLD = (
    "Slurm does not say which modules, containers and network settings jobs need here, what a "
    "GPU hour costs, or whether the site wants another share of the CPUs for each GPU."
)


def profile_data(facts: Facts, *, with_names: bool = False) -> dict[str, Any]:
    """Keys of a profile in the order in which they are written; defaults are left out.

    with_names: the names of nodes and reservations too, which change too often for a file.
    """
    found = kinds(facts.nodes)
    gpu_types = sorted({kind.gpus.kind for kind in found if kind.gpus and kind.gpus.kind})
    data: dict[str, Any] = {
        "name": facts.name,
        "title": f"{facts.name}, as its Slurm describes it",
        "slurm": facts.version,
        "node_types": [_node_type(kind, facts) for kind in found],
        "partitions": [_partition(p, facts, found) for p in facts.partitions if _is_open(p)],
    }
    if facts.qos is not None:
        data["qos"] = [_qos(qos, facts, found) for qos in _usable_qos(facts)]
    size = facts.settings.get("MaxArraySize", "")
    if size.isdigit():
        data["max_array_size"] = int(size)
    data.update(_preemption(facts))
    constrained = facts.settings.get("ConstrainDevices")
    if constrained in ("yes", "no"):
        data["constrain_devices"] = constrained == "yes"
    inventory = _inventory(facts, with_names=with_names)
    if inventory:
        data["inventory"] = inventory
    if facts.default_account is not None:
        data["account"] = {"example": facts.default_account}
    data["notes"] = [{"text": text} for text in _notes(facts, gpu_types)]
    return data


def _is_open(partition: Partition) -> bool:
    return bool(partition.nodes) and not partition.root_only


def _node_type(kind: Kind, facts: Facts) -> dict[str, Any]:
    data: dict[str, Any] = {"name": kind.name}
    if kind.gpus is not None:
        if kind.gpus.kind is not None:
            data["gpu"] = kind.gpus.kind
        vendor = _vendor(kind.gpus.kind or "")
        if vendor != "nvidia":
            data["vendor"] = vendor
        data["gpus_per_node"] = kind.gpus.number
    if kind.arch is not None:
        data["arch"] = kind.arch
    data["cpus"] = kind.cpus
    data["memory"] = f"{kind.memory}M"
    if kind.tmp:
        data["tmp"] = f"{kind.tmp}M"
    data["threads_per_core"] = kind.threads_per_core
    if kind.gpus is not None:
        share = _site_share(kind, facts) or kind.cpus // kind.total_gpus
        if share:
            data["cpus_per_gpu"] = share
    data["count"] = len(kind.nodes)
    data["features"] = sorted(kind.features)
    chosen = _choice(kind, facts)
    if chosen is not None:
        data["select"] = {"partition": chosen}
    return data


def _vendor(gpu: str) -> str:
    """Slurm does not tell it; AMD's and Intel's GPUs go by these names."""
    if re.match(r"(?:amd[_-]?)?(?:instinct[_-]?)?mi\d", gpu, re.IGNORECASE):
        return "amd"
    return "intel" if re.match(r"(?:intel|pvc|max1\d|ponte)", gpu, re.IGNORECASE) else "nvidia"


def _site_share(kind: Kind, facts: Facts) -> int | None:
    """CPUs that a partition of these nodes gives with each GPU (DefCpuPerGPU)."""
    shares = {p.cpus_per_gpu for p in facts.partitions if p.cpus_per_gpu and _holds(p, kind)}
    return shares.pop() if len(shares) == 1 else None


def _choice(kind: Kind, facts: Facts) -> str | None:
    """The one partition for everybody with such nodes alone, where the default has none of them."""
    if kind.gpus is None:
        return None
    default = next((p for p in facts.partitions if p.default), None)
    if default is not None and _holds(default, kind):
        return None
    others = [
        p.name
        for p in facts.partitions
        if _is_open(p) and set(p.nodes) <= set(kind.nodes) and not _access(p) and p.state == "UP"
    ]
    return others[0] if len(others) == 1 else None


def _holds(partition: Partition, kind: Kind) -> bool:
    return not set(partition.nodes).isdisjoint(kind.nodes)


def _partition(partition: Partition, facts: Facts, found: Sequence[Kind]) -> dict[str, Any]:
    data: dict[str, Any] = {"name": partition.name}
    if partition.default:
        data["default"] = True
    if partition.max_time is not None:
        data["max_time"] = format_time(partition.max_time)
    if partition.min_nodes > 1:
        data["min_nodes"] = partition.min_nodes
    if partition.max_nodes:
        data["max_nodes"] = partition.max_nodes
    if partition.max_mem is not None:
        data["max_mem"] = f"{partition.max_mem}M"
    own = next((qos for qos in facts.qos or () if qos.name == partition.own_qos), None)
    if own is not None:
        _tighten(data, _bounds(own))
        typed = _typed_bounds(own, found)
        if typed:
            data["limits"] = typed
    held = [kind.name for kind in found if _holds(partition, kind)]
    if len(held) < len(found):
        data["node_types"] = held
    if _is_preemptible(partition, facts):
        data["preemptible"] = True
    if partition.exclusive:
        data["whole_nodes"] = True
    access = _access(partition)
    if access:
        data["access"] = access
    note = "; ".join(_partition_notes(partition))
    if note:
        data["note"] = note
    return data


def _access(partition: Partition) -> str:
    """Who is let in, where that is not everybody."""
    parts = []
    if partition.accounts is not None:
        parts.append(f"accounts {', '.join(partition.accounts)}")
    if partition.groups is not None:
        parts.append(f"groups {', '.join(partition.groups)}")
    if partition.qos is not None:
        parts.append(f"QOS {', '.join(partition.qos)}")
    if partition.hidden:
        parts.append("hidden from others")
    return f"for {'; '.join(parts)}" if parts else ""


def _partition_notes(partition: Partition) -> Iterator[str]:
    if partition.default_time is not None and partition.default_time != partition.max_time:
        yield f"a job without a time gets {format_time(partition.default_time)}"
    if partition.max_cpus_per_node is not None:
        yield f"jobs get {partition.max_cpus_per_node} CPUs of a node at most"
    if partition.denied_accounts:
        yield f"not for accounts {', '.join(partition.denied_accounts)}"
    if partition.denied_qos:
        yield f"not for QOS {', '.join(partition.denied_qos)}"


def _is_preemptible(partition: Partition, facts: Facts) -> bool:
    """Whether another partition of the same nodes takes them from this one's jobs."""
    if facts.settings.get("PreemptType") != "preempt/partition_prio":
        return False
    if partition.preempt_mode == "OFF":
        return False
    own = set(partition.nodes)
    return any(p.tier > partition.tier and not own.isdisjoint(p.nodes) for p in facts.partitions)


def _usable_qos(facts: Facts) -> list[Qos]:
    """Those of the user's own associations; all of them where those are not known."""
    allowed = {name for a in facts.associations or () for name in a.qos}
    return [qos for qos in facts.qos or () if not allowed or qos.name in allowed]


TRES_BOUNDS = {"node": "nodes", "gres/gpu": "gpus", "cpu": "cpus"}


def _bounds(qos: Qos) -> dict[str, Any]:
    """What a job may be in a QOS, by the keys of a profile."""
    data: dict[str, Any] = {}
    if qos.max_time is not None:
        data["max_time"] = format_time(qos.max_time)
    for name, bound in TRES_BOUNDS.items():
        # None of them is a limit of GPUs; of nodes it shuts the QOS, which is no limit of a job.
        if qos.most.get(name) or (name in qos.most and bound == "gpus"):
            data[f"max_{bound}"] = qos.most[name]
        if bound != "cpus" and qos.least.get(name):
            data[f"min_{bound}"] = qos.least[name]
    if "node" in qos.minutes:
        data["max_node_time"] = format_time(qos.minutes["node"] * 60)
    return data


def _typed_bounds(qos: Qos, found: Sequence[Kind]) -> list[dict[str, Any]]:
    """The same for the GPUs of one type (`gres/gpu:a100`), under the condition of their nodes."""
    limits = []
    for name, most in qos.most.items():
        gpu = name.partition("gres/gpu:")[2]
        held = [kind.name for kind in found if gpu and kind.gpus and kind.gpus.kind == gpu]
        if held:
            limits.append({"when": {"node_type": held}, "max_gpus": most})
    return limits


def _tighten(data: dict[str, Any], bounds: dict[str, Any]) -> None:
    """Of two bounds of a kind the one that lets less through."""
    for key, value in bounds.items():
        chosen = max if key.startswith("min") else min
        data[key] = chosen(data.get(key, value), value, key=_size)


def _size(value: str | int) -> int:
    return value if isinstance(value, int) else parse_time(value) or 0


def _qos(qos: Qos, facts: Facts, found: Sequence[Kind]) -> dict[str, Any]:
    data: dict[str, Any] = {"name": qos.name}
    if not any(flag.startswith("Partition") for flag in qos.flags):
        data["replaces"] = False
    if any(a.default_qos == qos.name for a in facts.associations or ()):
        data["default"] = True
    data.update(_bounds(qos))
    typed = _typed_bounds(qos, found)
    if typed:
        data["limits"] = typed
    if any(qos.name in other.preempts for other in facts.qos or ()):
        data["preemptible"] = True
    notes = []
    if qos.max_jobs is not None:
        notes.append(f"{qos.max_jobs} running jobs a user at most")
    if qos.max_submitted is not None:
        notes.append(f"{qos.max_submitted} submitted jobs a user at most")
    if notes:
        data["note"] = "; ".join(notes)
    return data


def _preemption(facts: Facts) -> dict[str, Any]:
    kind = facts.settings.get("PreemptType")
    if kind is None:
        return {}
    if kind == "preempt/none":
        return {"preemption": False}
    how: dict[str, Any] = {}
    if "REQUEUE" in facts.settings.get("PreemptMode", "").upper():
        by_default = facts.settings.get("JobRequeue") == "1"
        how["requeue"] = "automatic" if by_default else "on request"
    exempt = facts.settings.get("PreemptExemptTime", "00:00:00")
    if exempt not in ("00:00:00", "NONE", "(null)"):
        how["exempt"] = exempt
    return {"preemption": True, **({"when_preempted": how} if how else {})}


def _inventory(facts: Facts, *, with_names: bool) -> dict[str, Any]:
    data: dict[str, Any] = {}
    gres = facts.settings.get("GresTypes")
    if facts.settings:
        data["gres"] = sorted(gres.split(",")) if gres else []
    if facts.licenses is not None:
        data["licenses"] = list(facts.licenses)
    if with_names:
        data["nodes"] = [node.name for node in facts.nodes]
        if facts.reservations is not None:
            data["reservations"] = list(facts.reservations)
    return data


def _notes(facts: Facts, gpu_types: Sequence[str]) -> Iterator[str]:
    if facts.settings.get("JobRequeue") == "0":
        yield "A job comes back after preemption or a failed node only with requeue."
    if len(gpu_types) > 1:
        yield f"Without a type, a job gets any of {', '.join(gpu_types)}."
    shut = [p.name for p in facts.partitions if not _is_open(p)]
    if shut:
        yield f"Left out, with no nodes or for root alone: {', '.join(shut)}."
    for name, why in facts.missing:
        yield f"Not found out: {name} ({why})."
    yield _UNTOLD
