"""What a value means to a distributed program: a rank, a local rank, a device, a test of a rank.

Roles of a number: ``rank``, ``local_rank``, ``node_rank``, ``world_size``, ``spawn`` (the index
that mp.spawn passes), ``wrapped`` (a rank modulo the GPUs that are seen), ``constant``,
``computed`` and ``unknown``. Roles of a device, besides: ``plain`` (``"cuda"`` without an index),
``cpu``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.reading.programs.values import alternatives, unset, walk

if TYPE_CHECKING:
    from slurmgen.reading.programs.values import Present, Value

RANK = frozenset(
    {
        "RANK",
        "SLURM_PROCID",
        "OMPI_COMM_WORLD_RANK",
        "PMI_RANK",
        "PMIX_RANK",
        "MV2_COMM_WORLD_RANK",
        "GLOBAL_RANK",
    }
)
LOCAL_RANK = frozenset(
    {
        "LOCAL_RANK",
        "SLURM_LOCALID",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "PALS_LOCAL_RANKID",
    }
)
NODE_RANK = frozenset({"SLURM_NODEID", "GROUP_RANK", "NODE_RANK", "OMPI_COMM_WORLD_NODE_RANK"})
WORLD_SIZE = frozenset(
    {"WORLD_SIZE", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"}
)

_CALLS = {
    "torch.distributed.get_rank": "rank",
    "torch.distributed.get_node_local_rank": "local_rank",
    "torch.distributed.get_world_size": "world_size",
    "horovod.torch.rank": "rank",
    "horovod.torch.local_rank": "local_rank",
    "horovod.torch.size": "world_size",
    "idr_torch.rank": "rank",
    "idr_torch.local_rank": "local_rank",
    "idr_torch.world_size": "world_size",
    "idr_torch.size": "world_size",
    "slurmgen.ddp.rank": "rank",
    "slurmgen.ddp.local_rank": "local_rank",
    "lightning.rank_zero_only.rank": "rank",
}
# Attributes and methods whose name alone says it, whatever object has them.
_ATTRIBUTES = {
    "local_rank": "local_rank",
    "local_process_index": "local_rank",
    "global_rank": "rank",
    "process_index": "rank",
    "Get_rank": "rank",
    "Get_size": "world_size",
    "world_size": "world_size",
    "num_processes": "world_size",
}
_LOCAL_NAME = re.compile(r"(^|_)local_?(rank|id)$|^localrank$|^lrank$", re.IGNORECASE)

_COUNTS = frozenset({"torch.cuda.device_count", "torch.accelerator.device_count"})
_GPU_VARIABLES = frozenset({"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_TASK", "CUDA_VISIBLE_DEVICES"})


def roles(value: Value, present: Present = unset) -> frozenset[str]:
    """What a number may mean, on the paths that the environment leaves open."""
    found: set[str] = set()
    for item in alternatives(value, present):
        found |= _role(item, present)
    return frozenset(found) or frozenset({"unknown"})


def _role(value: Value, present: Present) -> frozenset[str]:
    kind, name = value.kind, value.name
    role = "unknown"
    if kind == "constant":
        role = "constant" if value.literal is not None else "none"
    elif kind == "env":
        role = _variable(name)
    elif kind in ("call", "name"):
        if name in ("min", "max", "abs") and value.parts:
            role = "computed"
        else:
            last = name.rpartition(".")[2]
            named = _ATTRIBUTES.get(last, "local_rank" if _LOCAL_NAME.search(last) else "unknown")
            role = _CALLS.get(name, named)
    elif kind in ("attribute", "method", "option"):
        role = _ATTRIBUTES.get(name, "local_rank" if _LOCAL_NAME.search(name) else "unknown")
    elif kind == "parameter":
        role = "local_rank" if _LOCAL_NAME.search(name) else "unknown"
    elif kind == "spawn":
        role = "spawn"
    elif kind == "iterate":
        role = "iterate"
    elif kind == "binary":
        return _computed(value, present)
    return frozenset({role})


def _variable(name: str) -> str:
    if name in RANK:
        return "rank"
    if name in LOCAL_RANK:
        return "local_rank"
    if name in NODE_RANK:
        return "node_rank"
    return "world_size" if name in WORLD_SIZE else "unknown"


def _computed(value: Value, present: Present) -> frozenset[str]:
    left, right = (roles(part, present) for part in value.parts)
    if value.name == "%":
        if any(counts_gpus(part) for part in walk(value.parts[1])):
            return frozenset({"wrapped"})
        if left & {"rank", "local_rank", "spawn"}:
            # Modulo a number of ranks: which of this node's it is, but nothing about its GPUs.
            return frozenset({"local_rank" if "rank" in left else next(iter(left - {"constant"}))})
        return frozenset({"computed"})
    if value.name in ("+", "*", "-") and right <= {"constant"}:
        neutral = 1 if value.name == "*" else 0
        if value.parts[1].literal == neutral:
            return left
    return frozenset({"computed"})


def counts_gpus(value: Value) -> bool:
    """Whether a value is the number of GPUs that the process sees."""
    if value.kind == "env":
        return value.name in _GPU_VARIABLES
    return value.kind == "call" and value.name in _COUNTS


def asks_gpus(value: Value) -> bool:
    """Whether a value depends on how many GPUs the process sees."""
    return any(counts_gpus(part) for part in walk(value))


_CUDA = re.compile(r"cuda(?::(?P<index>\d*))?$")


def device_roles(value: Value, present: Present = unset) -> frozenset[str]:
    """What a device chooses by: as for a number, and ``plain`` for no choice at all."""
    found: set[str] = set()
    for item in alternatives(value, present):
        found |= _device_role(item, present)
    return frozenset(found) or frozenset({"unknown"})


def _device_role(value: Value, present: Present) -> frozenset[str]:
    if value.kind == "constant" and isinstance(value.literal, str):
        match = _CUDA.match(value.literal)
        if match is None:
            return frozenset({"cpu" if value.literal in ("cpu", "mps", "xpu") else "unknown"})
        return frozenset({"constant" if match["index"] else "plain"})
    if value.kind == "format":
        first, *rest = value.parts
        if first.is_constant and first.literal == "cuda:" and len(rest) == 1:
            return roles(rest[0], present)
        return frozenset({"unknown"})
    if value.kind == "call" and value.name == "torch.device":
        parts = value.parts or tuple(part for key, part in value.keywords if key == "type")
        index = parts[1] if len(parts) > 1 else value.keyword("index")
        if index is not None:
            return roles(index, present)
        return device_roles(parts[0], present) if parts else frozenset({"unknown"})
    if value.kind == "option" and value.parts:
        return device_roles(value.parts[0], present)
    if value.kind == "call" and value.name == "torch.cuda.current_device":
        return frozenset({"plain"})
    if value.kind == "call" and value.name == "":
        return frozenset({"unknown"})
    return _role(value, present)


def device_number(value: Value) -> Value:
    """The index in a device: x of ``"cuda:x"``, ``torch.device("cuda", x)`` and x itself."""
    if value.kind == "format" and len(value.parts) == 2:
        return value.parts[1]
    if value.kind == "call" and value.name == "torch.device":
        index = value.parts[1] if len(value.parts) > 1 else value.keyword("index")
        return index if index is not None else device_number(value.parts[0])
    return value


def is_rank(value: Value) -> bool:
    """Whether a value itself is a rank of some kind."""
    if value.kind == "env":
        return _variable(value.name) in ("rank", "local_rank", "node_rank")
    return value.kind == "spawn" or _role(value, unset) <= {"rank", "local_rank"}


_RANK_WORDS = re.compile(
    r"(^|_)(main|master|primary|chief|leader|root|proc_?id|coordinator|gpu|gpu_id|device_id)(_|$)|"
    r"rank|global_zero|is_?main|is_?master|should_save|is_saver|process_index",
    re.IGNORECASE,
)


def is_rank_name(name: str) -> bool:
    """Whether a name, as programs go, has to do with which rank this is."""
    return _RANK_WORDS.search(name) is not None


def names_rank(value: Value) -> bool:
    """Whether a test has to do with which rank this is: its values or, failing that, its names."""
    for part in walk(value):
        if is_rank(part):
            return True
        if part.kind in ("call", "name", "function", "attribute", "method", "option", "parameter"):
            if is_rank_name(part.name.rpartition(".")[2]):
                return True
        if part.kind == "item" and is_rank_name(str(part.parts[1].literal)):
            return True
    return False
