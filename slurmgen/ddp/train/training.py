"""A training loop that goes on where it was, after whatever ended it."""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from slurmgen.ddp import files, group, log
from slurmgen.ddp.failure import EXIT_FAILED, EXIT_LAUNCH, LaunchError
from slurmgen.ddp.launch import signals
from slurmgen.ddp.measure import usage
from slurmgen.ddp.train import state
from slurmgen.ddp.train.checkpoints.loading import OWN_KEY, read
from slurmgen.ddp.train.checkpoints.saving import saver_for
from slurmgen.ddp.train.checkpoints.store import Store
from slurmgen.ddp.train.consensus import Consensus
from slurmgen.ddp.train.data import Loader, mix
from slurmgen.ddp.train.items import Items
from slurmgen.ddp.train.loader_position import LoaderPosition
from slurmgen.ddp.train.peers import Peers
from slurmgen.ddp.train.progress import Progress
from slurmgen.ddp.watch import supervised

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slurmgen.ddp.train.items import Saved

T = TypeVar("T")

_FORMAT = 1


def resume(
    folder: str | os.PathLike[str] | None,
    *,
    every_minutes: float | None = 10.0,
    every_steps: int | None = None,
    keep: int = 3,
    **items: Any,
) -> Run:
    """Put `items` back to where the last checkpoint in `folder` has them, and keep them saved.

    items: what the run needs to go on, each under a name of its own: the model as `wrap` returned
    it, the optimizer, scheduler, scaler; tensors and dictionaries, put back in place, and whatever
    has ``state_dict()`` and ``load_state_dict()``. Modules, optimizers, schedulers and scalers are
    rank 0's; everything else is saved for each rank, as are the random number generators.

    Where any of them is sharded over the ranks (DTensor, as ``fully_shard`` makes it), a checkpoint
    is a folder instead of a file. All ranks write it, each what it has, by
    torch.distributed.checkpoint, and any number of ranks can read it back; buffers, which FSDP
    doesn't keep the same, are then rank 0's.

    Loop over `Run.epochs` and `Run.batches` then::

        run = ddp.resume("checkpoints", model=model, optimizer=optimizer)
        for epoch in run.epochs(90):
            for batch in run.batches(loader):
                ...

    A checkpoint is written every so many minutes or steps, in the background; at the signal that
    the job asked for and at TERM, after which the process ends with status 75 (saved, requeue
    me); and after the last epoch. The last `keep` stay. One that is damaged is noticed and the
    one before is used. Where writing fails, the training goes on.

    Every rank must call it, after `init`. Exits with 78 where going on would be wrong: none of the
    checkpoints can be read, or another number of ranks would need what it doesn't have. Raises
    TypeError for items that can't be saved. Without a folder (None) the loop is the same, but
    nothing is read, saved or stopped.
    """
    return Run(
        None if folder is None else Store(folder, keep),
        items,
        every_seconds=(every_minutes or 0) * 60,
        every_steps=every_steps,
    )


