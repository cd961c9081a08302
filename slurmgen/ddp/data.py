"""Batches that don't depend on the number of ranks."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from slurmgen.ddp import group

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


class GlobalBatchSampler(Sampler[list[int]]):
    """One rank's share of each global batch, as lists of indices.

    The order of an epoch follows from seed and epoch alone, and each global batch is cut into
    world_size consecutive shares; so the samples of global batch number n are the same however
    many ranks share it.
    """

    def __init__(
        self,
        length: int,
        global_batch_size: int,
        *,
        rank: int,
        world_size: int,
        shuffle: bool,
        seed: int,
        drop_last: bool,
    ) -> None:
        if global_batch_size < 1 or global_batch_size % world_size:
            nearest = max(round(global_batch_size / world_size), 1) * world_size
            raise ValueError(
                f"global_batch_size={global_batch_size} doesn't divide by {world_size} ranks:"
                f" take {nearest}, or another number of ranks"
            )
        if drop_last and length < global_batch_size:
            raise ValueError(
                f"{length} samples don't fill one global batch of {global_batch_size}: take a"
                " smaller global_batch_size, or drop_last=False"
            )
        self.length = length
        self.global_batch_size = global_batch_size
        self.rank = rank
        self.world_size = world_size
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0

    def _share(self, count: int) -> tuple[int, int]:
        return count * self.rank // self.world_size, count * (self.rank + 1) // self.world_size

    def __iter__(self) -> Iterator[list[int]]:
        if self.shuffle:
            generator = torch.Generator().manual_seed(_mix(self.seed, self.epoch))
            order = torch.randperm(self.length, generator=generator).tolist()
        else:
            order = list(range(self.length))
        for start in range(0, self.length, self.global_batch_size):
            batch = order[start : start + self.global_batch_size]
            if self.drop_last and len(batch) < self.global_batch_size:
                return
            low, high = self._share(len(batch))
            if low < high:
                yield batch[low:high]

    def __len__(self) -> int:
        full, rest = divmod(self.length, self.global_batch_size)
        low, high = self._share(rest)
        return full + int(not self.drop_last and low < high)


class Loader(DataLoader[T]):
    """A DataLoader that reshuffles at each iteration. Made by `loader`.

    epoch: the number of the epoch that the next iteration yields. It counts up by itself; set it
    to go on from a checkpoint. Ranks must start iterations alike, or they disagree about it.
    """

    def __init__(self, dataset: Dataset[T], batches: GlobalBatchSampler, **options: Any) -> None:
        self.epoch = 0
        self._batches = batches
        # Of its own: __iter__ draws from it, and would otherwise change the program's numbers.
        super().__init__(dataset, batch_sampler=batches, generator=torch.Generator(), **options)

    def __iter__(self) -> Any:
        batches = self._batches
        batches.epoch = self.epoch
        # Workers are seeded from it, and ranks must not all augment alike.
        self.generator.manual_seed(_mix(batches.seed, self.epoch, 1 + batches.rank))
        self.epoch += 1
        return super().__iter__()


def loader(
    dataset: Dataset[T],
    *,
    global_batch_size: int,
    shuffle: bool = True,
    seed: int = 0,
    drop_last: bool = True,
    **options: Any,
) -> Loader[T]:
    """Iterate over this rank's share of `dataset`, in batches of global_batch_size / world size.

    The global batches depend on seed, epoch and global_batch_size only, not on the number of
    ranks, and each iteration is the next epoch (`Loader.epoch`): no sampler to make, no
    ``set_epoch`` to forget. Workers' random numbers differ by seed, epoch and rank.

    drop_last: leave out an incomplete global batch, so that all ranks take as many steps.
    ``drop_last=False`` yields each sample exactly once, for evaluation: the last batch may be
    smaller on some ranks and missing on others, so use collectives after the loop and not in it.

    options: those of ``torch.utils.data.DataLoader``, except batch_size, sampler, batch_sampler
    and generator. Memory is pinned by default where there is a GPU.

    Raises ValueError where global_batch_size doesn't divide by the world size or exceeds the data
    set, TypeError where the data set has no length.
    """
    if not hasattr(dataset, "__len__"):
        raise TypeError(f"{type(dataset).__name__} has no length, so it can't be shared out")
    batches = GlobalBatchSampler(
        len(dataset),
        global_batch_size,
        rank=group.rank(),
        world_size=group.world_size(),
        shuffle=shuffle,
        seed=seed,
        drop_last=drop_last,
    )
    options.setdefault("pin_memory", group.device().type == "cuda")
    return Loader(dataset, batches, **options)


def _mix(*numbers: int) -> int:
    # A plain sum would give seed 0's second epoch and seed 1's first the same order.
    digest = hashlib.sha256(repr(numbers).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
