"""Where in its loader a run is, and how a loader gets back to there."""

from __future__ import annotations

from typing import Any

import torch

from slurmgen.ddp import group
from slurmgen.ddp.failure import LaunchError
from slurmgen.ddp.train.data import Loader, WorkerInit, mix


class LoaderPosition:
    """Makes loaders yield in a later life what they would have yielded in this one.

    seed: what generators that the loader lacks are seeded from, with the rank. loader: what has
    to be the same for a batch number to mean the same samples. saved, generator_states: those of
    a checkpoint, until they are used.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.loader: dict[str, Any] | None = None
        self.saved: dict[str, Any] | None = None
        self.generator_states: list[torch.Tensor] = []
        self._generators: list[torch.Generator] = []

    def capture_generators(self, *, unfinished: bool) -> list[torch.Tensor]:
        """What the loader shuffles by: in the middle of an epoch, what this one started from."""
        if unfinished:
            return self.generator_states
        return [generator.get_state() for generator in self._generators]

    def take_up(
        self, loader: Any, *, epoch: int, skip: int, length: int | None, restoring: bool
    ) -> None:
        """Make `loader` yield what `epoch` yields, from the batch numbered `skip` on.

        restoring: whether the run goes on from a checkpoint right now. Raises LaunchError where
        the batches before `skip` were another loader's.
        """
        if isinstance(loader, Loader):
            self.loader = loader.describe()
        else:
            self.loader = {"batches": length, "world_size": group.world_size()}
        saved, self.saved = self.saved, None
        if skip and saved is not None and saved != self.loader:
            changed = ", ".join(
                f"{name} {saved.get(name)} -> {self.loader.get(name)}"
                for name in {**saved, **self.loader}
                if saved.get(name) != self.loader.get(name)
            )
            raise LaunchError(
                f"the checkpoint is {skip} batches into an epoch of another loader ({changed})",
                why="some samples would be seen twice in this epoch and others not at all",
                fix="go on with the loader as it was, at least until the epoch is over; one of"
                " ddp.loader doesn't depend on the number of ranks",
            )
        if isinstance(loader, Loader):
            loader.epoch, loader.skip = epoch, 0 if skip == length else skip
            return
        if getattr(loader, "num_workers", 0):
            own = loader.worker_init_fn
            if not isinstance(own, WorkerInit):
                loader.worker_init_fn = WorkerInit(own)
        sampler = getattr(loader, "sampler", None)
        inner = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
        holders = [one for one in (loader, sampler, inner) if one is not None]
        for holder in holders:
            if hasattr(holder, "set_epoch"):
                holder.set_epoch(epoch)
        self._take_generators([one for one in holders if hasattr(one, "generator")], restoring)

    def _take_generators(self, holders: list[Any], restoring: bool) -> None:
        for number, holder in enumerate(holders):
            if holder.generator is None:
                # From the global one it would take numbers that are the model's, and shuffle
                # differently after a restart.
                holder.generator = torch.Generator().manual_seed(
                    mix(self.seed, group.rank(), number)
                )
        unique = {id(holder.generator): holder.generator for holder in holders}
        self._generators = list(unique.values())
        if len(self.generator_states) == len(self._generators) and restoring:
            for generator, saved in zip(self._generators, self.generator_states, strict=True):
                generator.set_state(saved)
        self.generator_states = [generator.get_state() for generator in self._generators]
