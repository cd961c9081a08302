"""What a job asks for -> the sandbox that has exactly that, and what is asked for otherwise here.

Pure. A sandbox has one kind of node; what is the site's alone (names of nodes, reservations,
features, licenses) or would keep the job waiting is taken back on sbatch's command line, which
beats the script's directives. The script itself stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import Refusal
from slurmgen.sandbox.like import shape_like
from slurmgen.sandbox.shape import Shape
from slurmgen.slurm.grammars.array import parse_array
from slurmgen.slurm.grammars.constraint import features
from slurmgen.slurm.grammars.nodes import expand_hostlist

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from slurmgen.cluster.profile import Profile
    from slurmgen.slurm.request import Request

# What a job may have of CPUs and memory without asking, as a usual GPU node has them.
_CPUS, _MEMORY_MB = 64, 262_144
# Of an array that many tasks are rehearsed, and this many nodes are there for them at once.
_MOST_TASKS, _MOST_ARRAY_NODES = 16, 16
# An id as long as those of clusters, of which the last two, three, four and five digits all begin
# with a zero and are no octal number: what takes them for a port fails here, not one time in ten.
# Slurm 20.11 gives its first job the number behind this one, of which the same is true.
_FIRST_JOB = 1_200_008
# A rehearsal must not write to the person whom the job would write to.
_EXTRA_CONF = ("MailProg=/bin/true", f"FirstJobId={_FIRST_JOB}")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class Rehearsed(NamedTuple):
    """A shape, options for sbatch's command line, and what a person should know of them.

    array_tasks: how many tasks of an array are run; None where the job is none. cluster: after
    which the nodes are made; None where the job alone says what they are.
    """

    shape: Shape
    options: tuple[str, ...]
    notes: tuple[str, ...]
    array_tasks: int | None = None
    cluster: str | None = None


def rehearsed(requests: Sequence[Request], profile: Profile | None = None) -> Rehearsed:
    """Raises UsageError for a job that is larger than a sandbox can be.

    profile: of the cluster that the sandbox is to be like: its partitions with their limits, its
    kinds of nodes, of each that the job can come to as many nodes as it asks for, of the others
    one. A profile that knows of no nodes is as good as none.
    """
    nodes = sum(_nodes(request) for request in requests)
    first = requests[0]
    if profile is not None and profile.node_types:
        return _like(requests, profile, nodes)
    options, notes, spare = _options(first, range(1, nodes + 1))
    array_tasks = None
    if first.array is not None:
        array_tasks, at_once, more = _array(first.array)
        options += more
        if more:
            notes.append(f"{array_tasks} tasks of the array stand for all of {first.array}")
        nodes *= max(1, min(at_once, array_tasks, _MOST_ARRAY_NODES // nodes))
    shape = Shape(
        nodes=nodes + spare,
        gpus_per_node=max(_gpus(request) for request in requests),
        gpu_type=next((r.gpu_type for r in requests if r.gpu_type), "") or "",
        cpus_per_node=max(_CPUS, *(_cpus(request) for request in requests)),
        memory_mb=max(_MEMORY_MB, *(_memory(request) for request in requests)),
        partitions=_partitions(requests),
        extra_conf=_EXTRA_CONF,
    )
    return Rehearsed(shape, tuple(options), tuple(notes), array_tasks)


def _like(requests: Sequence[Request], profile: Profile, nodes: int) -> Rehearsed:
    first = requests[0]
    array_tasks: int | None = None
    more: list[str] = []
    if first.array is not None:
        array_tasks, at_once, more = _array(first.array)
        nodes *= max(1, min(at_once, array_tasks, _MOST_ARRAY_NODES // nodes))
    shape, told = shape_like(profile, nodes)
    named = {name for request in requests for name in (request.value("partition") or "").split(",")}
    reached = {
        group
        for number, partition in enumerate(shape.partition_shapes)
        if partition.name in named or (named == {""} and number == 0)
        for group in partition.groups or range(len(shape.node_groups))
    }
    known = {feature for group in shape.node_groups for feature in group.features}
    *_, spare = _options(first, range(nodes), known)
    own = min(reached, default=0)
    groups = tuple(
        replace(group, nodes=(group.nodes if index in reached else 1) + spare * (index == own))
        for index, group in enumerate(shape.node_groups)
    )
    shape = replace(shape, groups=groups, extra_conf=(*shape.extra_conf, *_EXTRA_CONF))
    numbers = shape.numbers(own)
    options, notes, _ = _options(first, numbers[: len(numbers) - spare], known)
    notes += told
    return Rehearsed(shape, (*options, *more), tuple(notes), array_tasks, profile.name)


def _nodes(request: Request) -> int:
    if request.total_nodes is not None:
        return request.total_nodes
    if request.nodes is not None:
        return max(1, request.nodes[0])
    if request.gpus is not None:
        return max(1, -(-request.gpus // (_gpus(request) or 1)))
    tasks = request.ntasks or 1
    if request.gpus_per_task:
        return max(1, -(-tasks * request.gpus_per_task // (_gpus(request) or 1)))
    # As many as it could be spread over: Slurm says which it takes.
    return min(tasks, 2)


def _gpus(request: Request) -> int:
    """GPUs of a node; where the job leaves it open, as many as it may want of one node."""
    if request.gpus_per_node is not None:
        return request.gpus_per_node
    if request.gpus is not None:
        return min(request.gpus, 8)
    if request.node_gpus is not None:
        return request.node_gpus
    if request.gpus_per_task is not None:
        return min(8, request.gpus_per_task * (request.tasks_per_node or request.ntasks or 1))
    return 8 if request.gives("gpus-per-socket", "tres-per-task") else 0


def _cpus(request: Request) -> int:
    each = request.cpus_per_task or 1
    if request.cpus_per_gpu:
        return request.cpus_per_gpu * max(1, _gpus(request))
    tasks = request.tasks_per_node or request.ntasks_per_node or request.ntasks or 1
    return min(4096, each * tasks)


def _memory(request: Request) -> int:
    if request.mem:
        return request.mem
    if request.mem_per_gpu:
        return request.mem_per_gpu * max(1, _gpus(request))
    return (request.mem_per_cpu or 0) * max(_CPUS, _cpus(request))


def _partitions(requests: Sequence[Request]) -> tuple[str, ...]:
    named = [name for r in requests for name in (r.value("partition") or "").split(",") if name]
    usable = [n for n in named if _WORD.fullmatch(n) and n.upper() not in ("ALL", "DEFAULT")]
    return tuple(dict.fromkeys(usable)) or ("gpu",)


# What is the site's own, and what is written in its place.
_SITES = ("constraint", "reservation", "licenses", "dependency")


def _options(
    request: Request, nodes: range, known: Collection[str] = ()
) -> tuple[list[str], list[str], int]:
    """Options for the command line, notes, and how many spare nodes they need.

    nodes: the numbers of those for the job; spare ones come behind. known: features of nodes.
    """
    options: list[str] = []
    left_out: list[str] = []
    spare = 0
    for name in _SITES:
        value = request.value(name)
        if name == "constraint" and value and known and set(features(value)) <= set(known):
            continue
        # With a variable in it sbatch refuses it, and that is to be seen.
        if value and "$" not in value:
            options.append(f"--{name}=")
            left_out.append(f"--{name}={value}")
    if request.gives("begin"):
        options.append("--begin=now")
    if request.value("exclude"):
        spare = 1
        options.append(f"--exclude=n{nodes.stop}")
        left_out.append(f"--exclude={request.value('exclude')}")
    listed = request.nodelist
    if listed:
        try:
            count = len(expand_hostlist(listed))
        except Refusal:
            count = 0
        if count:
            spare = max(spare, count - len(nodes))
            names = [f"n{nodes.start + index}" for index in range(count)]
            options.append(f"--nodelist={','.join(names)}")
            left_out.append(f"--nodelist={listed}")
    gres = request.value("gres") or ""
    others = [item for item in gres.split(",") if item and not item.startswith(("gpu", "gres"))]
    if others and "$" not in gres:
        kept = ",".join(item for item in gres.split(",") if item not in others)
        options.append(f"--gres={kept or 'none'}")
        left_out.append(f"--gres={','.join(others)}")
    notes = [f"not asked for here: {' '.join(left_out)}"] if left_out else []
    return options, notes, spare


def _array(text: str) -> tuple[int, int, list[str]]:
    """How many tasks are run, how many at once, and an option where these are not all."""
    try:
        array = parse_array(text)
    except Refusal:
        return 1, 1, []
    at_once = array.throttle or array.tasks
    if array.tasks <= _MOST_TASKS:
        return array.tasks, at_once, []
    indices = _indices(text)
    chosen = [*indices[: _MOST_TASKS - 1], indices[-1]]
    throttle = f"%{array.throttle}" if array.throttle else ""
    return _MOST_TASKS, at_once, [f"--array={','.join(map(str, chosen))}{throttle}"]


def _indices(text: str) -> list[int]:
    found: list[int] = []
    for item in text.strip("[]").partition("%")[0].replace("]", "").split(","):
        bounds, _, step = item.partition(":")
        first, _, last = bounds.partition("-")
        found += range(int(first), int(last or first) + 1, int(step or 1))
    return sorted(found)
