"""The ranks of a run and what they tell each other, on the CPU and beside the training."""

from __future__ import annotations

import ctypes
import io
import pickle
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from slurmgen.ddp import group

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta


class Peers:
    """All ranks, over a group of their own: the training's collectives go on meanwhile.

    Every rank must make it, and call the same methods in the same order, all from one thread at a
    time. Values are what ``torch.load`` reads without running code: tensors, numbers, strings,
    lists, tuples, dictionaries. group: of gloo, None where there is one rank. timeout: of each
    call, gloo's for None.

    torch's own collectives for objects read pickles, and need NumPy.
    """

    def __init__(self, timeout: timedelta | None = None) -> None:
        self.rank, self.count = group.rank(), group.world_size()
        self.group = (
            dist.new_group(backend="gloo", timeout=timeout) if group.several_ranks() else None
        )

    def gather(self, value: Any) -> list[Any] | None:
        """Each rank's `value` on rank 0, None on the others."""
        if self.group is None:
            return [value]
        mine, sizes = self._packed(value)
        parts = [torch.empty_like(mine) for _ in sizes] if self.rank == 0 else None
        dist.gather(mine, parts, dst=0, group=self.group)
        return None if parts is None else list(map(_value, parts, sizes))

    def gather_all(self, value: Any) -> list[Any]:
        """Each rank's `value` on every rank."""
        if self.group is None:
            return [value]
        mine, sizes = self._packed(value)
        parts = [torch.empty_like(mine) for _ in sizes]
        dist.all_gather(parts, mine, group=self.group)
        return list(map(_value, parts, sizes))

    def from_main(self, value: Any) -> Any:
        """Rank 0's `value` on every rank."""
        if self.group is None:
            return value
        mine = _bytes(value) if self.rank == 0 else torch.empty(0, dtype=torch.uint8)
        size = torch.tensor([mine.numel()])
        dist.broadcast(size, src=0, group=self.group)
        if self.rank != 0:
            mine = torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(mine, src=0, group=self.group)
        return value if self.rank == 0 else _value(mine, int(size))

    def _packed(self, value: Any) -> tuple[torch.Tensor, list[int]]:
        """`value` as bytes, as many as the longest has, and how many each rank's are."""
        mine = _bytes(value)
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.count)]
        dist.all_gather(sizes, torch.tensor([mine.numel()]), group=self.group)
        most = max(int(size) for size in sizes)
        padded = torch.zeros(most, dtype=torch.uint8)
        padded[: mine.numel()] = mine
        return padded, [int(size) for size in sizes]


def _bytes(value: Any) -> torch.Tensor:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)


def _value(data: torch.Tensor, size: int) -> Any:
    return torch.load(io.BytesIO(_content(data, size)), map_location="cpu", weights_only=True)


def _content(data: torch.Tensor, size: int) -> bytes:
    """The first `size` bytes of `data`, which is on the CPU; without NumPy."""
    return ctypes.string_at(data.data_ptr(), size)


@contextmanager
def objects_without_numpy() -> Iterator[None]:
    """Let torch's own collectives for objects do where there is no NumPy that suits torch."""
    original = getattr(distributed_c10d, "_tensor_to_object", None)
    try:
        torch.zeros(1).numpy()
    except RuntimeError:
        if original is not None:
            distributed_c10d._tensor_to_object = _tensor_to_object
    try:
        yield
    finally:
        if original is not None:
            distributed_c10d._tensor_to_object = original


def _tensor_to_object(tensor: torch.Tensor, tensor_size: Any, *_: Any) -> Any:
    tensor = tensor.cpu().contiguous()
    return pickle.loads(_content(tensor, int(tensor_size)))
