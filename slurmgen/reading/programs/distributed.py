"""What a program does about its process group, its devices and its model."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.programs.roles import device_roles
from slurmgen.reading.programs.torch_names import (
    DATA_PARALLEL,
    DDP,
    FSDP,
    INIT_PROCESS_GROUP,
    SPAWN,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.reading.programs.facts import Call
    from slurmgen.reading.programs.program import Program
    from slurmgen.reading.programs.values import Value


class Group(NamedTuple):
    """``init_process_group(...)``; None for what isn't passed."""

    call: Call
    backend: Value | None
    init_method: Value | None
    world_size: Value | None
    rank: Value | None
    store: Value | None


class Device(NamedTuple):
    """A place where a CUDA device is chosen or used.

    how: ``set`` (set_device, set_default_device), ``context`` (``with torch.cuda.device(x)``),
    ``cuda`` (``.cuda(x)``), ``to`` (``.to(x)``), ``keyword`` (``device=x``), ``ids``
    (``device_ids=[x]``), ``group`` (``device_id=x``), ``make`` (``torch.device(x)``). device:
    None where no device is passed: the current one.
    """

    how: str
    device: Value | None
    call: Call


def groups(program: Program) -> list[Group]:
    """The calls of init_process_group."""
    return [
        Group(
            call,
            call.argument(0, "backend"),
            call.argument(1, "init_method"),
            call.argument(3, "world_size"),
            call.argument(4, "rank"),
            call.argument(5, "store"),
        )
        for call in program.called(INIT_PROCESS_GROUP)
    ]


_SETTERS = (
    "torch.cuda.set_device",
    "torch.accelerator.set_device_index",
    "torch.accelerator.set_device_idx",
    "torch.set_default_device",
)
_CONTEXTS = ("torch.cuda.device", "torch.accelerator.device_index")


def devices(program: Program) -> Iterator[Device]:
    """Every choice or use of a CUDA device, in source order."""
    for call in program.calls:
        if call.name in _SETTERS or call.name in _CONTEXTS:
            how = "set" if call.name in _SETTERS else "context"
            keyword = "index" if "index" in call.name or "idx" in call.name else "device"
            yield Device(how, call.argument(0, keyword), call)
        elif call.method == "cuda" and call.receiver is not None and not call.name:
            yield Device("cuda", call.argument(0, "device"), call)
        elif call.method in ("to", "to_empty") and call.receiver is not None and not call.name:
            given = call.argument(0, "device")
            if given is not None and (
                not device_roles(given) <= {"unknown"} or _may_be_device(call)
            ):
                yield Device("to", given, call)
        else:
            if call.name == "torch.device":
                yield Device("make", call.value, call)
            given = call.keyword("device")
            if given is not None and call.name.startswith("torch."):
                yield Device("keyword", given, call)
            given = call.keyword("device_id")
            if given is not None and call.name == INIT_PROCESS_GROUP:
                yield Device("group", given, call)
            ids = call.keyword("device_ids")
            if ids is not None and ids.kind == "tuple":
                for item in ids.parts:
                    yield Device("ids", item, call)


def _may_be_device(call: Call) -> bool:
    """Whether the name of what ``.to()`` is passed says that it is a device, of unknown value."""
    node = call.node.args[0] if call.node.args else None
    if node is None:
        node = next(k.value for k in call.node.keywords if k.arg == "device")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        # That of another tensor is no choice.
        owners = ("self", "args", "opt", "cfg", "config", "hparams", "trainer", "params")
        if node.value.id not in owners:
            return False
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    if isinstance(node, ast.Subscript):
        name = ast.unparse(node.slice)
    return any(word in name.lower() for word in ("device", "dev", "gpu", "rank"))


def spawns(program: Program) -> list[Call]:
    """The calls of torch.multiprocessing.spawn: (fn, args, nprocs)."""
    return list(program.called(SPAWN))


# They average whatever they are given.
REDUCTIONS = (
    "torch.distributed.all_reduce",
    "torch.distributed.all_gather",
    "torch.distributed.reduce",
    "torch.distributed.gather",
)
_WRAPPING = (
    DDP,
    FSDP,
    "torch.distributed.all_reduce",
    "torch.distributed.all_reduce_coalesced",
    "torch.distributed.all_gather",
    "torch.distributed.all_gather_into_tensor",
    "torch.distributed.reduce",
    "torch.distributed.reduce_scatter",
    "torch.distributed.reduce_scatter_tensor",
    "torch.distributed.gather",
    "torch.distributed.nn.",
    "torch.distributed.fsdp.",
    "torch.distributed._composable.",
    "torch.distributed.tensor.",
    "torch.distributed.pipelining.",
    "torch.distributed.rpc.",
    "torch.distributed.optim.",
    "torch.distributed.algorithms.",
    "apex.parallel.",
    "slurmgen.ddp.wrap",
)


def wraps(program: Program) -> list[Call]:
    """Where a model is wrapped, or something is averaged by hand."""
    return list(program.called(*_WRAPPING))


def data_parallels(program: Program) -> list[Call]:
    """Where nn.DataParallel wraps a model."""
    return list(program.called(DATA_PARALLEL))


def is_distributed(program: Program) -> bool:
    """Whether plain torch DDP or FSDP averages gradients here."""
    return bool(list(program.called(DDP, FSDP, "torch.distributed.fsdp.fully_shard")))
