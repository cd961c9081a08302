"""The check for epochs that are all shuffled alike."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader, DistributedSampler

from slurmgen.ddp import log
from slurmgen.ddp.checks.patches import around

if TYPE_CHECKING:
    from collections.abc import Callable


class Epochs:
    """A DistributedSampler that trains a second epoch under the number of the first.

    Mistake: no ``sampler.set_epoch(epoch)``.
    Why: the order follows from seed and epoch, so every epoch has the same batches.
    Fix: call it before each epoch; ``ddp.loader`` needs no such call.

    Only of samplers that training batches come from, and only once a step was made in that second
    epoch: it may be a mere evaluation.
    """

    def __init__(self, *, speaks: bool, wake: Callable[[], None]) -> None:
        self._speaks = speaks
        self._wake = wake
        self._epochs: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._training: weakref.WeakSet[Any] = weakref.WeakSet()
        self._second: bool | None = None
        self._undo: Callable[[], None] | None = None

    def watch(self) -> Callable[[], None]:
        """From here on; returns what ends it."""

        def make(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def iterate(loader: Any) -> Any:
                try:
                    self._starts(sampler_of(loader))
                except Exception:
                    self.end()
                return original(loader)

            return iterate

        self._undo = around(DataLoader, "__iter__", make)
        return self.end

    def trains(self, sampler: Any) -> None:
        """A step was made with a batch of this one."""
        if isinstance(sampler, DistributedSampler):
            self._training.add(sampler)

    def stepped(self) -> None:
        """A step was made."""
        if self._second is None:
            return
        if self._second and self._speaks:
            log.warn(
                "DistributedSampler has the same epoch number in its second epoch, so every epoch"
                " has the same batches: call sampler.set_epoch(epoch) before each, or use"
                " ddp.loader, which counts by itself"
            )
        self.end()

    def end(self) -> None:
        """Look no more."""
        self._second = None
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _starts(self, sampler: Any) -> None:
        if (
            not isinstance(sampler, DistributedSampler)
            or not sampler.shuffle
            # One that orders in its own way may not need it.
            or type(sampler).__iter__ is not DistributedSampler.__iter__
        ):
            return
        before = self._epochs.get(sampler)
        self._epochs[sampler] = sampler.epoch
        if before is not None and sampler in self._training:
            self._second = before == sampler.epoch
            self._wake()


def sampler_of(loader: Any) -> Any:
    """What chooses the samples of a DataLoader, or of an iterator of one."""
    batches = getattr(loader, "batch_sampler", None) or getattr(loader, "_index_sampler", None)
    return getattr(batches, "sampler", None) or getattr(loader, "sampler", None) or batches
