"""A training loop that goes on where it was, after whatever ended it."""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist

from slurmgen.ddp import group, log, signals, state, supervised
from slurmgen.ddp.consensus import Consensus
from slurmgen.ddp.data import Loader, WorkerInit, mix
from slurmgen.ddp.failure import EXIT_FAILED, EXIT_LAUNCH, LaunchError
from slurmgen.ddp.store import DamagedError, Store, Writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slurmgen.ddp.store import Checkpoint

T = TypeVar("T")

_FORMAT = 1
_OWN_KEY = "slurmgen"


def resume(
    folder: str | os.PathLike[str] | None,
    *,
    every_minutes: float | None = 10.0,
    every_steps: int | None = None,
    keep: int = 3,
    **items: Any,
) -> Run:
    """Put `items` back to where the last checkpoint in `folder` has them, and keep them saved.

    items: what the run needs to go on, each under a name of its own: the model as DDP wrapped it,
    the optimizer, scheduler, scaler; tensors and dictionaries, put back in place, and whatever has
    ``state_dict()`` and ``load_state_dict()``. Modules, optimizers, schedulers and scalers are
    rank 0's; everything else is saved for each rank, as are the random number generators.

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
        if _OWN_KEY in items:
            raise TypeError(f"the name {_OWN_KEY} is taken: call the item something else")
        self._device = group.device()
        self._several = group.several_ranks()
        # Of its own, on the CPU: the training's own collectives go on meanwhile.
        self._group = dist.new_group(backend="gloo") if self._several else None
        self._off = store is None
        self._items = items
        self._shared = {name for name, item in items.items() if state.is_shared(item)}
        self._store = store or Store(os.devnull, 1)
        self._writer = Writer(self._store)
        self._every_seconds, self._every_steps = every_seconds, every_steps
        self._consensus = Consensus(self._group)
        self._length: int | None = None
        self._loader: dict[str, Any] | None = None
        self._saved_loader: dict[str, Any] | None = None
        self._generators: list[torch.Generator] = []
        self._generator_states: list[torch.Tensor] = []
        self._pools: dict[str, state.Pool] = {}
        self._random: dict[str, Any] | None = None
        self._seed = torch.initial_seed()
        self._begun = self._driven = self._in_body = self._wanted = False
        self._busy_said = False
        for name, item in items.items():
            state.check(name, item)
            state.check_values(name, item)
        self._parallels = self._find_parallels()
        self._orders = {
            name: state.BucketOrder(parallel) for name, parallel in self._parallels.items()
        }
        try:
            if not self._off:
                signals.install(os.environ)
                self._load()
        except LaunchError as error:
            raise _exit(error) from None
        self._saved: tuple[int, int, int] | None = self._place() if self.resumed else None
        self._saved_step = self.step
        self._clock = time.monotonic()
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
        self._length = _length(loader)
        try:
            self._take_up(loader, skip)
        except LaunchError as error:
            raise _exit(error) from None
        if self._agree_to_start():
            self._stop()
        iterator: Iterator[T] | None = None
        try:
            if skip == 0 or skip != self._length:
                iterator = iter(loader)
                if skip and not isinstance(loader, Loader):
                    for _ in islice(iterator, skip):
                        pass
            if self._random is not None:
                # As late as can be: what the program drew since it started doesn't count.
                state.restore_random(self._random, self._device)
                self._random = None
            if iterator is None:
                return
            for batch in iterator:
                self._in_body = True
                yield batch
                self._in_body = False
                self.step += 1
                self.batch += 1
                supervised.progress()
                if self.batch % accumulate == 0 and not self._off:
                    self._between_steps()
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
        for order in self._orders.values():
            order.recorded()
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
            with suppress(OSError), open(path, "w", encoding="utf-8") as file:
                file.write(f"step {self.step}\n")

    def _agree_to_start(self) -> bool:
        """Whether to stop before this epoch; checks that all ranks are in the same place."""
        asked = signals.received() is not None and not self._off
        mine = (*self._place(), self._length, asked)
        everyone = self._gather_all(mine)
        for rank, other in enumerate(everyone):
            if other[:4] != everyone[0][:4]:
                raise RuntimeError(
                    f"rank {rank} is at step, epoch, batch {other[:3]} with a loader of"
                    f" {other[3]} batches, rank 0 at {everyone[0][:3]} with {everyone[0][3]}:"
                    " ranks must take as many steps (ddp.loader, or drop_last=True)"
                )
        return any(other[4] for other in everyone)

    # --- saving -----------------------------------------------------------------------

    def _save(self, *, wait: bool) -> bool:
        """Start writing a checkpoint, or with `wait` finish it; then whether it is complete."""
        self._saved, self._saved_step, self._clock = self._place(), self.step, time.monotonic()
        ranks: list[Any] | None = [None] * group.world_size() if group.is_main() else None
        own = self._capture_rank()
        if self._group is None:
            ranks = [own]
        else:
            dist.gather_object(own, ranks, dst=0, group=self._group)
        if ranks is None:
            return self._written() if wait else True
        if wait:
            self._writer.wait()
            content = self._assemble(ranks)
            self._writer.write(self.step, lambda: content)
            return self._written()
        if self._writer.busy():
            if not self._busy_said:
                self._busy_said = True
                log.warn(
                    f"no checkpoint of step {self.step}: the one before is still"
                    " being written; ask for fewer (every_steps, every_minutes)"
                )
            return True
        content = self._assemble(ranks)
        self._writer.start(self.step, lambda: content)
        return True

    def _written(self) -> bool:
        """Whether the checkpoint of this step is complete: rank 0's word."""
        self._writer.wait()
        answer = [self._writer.last == self.step]
        if self._group is not None:
            dist.broadcast_object_list(answer, src=0, group=self._group)
        return answer[0]

    def _capture_rank(self) -> dict[str, Any]:
        unfinished = self._begun and self.batch and self.batch != self._length
        return {
            "random": self._random or state.capture_random(self._device),
            "seed": self._seed,
            "generators": self._generator_states
            if unfinished
            else [generator.get_state() for generator in self._generators],
            "items": {
                name: state.capture(item)
                for name, item in self._items.items()
                if name not in self._shared
            },
            "buffers": {
                name: state.snapshot(dict(parallel.module.named_buffers()))
                for name, parallel in self._parallels.items()
                if not parallel.broadcast_buffers
            },
        }

    def _assemble(self, ranks: list[Any]) -> dict[str, Any]:
        content = {
            name: state.capture(item, self._pools.setdefault(name, {}))
            for name, item in self._items.items()
            if name in self._shared
        }
        content[_OWN_KEY] = {
            "format": _FORMAT,
            "torch": str(torch.__version__),
            "task": _task(),
            "step": self.step,
            "epoch": self.epoch,
            "batch": self.batch,
            "finished": bool(self.batch) and self.batch == self._length,
            "loader": self._loader,
            "orders": {name: order.names for name, order in self._orders.items()},
            "ranks": ranks,
        }
        return content

    # --- loading ----------------------------------------------------------------------

    def _load(self) -> None:
        if group.is_main():
            self._store.clean()
        content = self._read()
        if content is None:
            if group.is_main():
                log.note(f"no checkpoint in {self._store.folder}: training starts at step 0")
            for order in self._orders.values():
                order.record()
            return
        own = content.pop(_OWN_KEY)
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
        notes = self._rehearse(own["orders"])
        notes += self._restore(content, own["ranks"], own["step"])
        self.step, self.epoch, self.batch = own["step"], own["epoch"], own["batch"]
        self._saved_loader = own["loader"]
        self._length = self.batch if own["finished"] else None
        self.resumed = True
        self._writer.last = self.step
        if group.is_main():
            log.note(
                f"goes on after step {self.step} (epoch {self.epoch}, batch {self.batch})"
                f" of {self._store.folder}"
            )
            for note in notes:
                log.warn(f"{note}")

    def _read(self) -> Any:
        """The last checkpoint that every rank can read, None where there is none at all."""
        found: list[Checkpoint] = []
        problem = ""
        if group.is_main():
            try:
                found = self._store.found()
            except OSError as error:
                problem = str(error)
        found, problem = self._from_main((found, problem))
        if problem:
            raise LaunchError(
                f"the checkpoints can't be listed: {problem}",
                why="the training would start again from nothing beside what it has already done",
                fix="make the folder readable, or name another one",
            )
        for one in found:
            content, trouble = None, ""
            try:
                content = self._store.read(one)
            except (DamagedError, OSError) as error:
                trouble = str(error)
                if group.is_main() and isinstance(error, DamagedError):
                    self._store.set_aside(one)
            troubles = self._gather_all(trouble)
            if not any(troubles):
                return content
            rank, reason = next((n, text) for n, text in enumerate(troubles) if text)
            problem = f"{one.path.name}: {reason} (rank {rank})"
            if group.is_main():
                log.warn(f"skips {problem}; the one before is used")
        if found:
            raise LaunchError(
                f"none of the {len(found)} checkpoint(s) in {self._store.folder} can be read"
                f" by all ranks: {problem}",
                why="the training would start again from nothing beside what it has already done",
                fix="put the folder on a file system that all nodes share; to start again on"
                " purpose, name another folder",
            )
        return None

    def _rehearse(self, orders: dict[str, list[str]]) -> list[str]:
        notes = []
        for name, order in self._orders.items():
            names = orders.get(name, [])
            # Both are the same on every rank, as the passes have to be.
            if not names:
                order.record()
            elif not order.rehearse(names):
                notes.append(
                    f"DDP's buckets for {name} can't be sorted as they were: the first step may"
                    " differ in the last bits"
                )
        return notes

    def _restore(self, content: dict[str, Any], ranks: list[Any], step: int) -> list[str]:
        rank, world_size = group.rank(), group.world_size()
        same_ranks = len(ranks) == world_size
        notes = []
        own = ranks[rank] if same_ranks else ranks[0]
        for name, item in self._items.items():
            saved = content if name in self._shared else own["items"]
            if name not in saved:
                notes.append(f"the checkpoint has no {name}, which starts anew")
                continue
            if name not in self._shared and not same_ranks:
                if not all(state.same(other["items"][name], saved[name]) for other in ranks):
                    raise self._other_ranks(len(ranks), f"{name} isn't the same on all of them")
            state.restore(item, saved[name])
        for name, parallel in self._parallels.items():
            buffers = own["buffers"].get(name, {})
            if buffers and not same_ranks:
                notes.append(f"the buffers of {name} are those of rank 0")
            for key, buffer in parallel.module.named_buffers():
                if key in buffers:
                    buffer.copy_(buffers[key])
        self._seed = own["seed"]
        if same_ranks:
            self._random = own["random"]
            self._generator_states = own["generators"]
            state.restore_random(self._random, self._device)
        else:
            seed = mix(own["seed"], step, world_size, rank)
            torch.manual_seed(seed)
            random.seed(seed)
            notes.append(
                f"{len(ranks)} rank(s) wrote it and {world_size} go on: random numbers start anew"
            )
        return notes

    def _take_up(self, loader: Any, skip: int) -> None:
        """Make `loader` yield what this epoch yields, from the batch numbered `skip` on."""
        if isinstance(loader, Loader):
            self._loader = loader.describe()
        else:
            self._loader = {"batches": self._length, "world_size": group.world_size()}
        saved, self._saved_loader = self._saved_loader, None
        if skip and saved is not None and saved != self._loader:
            changed = ", ".join(
                f"{name} {saved.get(name)} -> {self._loader.get(name)}"
                for name in {**saved, **self._loader}
                if saved.get(name) != self._loader.get(name)
            )
            raise LaunchError(
                f"the checkpoint is {skip} batches into an epoch of another loader ({changed})",
                why="some samples would be seen twice in this epoch and others not at all",
                fix="go on with the loader as it was, at least until the epoch is over; one of"
                " ddp.loader doesn't depend on the number of ranks",
            )
        if isinstance(loader, Loader):
            loader.epoch, loader.skip = self.epoch, 0 if skip == self._length else skip
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
                holder.set_epoch(self.epoch)
        self._take_generators([one for one in holders if hasattr(one, "generator")])

    def _take_generators(self, holders: list[Any]) -> None:
        for number, holder in enumerate(holders):
            if holder.generator is None:
                # From the global one it would take numbers that are the model's, and shuffle
                # differently after a restart.
                holder.generator = torch.Generator().manual_seed(
                    mix(self._seed, group.rank(), number)
                )
        unique = {id(holder.generator): holder.generator for holder in holders}
        self._generators = list(unique.values())
        if len(self._generator_states) == len(self._generators) and self._resuming():
            for generator, saved in zip(self._generators, self._generator_states, strict=True):
                generator.set_state(saved)
        self._generator_states = [generator.get_state() for generator in self._generators]

    # --- between the ranks ------------------------------------------------------------

    def _resuming(self) -> bool:
        return self.resumed and self._random is not None

    def _place(self) -> tuple[int, int, int]:
        return self.step, self.epoch, self.batch

    def _next_epoch(self) -> None:
        self.epoch += 1
        self.batch = 0
        self._begun = False

    def _gather_all(self, value: Any) -> list[Any]:
        if self._group is None:
            return [value]
        values: list[Any] = [None] * group.world_size()
        dist.all_gather_object(values, value, group=self._group)
        return values

    def _from_main(self, value: Any) -> Any:
        if self._group is None:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0, group=self._group)
        return values[0]

    def _find_parallels(self) -> dict[str, Any]:
        found = {}
        trained = {
            id(parameter)
            for item in self._items.values()
            if isinstance(item, torch.optim.Optimizer)
            for options in item.param_groups
            for parameter in options["params"]
        }
        for name, item in self._items.items():
            if not isinstance(item, torch.nn.Module):
                continue
            parallel = state.parallel_in(item) or group.wrapper_of(state.unwrap(item))
            if parallel is not None:
                found[name] = parallel
            elif self._several and trained & {id(one) for one in item.parameters()}:
                if group.is_main():
                    log.warn(
                        f"{name} isn't wrapped in DistributedDataParallel, so"
                        " each rank trains one of its own and rank 0's is saved: pass what"
                        " ddp.wrap returns"
                    )
        return found

    def _other_ranks(self, saved: int, what: str) -> LaunchError:
        return LaunchError(
            f"{saved} rank(s) wrote the checkpoint in {self._store.folder} and"
            f" {group.world_size()} are to go on, but {what}",
            why="there is no right way to share it out anew",
            fix=f"go on with {saved} rank(s), or save what doesn't depend on their number",
        )


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
