"""The check for ``torch.nn.DataParallel``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from slurmgen.ddp import log
from slurmgen.ddp.checks.patches import around

if TYPE_CHECKING:
    from collections.abc import Callable


class DataParallel:
    """``torch.nn.DataParallel``, alone with several GPUs or on one of several ranks.

    Mistake: taking it for what makes several ranks train together.
    Why: it splits a batch over the GPUs of one process, one Python for all of them, and knows
    nothing of other ranks: with several, each trains a model of its own, and all on the same GPUs.
    Fix: a rank per GPU and ``ddp.wrap``.
    """

    def __init__(self, rank: int, world_size: int) -> None:
        self._rank = rank
        self._world_size = world_size
        self._undo: Callable[[], None] | None = None

    def watch(self) -> Callable[[], None]:
        """From here on; returns what ends it."""

        def make(original: Callable[..., None]) -> Callable[..., None]:
            def init(module: Any, *args: Any, **options: Any) -> None:
                original(module, *args, **options)
                self._made(len(module.device_ids))

            return init

        self._undo = around(torch.nn.DataParallel, "__init__", make)
        return self.end

    def end(self) -> None:
        """Look no more."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _made(self, gpus: int) -> None:
        if self._rank == 0 and (text := advice(self._world_size, gpus)):
            log.warn(text)
        self.end()


def advice(world_size: int, gpus: int) -> str:
    """What to say about a DataParallel over so many GPUs, "" for nothing."""
    if world_size > 1:
        return (
            f"nn.DataParallel on each of {world_size} ranks: it doesn't average gradients between"
            " them, and takes every GPU that its rank sees; use DistributedDataParallel"
            " (model = ddp.wrap(model)) in its place"
        )
    if gpus > 1:
        return (
            f"nn.DataParallel drives {gpus} GPUs from one process, which is slower than a rank for"
            f" each: start {gpus} tasks (--ntasks-per-node={gpus}) and use"
            " DistributedDataParallel (model = ddp.wrap(model))"
        )
    return ""
