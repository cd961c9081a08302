"""What a job asks for -> the sandbox that has exactly that, and what is asked for otherwise here.

Pure. A sandbox has one kind of node; what is the site's alone (names of nodes, reservations,
features, licenses) or would keep the job waiting is taken back on sbatch's command line, which
beats the script's directives. The script itself stays as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import Refusal
from slurmgen.sandbox.shape import Shape
from slurmgen.spec.array import parse_array
from slurmgen.spec.nodes import expand_hostlist

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.request import Request

# What a job may have of CPUs and memory without asking, as a usual GPU node has them.
_CPUS, _MEMORY_MB = 64, 262_144
# Of an array that many tasks are rehearsed, and this many nodes are there for them at once.
_MOST_TASKS, _MOST_ARRAY_NODES = 16, 16
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class Rehearsed(NamedTuple):
    """A shape, options for sbatch's command line, and what a person should know of them.

    array_tasks: how many tasks of an array are run; None where the job is none.
    """

    shape: Shape
    options: tuple[str, ...]
    notes: tuple[str, ...]
    array_tasks: int | None = None


def rehearsed(requests: Sequence[Request]) -> Rehearsed:
    """Raises UsageError for a job that is larger than a sandbox can be."""
    nodes = sum(_nodes(request) for request in requests)
    first = requests[0]
    options, notes, spare = _options(first, nodes)
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
        # A rehearsal must not write to the person whom the job would write to.
        extra_conf=("MailProg=/bin/true",),
    )
    return Rehearsed(shape, tuple(options), tuple(notes), array_tasks)


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


def _options(request: Request, nodes: int) -> tuple[list[str], list[str], int]:
    """Options for the command line, notes, and how many spare nodes they need."""
    options: list[str] = []
    left_out: list[str] = []
    spare = 0
    for name in _SITES:
        value = request.value(name)
        # With a variable in it sbatch refuses it, and that is to be seen.
        if value and "$" not in value:
            options.append(f"--{name}=")
            left_out.append(f"--{name}={value}")
    if request.gives("begin"):
        options.append("--begin=now")
    if request.value("exclude"):
        spare = 1
        options.append(f"--exclude=n{nodes + 1}")
        left_out.append(f"--exclude={request.value('exclude')}")
    listed = request.nodelist
    if listed:
        try:
            count = len(expand_hostlist(listed))
        except Refusal:
            count = 0
        if count:
            spare = max(spare, count - nodes)
            options.append("--nodelist=" + ",".join(f"n{i + 1}" for i in range(count)))
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
