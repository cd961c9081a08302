"""The entrypoint: from the variables a batch script exports to a running process group.

``python -m slurmgen.ddp TARGET [ARGS...]`` runs ``train.py`` or ``package.module:function`` as
one rank. A training program may also use the functions below, under any launcher or none::

    from slurmgen import ddp

    ddp.init()
    model = ddp.wrap(model)
    loader = ddp.loader(dataset, global_batch_size=256)
    run = ddp.resume("checkpoints", model=model, optimizer=optimizer)
    for epoch in run.epochs(90):
        for batch in run.batches(loader):
            ...
    ddp.shutdown()

Needs the standard library and torch, nothing else of slurmgen's. torch is imported by the first
function that needs it, so that a wrong launch is refused before that import is paid for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slurmgen.ddp.group import (
        all_mean,
        device,
        init,
        is_main,
        local_rank,
        print0,
        rank,
        shutdown,
        world_size,
        wrap,
    )
    from slurmgen.ddp.train.checkpoints.single_file import load, save
    from slurmgen.ddp.train.data import loader
    from slurmgen.ddp.train.training import resume

__all__ = [
    "all_mean",
    "device",
    "init",
    "is_main",
    "load",
    "loader",
    "local_rank",
    "print0",
    "rank",
    "resume",
    "save",
    "shutdown",
    "world_size",
    "wrap",
]

_OTHER_HOMES = {
    "load": "train.checkpoints.single_file",
    "save": "train.checkpoints.single_file",
    "loader": "train.data",
    "resume": "train.training",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_OTHER_HOMES.get(name, 'group')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
