"""Batches that don't depend on the number of ranks."""

from __future__ import annotations

import hashlib
import random
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from slurmgen.ddp import group
from slurmgen.ddp.launch import signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")


class Batch(list[int]):
    """The indices of one batch, and what a worker's random numbers for it start from."""

    seed = 0


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
        self.skip = 0

    def describe(self) -> dict[str, Any]:
        """What has to be the same for a batch number to mean the same samples."""
        names = ("length", "global_batch_size", "shuffle", "seed", "drop_last")
        return {name: getattr(self, name) for name in names}

    def _share(self, count: int) -> tuple[int, int]:
        return count * self.rank // self.world_size, count * (self.rank + 1) // self.world_size

    def __iter__(self) -> Iterator[list[int]]:
        if self.shuffle:
            generator = torch.Generator().manual_seed(mix(self.seed, self.epoch))
            order = torch.randperm(self.length, generator=generator).tolist()
        else:
            order = list(range(self.length))
        first = self.skip * self.global_batch_size
        for start in range(first, self.length, self.global_batch_size):
            batch = order[start : start + self.global_batch_size]
            if self.drop_last and len(batch) < self.global_batch_size:
                return
            low, high = self._share(len(batch))
            if low < high:
                share = Batch(batch[low:high])
                share.seed = mix(self.seed, self.epoch, 1 + self.rank, start)
                yield share

    def __len__(self) -> int:
        full, rest = divmod(self.length, self.global_batch_size)
        low, high = self._share(rest)
        return full + int(not self.drop_last and low < high)


class Loader(DataLoader[T]):
    """A DataLoader that reshuffles at each iteration. Made by `loader`.

    epoch: the number of the epoch that the next iteration yields. It counts up by itself; set it
    to go on from a checkpoint. Ranks must start iterations alike, or they disagree about it.
    skip: how many of its batches to leave out, of that iteration alone; none of them is read.
    """

    def __init__(self, dataset: Dataset[T], batches: GlobalBatchSampler, **options: Any) -> None:
        self.epoch = 0
        self.skip = 0
        self._batches = batches
        if options.get("num_workers", 0):
            options["worker_init_fn"] = WorkerInit(options.get("worker_init_fn"))
        # Of its own: __iter__ draws from it, and would otherwise change the program's numbers.
        super().__init__(dataset, batch_sampler=batches, generator=torch.Generator(), **options)

    def __iter__(self) -> Any:
        batches = self._batches
        batches.epoch = self.epoch
        # Workers are seeded from it, and ranks must not all augment alike.
        self.generator.manual_seed(mix(batches.seed, self.epoch, 1 + batches.rank))
        batches.skip = self.skip
        self.epoch += 1
        self.skip = 0
        if not self.num_workers:
            return super().__iter__()
        # In the workers alone; DataLoader refuses an assignment.
        dataset = self.dataset
        self.__dict__["dataset"] = _SeededDataset(dataset)
        try:
            return super().__iter__()
        finally:
            self.__dict__["dataset"] = dataset

    def describe(self) -> dict[str, Any]:
        """What has to be the same for a batch number to mean the same samples."""
        return self._batches.describe()


class WorkerInit:
    """A worker_init_fn that keeps the job's signals to the ranks, then calls the program's own."""

    def __init__(self, own: Callable[[int], None] | None) -> None:
        self.own = own

    def __call__(self, worker: int) -> None:
        signals.ignore_in_child()
        if self.own is not None:
            self.own(worker)


class _SeededDataset(Dataset[T]):
    """A data set in a worker, whose random numbers follow from the batch alone.

    So a run that goes on in the middle of an epoch draws what it would have drawn, without
    reading the batches before. In everything else it is the data set itself.
    """

    def __init__(self, inner: Dataset[T]) -> None:
        self.__dict__["inner"] = inner

    def __reduce__(self) -> tuple[type, tuple[Dataset[T]]]:
        return type(self), (self.__dict__["inner"],)

    def __getitems__(self, indices: list[int]) -> list[T]:
        if isinstance(indices, Batch):
            torch.manual_seed(indices.seed)
            random.seed(indices.seed)
            if numpy := sys.modules.get("numpy"):
                numpy.random.seed(indices.seed % 2**32)
        inner = self.__dict__["inner"]
        # As torch's own fetcher does.
        if getattr(inner, "__getitems__", None):
            return list(inner.__getitems__(indices))
        return [inner[index] for index in indices]

    def __getitem__(self, index: int) -> T:
        item: T = self.__dict__["inner"][index]
        return item

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["inner"], name, value)


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


def mix(*numbers: int) -> int:
    """A seed from several numbers."""
    # A plain sum would give seed 0's second epoch and seed 1's first the same order.
    digest = hashlib.sha256(repr(numbers).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
