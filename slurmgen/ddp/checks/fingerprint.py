"""Few numbers that tell tensors apart. Draws nothing and changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import torch

_LEAVES = 32
_ELEMENTS = 65536
_TELLING = 8
_NORM_ELEMENTS = 4096
# Odd, with bits all over: the multiplier of Knuth's generator MMIX.
_FACTOR = 6364136223846793005


def leaves(batch: Any) -> list[tuple[str, bool]]:
    """For each tensor or plain value in `batch`: a digest, and whether it is telling.

    Not telling is what has the same value nearly everywhere, as a mask or padding has: two
    batches may share it by chance. Large tensors are sampled evenly.
    """
    found: list[tuple[str, bool]] = []
    _walk(batch, found)
    return found


def _walk(value: Any, found: list[tuple[str, bool]]) -> None:
    if len(found) >= _LEAVES:
        return
    if isinstance(value, torch.Tensor):
        found.append(_tensor(value))
    elif isinstance(value, Mapping):
        for item in value.values():
            _walk(item, found)
    elif isinstance(value, list | tuple):
        if value and all(isinstance(item, str | bytes | int | float) for item in value):
            found.append((digest(value), len(set(value)) >= _TELLING))
            return
        for item in value:
            _walk(item, found)
    elif isinstance(value, str | bytes | int | float):
        found.append((digest(value), False))


def _tensor(tensor: torch.Tensor) -> tuple[str, bool]:
    shape = f"{tuple(tensor.shape)} {tensor.dtype}"
    if tensor.layout != torch.strided or tensor.is_quantized or not tensor.numel():
        return shape, False
    numbers = _some(tensor, _ELEMENTS)
    if numbers.is_floating_point():
        numbers = numbers.double().view(torch.int64)
    numbers = numbers.to(torch.int64)
    others = torch.stack([(numbers != numbers[place]).sum() for place in (0, len(numbers) // 2)])
    # Wraps around, which is defined and the same everywhere.
    weights = torch.arange(len(numbers), device=numbers.device) * 2 * _FACTOR + 1
    mixed = (numbers ^ (numbers >> 29)) * _FACTOR
    total, least = torch.stack([((mixed ^ (mixed >> 32)) * weights).sum(), others.min()]).tolist()
    return f"{shape} {total}", least >= _TELLING


def digest(value: object) -> str:
    """Of a plain value, the same in every process."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def norms(tensors: list[torch.Tensor]) -> list[tuple[float, float]]:
    """The norm and the sum of each of `tensors`, which are on one device; large ones sampled."""
    pairs = []
    for tensor in tensors:
        numbers = _some(tensor, _NORM_ELEMENTS).double()
        pairs.append(torch.stack([numbers.norm(), numbers.sum()]))
    return [(norm, total) for norm, total in torch.stack(pairs).tolist()] if pairs else []


def _some(tensor: torch.Tensor, limit: int) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    flat = tensor.reshape(-1)
    return flat[:: -(-len(flat) // limit)] if len(flat) > limit else flat
