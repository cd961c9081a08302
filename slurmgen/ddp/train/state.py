"""What a checkpoint holds, and how it gets back to where it was."""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import random
import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN = (str, bytes, int, float, bool, complex, type(None), torch.dtype, torch.device, torch.Size)


def unwrap(item: Any) -> Any:
    """The module inside DistributedDataParallel and ``torch.compile``; others as they are."""
    while True:
        if isinstance(item, DistributedDataParallel):
            item = item.module
        elif isinstance(item, torch.nn.Module) and hasattr(item, "_orig_mod"):
            item = item._orig_mod
        else:
            return item


def parallel_in(item: Any) -> DistributedDataParallel | None:
    """The DistributedDataParallel that `item` is, below ``torch.compile`` too."""
    while isinstance(item, torch.nn.Module):
        if isinstance(item, DistributedDataParallel):
            return item
        item = getattr(item, "_orig_mod", None)
    return None


def is_shared(item: Any) -> bool:
    """Whether it is the same on every rank, as DDP keeps it, so that rank 0's serves all."""
    return isinstance(
        item,
        (
            torch.nn.Module,
            torch.optim.Optimizer,
            torch.optim.lr_scheduler.LRScheduler,
            torch.optim.lr_scheduler.ReduceLROnPlateau,
            torch.amp.GradScaler,
        ),
    )


def check(name: str, item: Any) -> None:
    """Raise TypeError where `item` can't be saved and put back."""
    if isinstance(item, torch.Tensor):
        if item.requires_grad:
            raise TypeError(f"{name} is a tensor that requires grad: pass its module instead")
    elif not isinstance(item, dict) and not (
        hasattr(item, "state_dict") and hasattr(item, "load_state_dict")
    ):
        raise TypeError(
            f"{name} is {type(item).__name__}: a checkpoint holds modules, optimizers, schedulers,"
            " tensors, dictionaries, and what has state_dict() and load_state_dict()"
        )
    if type(item).__name__ == "ZeroRedundancyOptimizer":
        raise TypeError(
            f"{name} is sharded over the ranks in a way of its own: shard the model instead, with"
            " ddp.wrap(model, shard=[...])"
        )
    if isinstance(item, torch.nn.Module) and any(
        type(module).__name__ == "FullyShardedDataParallel" for module in item.modules()
    ):
        raise TypeError(
            f"{name} is wrapped in FullyShardedDataParallel, whose flat parameters depend on the"
            " number of ranks: use fully_shard, or ddp.wrap(model, shard=[...])"
        )


def check_values(name: str, item: Any) -> None:
    """Raise TypeError where `item` holds what ``torch.load`` refuses to read back."""
    item = unwrap(item)
    values = item if isinstance(item, torch.Tensor | dict) else item.state_dict()
    file = io.BytesIO()
    try:
        torch.save(_skeleton(values), file)
        file.seek(0)
        torch.load(file, weights_only=True)
    except Exception as error:
        raise TypeError(
            f"{name} holds what a checkpoint can't: {str(error).splitlines()[0]}; keep numbers,"
            " strings, lists, tuples, dictionaries and tensors in it"
        ) from error


Pool = dict[Any, torch.Tensor]
"""The memory of an earlier capture of the same item, to be written over."""


def capture(item: Any, pool: Pool | None = None) -> Any:
    """The state of `item`, on the CPU and of its own: nothing that happens later changes it.

    pool: filled, and used again by the next call, whose result then takes the place of this one's.
    """
    item = unwrap(item)
    values = item if isinstance(item, torch.Tensor | dict) else item.state_dict()
    copies = _Copies(pool)
    captured = copies.of(values)
    if pool is not None:
        pool.clear()
        pool.update(copies.made)
    return captured


def restore(item: Any, state: Any, *, give: bool = False) -> None:
    """Put what `capture` returned back into `item`.

    give: let `item` keep the tensors of `state`, which nobody else needs.
    """
    item = unwrap(item)
    if isinstance(item, torch.Tensor):
        if item.shape != state.shape:
            raise ValueError(
                f"its shape is {tuple(item.shape)}, but {tuple(state.shape)} was saved"
            )
        with torch.no_grad():
            item.copy_(state)
        return
    # Some keep what they are given.
    state = state if give else copy.deepcopy(state)
    if isinstance(item, dict):
        item.clear()
        item.update(state)
    else:
        item.load_state_dict(state)


def snapshot(value: Any) -> Any:
    """A copy of `value` whose tensors are on the CPU; what shares memory still does."""
    return _Copies(None).of(value)


class _Copies:
    def __init__(self, pool: Pool | None) -> None:
        self._pool = pool
        self.made: Pool = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value.detach())
        if isinstance(value, _PLAIN):
            return value
        if type(value) in (list, tuple, set):
            return type(value)(self.of(item) for item in value)
        if isinstance(value, dict):
            # Of the same kind: a module's has attributes, and a Counter is no plain dictionary.
            copied = {} if type(value) is dict else copy.copy(value)
            for key, item in value.items():
                copied[key] = self.of(item)
            return copied
        return copy.deepcopy(value)

    def _tensor(self, value: torch.Tensor) -> torch.Tensor:
        if value.layout != torch.strided or not value.numel():
            return value.to("cpu", copy=True)
        key = (value.device, value.data_ptr(), value.shape, value.stride(), value.dtype)
        if key not in self.made:
            # Fresh memory costs as much as the copy: the kernel clears it page by page.
            old = None if self._pool is None else self._pool.get(key)
            if old is None:
                pinned = self._pool is not None and value.is_cuda
                old = torch.empty_like(value, device="cpu", pin_memory=pinned)
            self.made[key] = old.copy_(value)
        return self.made[key]


def _skeleton(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty(0)
    if type(value) in (list, tuple, set):
        return type(value)(map(_skeleton, value))
    if isinstance(value, dict):
        copied = {} if type(value) is dict else copy.copy(value)
        for key, item in value.items():
            copied[key] = _skeleton(item)
        return copied
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two captured states are equal to the bit."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return bool(one.dtype == other.dtype and torch.equal(one, other))
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def capture_random(device: torch.device) -> dict[str, Any]:
    """The states of this process's random number generators."""
    version, words, gauss = random.getstate()
    state: dict[str, Any] = {
        "python": [version, list(words), gauss],
        "torch": torch.get_rng_state(),
    }
    if numpy := sys.modules.get("numpy"):
        name, keys, *rest = numpy.random.get_state()
        state["numpy"] = [name, [int(key) for key in keys], *rest]
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def restore_random(state: Mapping[str, Any], device: torch.device) -> None:
    """Put back what `capture_random` returned."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    torch.set_rng_state(state["torch"])
    if "numpy" in state:
        with contextlib.suppress(ImportError):
            name, keys, *rest = state["numpy"]
            importlib.import_module("numpy").random.set_state((name, keys, *rest))
    if "cuda" in state and device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"], device)
