"""Which GPU and which node each rank uses: none shared, none idle. Pure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.sandbox.rehearsal.fault import Fault, counted, listing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from slurmgen.sandbox.rehearsal.groups import Group, Rank


# What is said of something that the job has and does not use.
IDLE = frozenset({"node-idle", "gpu-idle", "gpu-one-process", "srun-missing"})


def check(
    groups: Sequence[Group],
    gpus: Mapping[str, frozenset[str]],
    *,
    tasks: int | None,
    one_process: bool,
) -> Iterator[Fault]:
    """groups: the trainings of one run. gpus: what each node gave to the job.

    tasks: how many the job has, None where that is not known. one_process: the job is meant to
    be one process that uses all GPUs of its node, or starts the others itself.
    """
    faults = [fault for group in groups for fault in _shared(group, gpus)]
    yield from faults
    idle_nodes = sorted(set(gpus) - {rank.node for group in groups for rank in group.ranks})
    if idle_nodes:
        yield _idle_nodes(groups, idle_nodes, tasks)
    elif not faults:
        yield from _idle_gpus(groups, gpus, one_process=one_process)
    alone = len(groups) == 1 and len(groups[0].ranks) == 1 and not groups[0].in_step
    if alone and not idle_nodes and tasks is not None and tasks > 1:
        yield Fault(
            "srun-missing",
            f"the job has {tasks} tasks, and its program was started once, by the batch shell",
            "without srun the other tasks are never started: a program that takes "
            f"$SLURM_NTASKS for its world size waits for {tasks - 1} ranks that never come",
            "put srun before the program",
        )


def _shared(group: Group, gpus: Mapping[str, frozenset[str]]) -> Iterator[Fault]:
    users: dict[tuple[str, str], list[Rank]] = defaultdict(list)
    beyond = [rank for rank in group.ranks if rank.gpus is None]
    if beyond:
        rank = beyond[0]
        yield Fault(
            "gpu-missing",
            f"{counted(len(beyond), 'rank')} on {rank.node} have no GPU: local rank {rank.local} "
            f"sees {len(rank.visible or ())} GPUs",
            "cuda:LOCAL_RANK does not exist there",
            "start as many ranks on a node as it has GPUs for the job",
        )
    for rank in group.ranks:
        for gpu in rank.gpus or ():
            users[rank.node, gpu].append(rank)
    crowded = {place: ranks for place, ranks in users.items() if len(ranks) > 1}
    if crowded:
        (node, gpu), ranks = next(iter(crowded.items()))
        names = listing([f"rank {number}" for number in sorted(r.rank or 0 for r in ranks)], 2)
        free = len(gpus.get(node, ())) > 1
        yield Fault(
            "gpu-shared",
            f"{names} use the same GPU {gpu} of {node}"
            + (f", one of {len(gpus[node])} that the job has there" if free else ""),
            "every one of these tasks sees this GPU only"
            if all(len(rank.visible or ()) == 1 for rank in ranks)
            else "NCCL refuses two ranks on one GPU",
            "leave --gres and --gpus-per-task out of the srun line: a task sees all GPUs of its "
            "node then, and takes the one of its local rank"
            if free
            else "ask for as many GPUs as there are tasks on a node",
        )
    twice = [rank for rank in group.ranks if _is_masked_twice(rank)]
    if twice:
        env = twice[0].program.env
        hip, rocr = env["HIP_VISIBLE_DEVICES"], env["ROCR_VISIBLE_DEVICES"]
        yield Fault(
            "gpu-masked-twice",
            f"{counted(len(twice), 'rank')} see no AMD GPU: HIP_VISIBLE_DEVICES={hip} is one of "
            f"the {len(rocr.split(','))} that ROCR_VISIBLE_DEVICES={rocr} leaves",
            "HIP counts from 0 among the GPUs that ROCR shows, and Slurm sets ROCR's",
            "leave HIP_VISIBLE_DEVICES out",
        )
    blind = [r for r in group.ranks if gpus.get(r.node) and not r.visible]
    if blind and group.in_step:
        yield Fault(
            "gpu-hidden",
            f"{counted(len(blind), 'rank')} see no GPU, though the job has "
            f"{len(gpus[blind[0].node])} on {blind[0].node}",
            "the step was not given any of the job's GPUs",
            "leave --gres=none and --gpus out of the srun line",
        )


def _idle_nodes(groups: Sequence[Group], idle: list[str], tasks: int | None) -> Fault:
    in_step = any(group.in_step for group in groups)
    count = sum(len(group.ranks) for group in groups)
    many = f" of the job's {tasks} tasks" if tasks and tasks > 1 else ""
    return Fault(
        "node-idle",
        f"nothing runs on {listing(idle)}: the program was started "
        f"{'once' if count == 1 else f'{count} times'}{many}, "
        f"on {listing(sorted({rank.node for group in groups for rank in group.ranks}))}",
        "the batch shell is on the first node only, and nothing but srun starts a program elsewhere"
        if not in_step
        else "the step has fewer tasks than the job has nodes",
        "put srun before the program" if not in_step else "give srun --nodes and --ntasks",
    )


def _idle_gpus(
    groups: Sequence[Group], gpus: Mapping[str, frozenset[str]], *, one_process: bool
) -> Iterator[Fault]:
    used: dict[str, set[str]] = defaultdict(set)
    single: list[Rank] = []
    for group in groups:
        for rank in group.ranks:
            used[rank.node] |= set(rank.gpus or ())
            if len(rank.gpus or ()) > 1 and rank.program.what != "other":
                single.append(rank)
    idle = {node: own - used[node] for node, own in gpus.items() if own - used[node]}
    if idle:
        node = next(iter(idle))
        count = sum(map(len, idle.values()))
        total = sum(map(len, gpus.values()))
        yield Fault(
            "gpu-idle",
            f"{count} of the job's {total} GPUs are used by nobody, "
            f"such as GPU {listing(sorted(idle[node]))} of {node}",
            "they are paid for, and kept from others",
            "start a rank for each, or ask for fewer",
        )
    elif single and not one_process and all(len(group.ranks) == 1 for group in groups):
        rank = single[0]
        yield Fault(
            "gpu-one-process",
            f"one process has {len(rank.gpus or ())} GPUs, on {listing({r.node for r in single})}",
            "unless it starts more by itself, it computes on one of them, or with DataParallel, "
            "which hardly gains anything",
            "start a process for each GPU: srun --ntasks-per-node, or torchrun",
            severity=WARNING,
        )


def _is_masked_twice(rank: Rank) -> bool:
    hip = rank.program.env.get("HIP_VISIBLE_DEVICES", "")
    rocr = rank.program.env.get("ROCR_VISIBLE_DEVICES", "")
    indices = [int(text) for text in hip.split(",") if text.isdecimal()]
    return bool(indices and rocr) and max(indices) >= len(rocr.split(","))