class Run:
    """Where a training is: made by `resume`.

    step: batches done since the very beginning. epoch, batch: the number of the epoch, and of its
    next batch. resumed: whether there was a checkpoint.
    """

    def __init__(
        self,
        store: Store | None,
        items: dict[str, Any],
        *,
        every_seconds: float,
        every_steps: int | None,
    ) -> None:
        self.step = 0
        self.epoch = 0
        self.batch = 0
        self.resumed = False
        if OWN_KEY in items:
            raise TypeError(f"the name {OWN_KEY} is taken: call the item something else")
        self._device = group.device()
        self._kept = Items(items, self._device)
        self._peers = Peers()
        self._off = store is None
        self._store = store or Store(os.devnull, 1)
        self._saver = saver_for(self._kept, self._store, self._peers)
        self._writer = self._saver.writer
        self._every_seconds, self._every_steps = every_seconds, every_steps
        self._consensus = Consensus(self._peers.group)
        self._length: int | None = None
        self._position = LoaderPosition(torch.initial_seed())
        self._random: dict[str, Any] | None = None
        self._begun = self._driven = self._in_body = self._wanted = False
        self._busy_said = self._finished = False
        try:
            if not self._off:
                signals.install(os.environ)
                self._load()
        except LaunchError as error:
            raise _exit(error) from None
        self._saved: tuple[int, int, int] | None = self._place() if self.resumed else None
        self._saved_step = self.step
        self._clock = time.monotonic()
        self._meter = usage.meter()
        self._progress = Progress(self._meter) if group.is_main() else None
        group.on_shutdown(self._writer.wait)
        if not self._off:
            signals.begin()

    # --- the loop ---------------------------------------------------------------------

    def epochs(self, count: int) -> Iterator[int]:
        """The numbers of the epochs that are left of `count`, from 0.

        A run that goes on in the middle of an epoch yields its number again; `batches` then
        yields the rest. After the last one everything is saved.
        """
        self._driven = True
        if self._progress:
            self._progress.epochs = count
        while self.epoch < count:
            yield self.epoch
            self._next_epoch()
        self._driven = False
        self._consensus.drain()
        if self._saved != self._place():
            self.save()
        self._writer.wait()

    def batches(self, loader: Iterable[T], *, accumulate: int = 1) -> Iterator[T]:
        """The batches of `loader` that are left of this epoch.

        What the loop's body has done with one is a step, after which the run may be saved and
        stopped; `batch` counts them, also after a restart. A loader of `ddp.loader` goes on
        without reading what was done; any other is made to shuffle as it did, then read up to
        there.

        accumulate: how many batches make one optimizer step, so that no checkpoint falls between
        them, where gradients would be lost.
        """
        if self._begun:
            if self._driven:
                raise RuntimeError("run.batches() twice in one epoch: count each as an epoch")
            self._next_epoch()
        self._begun = True
        skip = self.batch
        # An epoch that was done is over, whatever another number of ranks makes of its length.
        finished, self._finished = self._finished, False
        self._length = skip if finished else _length(loader)
        try:
            self._position.take_up(
                loader,
                epoch=self.epoch,
                skip=0 if finished else skip,
                length=self._length,
                restoring=self._random is not None,
            )
        except LaunchError as error:
            raise _exit(error) from None
        if self._agree_to_start():
            self._stop()
        iterator: Iterator[T] | None = None
        try:
            self._meter.begin()
            if skip == 0 or skip != self._length:
                iterator = iter(loader)
                if skip and not isinstance(loader, Loader):
                    for _ in islice(iterator, skip):
                        pass
                    self._meter.begin()
            if self._random is not None:
                # As late as can be: what the program drew since it started doesn't count.
                state.restore_random(self._random, self._device)
                self._random = None
            if iterator is None:
                return
            if self._progress:
                self._progress.epoch_begins()
            for batch in iterator:
                self._meter.waited()
                self._in_body = True
                yield batch
                self._in_body = False
                self._meter.stepped(self._kept.parallels.values())
                self.step += 1
                self.batch += 1
                supervised.progress()
                if self._progress:
                    self._progress.step_done(self.step, self.epoch, self.batch, self._length)
                if self.batch % accumulate == 0 and not self._off:
                    self._between_steps()
                self._meter.begin()
            if self._progress:
                self._progress.epoch_done(self.epoch)
            # Without a length, only now it is known that nothing is left.
            self._length = self.batch
        finally:
            self._in_body = False
            # A traceback that holds this frame mustn't hold the workers.
            iterator = None

    def save(self) -> None:
        """Write a checkpoint, besides those that are due. Every rank must call it.

        In the body of `batches` it is written once the body is done, when the step is complete;
        elsewhere at once.
        """
        if self._in_body:
            self._wanted = True
        elif not self._off:
            self._save(wait=True)

    # --- stopping ---------------------------------------------------------------------

    def _between_steps(self) -> None:
        self._kept.orders_recorded()
        due = (
            self._every_seconds > 0
            and group.is_main()
            and time.monotonic() - self._clock >= self._every_seconds
        )
        stop, save = self._consensus.tick(stop=signals.received() is not None, save=due)
        if stop:
            self._stop()
        wanted, self._wanted = self._wanted, False
        if wanted:
            self._save(wait=True)
        elif save or (self._every_steps and self.step - self._saved_step >= self._every_steps):
            self._save(wait=False)

    def _stop(self) -> None:
        self._consensus.drain()
        saved = self._saved == self._place() and self._written()
        if not saved and not self._save(wait=True):
            raise SystemExit(EXIT_FAILED)
        # From here on a signal could only spoil the exit status.
        signals.mark_stopped()
        if group.is_main():
            self._note_progress()
            received = signals.received()
            cause = received.name if received else "a signal to another rank"
            log.note(
                f"stopped by {cause} after step {self.step}, which is saved in"
                f" {self._store.folder}; exit status {signals.EXIT_STOPPED}"
            )
        group.shutdown()
        raise SystemExit(signals.EXIT_STOPPED)

    def _note_progress(self) -> None:
        """For the batch script, which ends a job whose restarts get nowhere."""
        path = os.environ.get("SLURMGEN_PROGRESS")
        if path:
            with suppress(OSError):
                files.replace(path, f"step {self.step}\n")

    def _agree_to_start(self) -> bool:
        """Whether to stop before this epoch; checks that all ranks are in the same place."""
        asked = signals.received() is not None and not self._off
        mine = (*self._place(), self._length, asked)
        everyone = self._peers.gather_all(mine)
        for rank, other in enumerate(everyone):
            if other[:4] != everyone[0][:4]:
                raise RuntimeError(
                    f"rank {rank} is at step, epoch, batch {other[:3]} with a loader of"
                    f" {other[3]} batches, rank 0 at {everyone[0][:3]} with {everyone[0][3]}:"
                    " ranks must take as many steps (ddp.loader, or drop_last=True)"
                )
        return any(other[4] for other in everyone)

    # --- saving and loading -----------------------------------------------------------

    def _save(self, *, wait: bool) -> bool:
        """Start writing a checkpoint, or with `wait` finish it; then whether it is complete."""
        self._saved, self._saved_step, self._clock = self._place(), self.step, time.monotonic()
        unfinished = self._begun and self.batch and self.batch != self._length
        own = {
            "random": self._random or state.capture_random(self._device),
            "seed": self._position.seed,
            "generators": self._position.capture_generators(unfinished=bool(unfinished)),
        }
        started = self._saver.save(self.step, own, self._common, wait=wait)
        if wait:
            return self._written()
        if not started and not self._busy_said and group.is_main():
            self._busy_said = True
            log.warn(
                f"no checkpoint of step {self.step}: the one before is still"
                " being written; ask for fewer (every_steps, every_minutes)"
            )
        return True

    def _written(self) -> bool:
        """Whether the checkpoint of this step is complete: rank 0's word."""
        self._writer.wait()
        return bool(self._peers.from_main(self._writer.last == self.step))

    def _common(self, ranks: list[Any]) -> dict[str, Any]:
        return {
            OWN_KEY: {
                "format": _FORMAT,
                "torch": str(torch.__version__),
                "task": _task(),
                "step": self.step,
                "epoch": self.epoch,
                "batch": self.batch,
                "finished": bool(self.batch) and self.batch == self._length,
                "loader": self._position.loader,
                "orders": self._kept.orders(),
                "world_size": group.world_size(),
                "ranks": ranks,
            }
        }

    def _load(self) -> None:
        if group.is_main():
            self._store.clean()
            why = files.in_others_hands(self._store.folder)
            if why:
                log.warn(f"a checkpoint there may be somebody else's: {why}")
        saved = read(self._store, self._peers)
        if saved is None:
            if group.is_main():
                log.note(f"no checkpoint in {self._store.folder}: training starts at step 0")
            self._kept.record_orders()
            return
        own = saved.common.pop(OWN_KEY)
        if own["format"] != _FORMAT:
            raise LaunchError(
                f"the checkpoint in {self._store.folder} has format {own['format']}",
                why=f"this slurmgen writes and reads format {_FORMAT}",
                fix="go on with the version of slurmgen that wrote it, or in another folder",
            )
        if own["task"] and _task() and own["task"] != _task():
            raise LaunchError(
                f"{self._store.folder} is the folder of array task {own['task']}",
                why=f"this is {_task()}, which would go on with the other one's training",
                fix="a folder for each task: put $SLURM_ARRAY_TASK_ID into its name",
            )
        notes = self._kept.rehearse(own["orders"])
        notes += self._kept.restore(saved, self._peers, self._store.folder)
        notes += self._restore_own(saved, own["step"])
        self.step, self.epoch, self.batch = own["step"], own["epoch"], own["batch"]
        self._position.saved = own["loader"]
        self._finished = own["finished"]
        self._length = self.batch if self._finished else None
        self.resumed = True
        self._writer.last = self.step
        if group.is_main():
            log.note(
                f"goes on after step {self.step} (epoch {self.epoch + 1}, batch {self.batch})"
                f" of {self._store.folder}"
            )
            for note in notes:
                log.warn(f"{note}")

    def _restore_own(self, saved: Saved, step: int) -> list[str]:
        """Put back what is this rank's and no item's; returns warnings."""
        rank, world_size = group.rank(), group.world_size()
        same_ranks = saved.ranks == world_size
        own = saved.own(rank if same_ranks else 0)
        self._position.seed = own["seed"]
        if same_ranks:
            self._random = own["random"]
            self._position.generator_states = own["generators"]
            state.restore_random(self._random, self._device)
            return []
        seed = mix(own["seed"], step, world_size, rank)
        torch.manual_seed(seed)
        random.seed(seed)
        return [f"{saved.ranks} rank(s) wrote it and {world_size} go on: random numbers start anew"]

    # --- where it is ------------------------------------------------------------------

    def _place(self) -> tuple[int, int, int]:
        return self.step, self.epoch, self.batch

    def _next_epoch(self) -> None:
        self.epoch += 1
        self.batch = 0
        self._begun = False


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None


def _task() -> str:
    """The array task this is, "" outside an array."""
    job, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{job}_{task}" if job and task else ""


def _exit(error: LaunchError) -> SystemExit:
    if group.is_main():
        log.refuse(error)
    return SystemExit(EXIT_LAUNCH)
