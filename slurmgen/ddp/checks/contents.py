"""Whether the data sets of two ranks are the same one, as far as it shows without loading any."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import Dataset, IterableDataset, RandomSampler, SequentialSampler

from slurmgen.ddp.checks import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable

_ITEMS = 16
_PARTS = 16
_DEPTH = 4


def of_whole(dataset: Any, sampler: Any) -> str:
    """A digest of `dataset` where `sampler` goes through all of it, else "".

    "" too where its attributes don't hold something for each sample, such as tensors, paths or
    indices: what it reads may depend on the rank. No sample is loaded.
    """
    whole = type(sampler) is SequentialSampler or (
        type(sampler) is RandomSampler and not sampler.replacement
    )
    if not whole or isinstance(dataset, IterableDataset) or len(sampler) != len(dataset):
        return ""
    found: list[str] = []
    if not _walk(dataset, found, _DEPTH):
        return ""
    return fingerprint.digest(found)


def _walk(dataset: Any, found: list[str], depth: int) -> bool:
    """Note what `dataset` is made of; whether it holds enough to tell it from another one."""
    if depth == 0 or not hasattr(dataset, "__dict__"):
        return False
    count = len(dataset)
    tells = False
    inner = True
    for name, value in vars(dataset).items():
        for part in (value, *_parts(value)):
            if isinstance(part, Dataset):
                inner = _walk(part, found, depth - 1) and inner
                tells = tells or inner
            elif isinstance(part, str | bytes | int | os.PathLike):
                found.append(f"{name} {part!r}")
            elif _is_sequence(part) and len(part) == count:
                digest, telling = _sequence(part)
                found.append(f"{name} {count} {digest}")
                tells = tells or telling
    return tells and inner


def _parts(value: Any) -> Iterable[Any]:
    """A TensorDataset has its tensors in a tuple, many a data set its columns in a dict."""
    if isinstance(value, list | tuple | dict) and len(value) <= _PARTS:
        return value.values() if isinstance(value, dict) else value
    return ()


def _is_sequence(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value.ndim)
    if type(value).__module__.partition(".")[0] == "numpy":
        # Not imported for this: a program without it has no such arrays.
        return bool(getattr(value, "ndim", 0) > 0)
    return isinstance(value, list | tuple | range)


def _sequence(values: Any) -> tuple[str, bool]:
    """Of some items, evenly spread, and whether another data set would hardly have the same."""
    some = values[:: max(1, len(values) // _ITEMS)]
    if not isinstance(some, torch.Tensor | list | tuple | range):
        # An array of strings or objects is no tensor.
        some = some.tolist() if some.dtype.kind in "OSU" else torch.as_tensor(some)
    leaves = fingerprint.leaves([some] if isinstance(some, torch.Tensor) else list(some))
    return fingerprint.digest(leaves), any(telling for _, telling in leaves)
