"""What a job takes from others without using it: GPUs that nobody can get beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.cluster.problems import refuse
from slurmgen.slurm.grammars.memory import parse_memory

if TYPE_CHECKING:
    from slurmgen.cluster.ask import Ask
    from slurmgen.cluster.profile import NodeType, Profile
    from slurmgen.errors import Refusal
    from slurmgen.jobfile.job import JobSpec

_WHY = "they stand idle for everybody, and most sites charge a job by its largest share of a node"


class _Share(NamedTuple):
    """asked, there: on a node, in CPUs or MiB. fix: what leaves the other GPUs their share."""

    key: str
    what: str
    asked: int
    there: int
    fix: str


def are_whole(spec: JobSpec, profile: Profile) -> bool:
    """Whether every partition that the job names gives no less than a node."""
    named = (spec.partition or "").split(",")
    known = [partition for partition in profile.partitions if partition.name in named]
    return bool(known) and all(partition.whole_nodes for partition in known)


def check(spec: JobSpec, ask: Ask, *, whole_nodes: bool, problems: list[Refusal]) -> None:
    """Add a Refusal where GPUs of the job's nodes are left that no other job can use.

    whole_nodes: the partition gives no less than a node.
    """
    kind, gpus = ask.node_type, ask.gpus
    if kind is None or not 0 < gpus < kind.gpus_per_node:
        return
    left = kind.gpus_per_node - gpus
    if whole_nodes or spec.exclusive == "true":
        refuse(
            problems,
            "exclusive" if spec.exclusive is not None else "gpus_per_node",
            f"whole nodes for {gpus} of their {kind.gpus_per_node} GPUs leave {left} to nobody",
            _WHY,
            f"write gpus_per_node: {kind.gpus_per_node}"
            + ("" if whole_nodes else ", or remove exclusive"),
        )
        return
    for share in _shares(spec, ask, kind):
        usable = (share.there - share.asked) * kind.gpus_per_node // share.there
        if usable < left:
            stranded = left - max(usable, 0)
            refuse(
                problems,
                share.key,
                f"{share.what} for {gpus} of {kind.gpus_per_node} GPUs leaves {stranded} of the "
                f"other {left} without a share",
                _WHY,
                share.fix,
            )
            return


def _shares(spec: JobSpec, ask: Ask, kind: NodeType) -> list[_Share]:
    found = []
    fair = ask.gpus * (kind.cpus or 0) // kind.gpus_per_node
    if kind.cpus and ask.cpus_per_task is not None:
        tasks = ask.layout.ntasks_per_node
        cpus = tasks * ask.cpus_per_task
        key = "cpus_per_gpu" if spec.cpus_per_gpu is not None else "cpus_per_task"
        right = fair // (ask.gpus if key == "cpus_per_gpu" else tasks)
        what = f"{cpus} of a node's {kind.cpus} CPUs"
        found.append(_Share(key, what, cpus, kind.cpus, f"write {key}: {right}, or take more GPUs"))
    if kind.memory is not None and (spec.mem or spec.mem_per_gpu or spec.mem_per_cpu):
        there = parse_memory(kind.memory)
        key, memory, times = _memory(spec, ask, there)
        right = ask.gpus * there // kind.gpus_per_node // times
        what = f"{memory}M of a node's {there}M memory"
        found.append(_Share(key, what, memory, there, f"write {key}: {right}M, or take more GPUs"))
    return found


def _memory(spec: JobSpec, ask: Ask, there: int) -> tuple[str, int, int]:
    """The key, MiB on a node, and how many times a node the key's amount counts."""
    if spec.mem is not None:
        # 0 is all there is.
        return "mem", spec.mem.mib or there, 1
    if spec.mem_per_gpu is not None:
        return "mem_per_gpu", spec.mem_per_gpu.mib * ask.gpus, ask.gpus
    cpus = ask.layout.ntasks_per_node * (ask.cpus_per_task or 1)
    each = spec.mem_per_cpu.mib if spec.mem_per_cpu is not None else 0
    return "mem_per_cpu", each * cpus, cpus
