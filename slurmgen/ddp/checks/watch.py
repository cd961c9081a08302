"""What is watched in the first steps, and what becomes of it."""

from __future__ import annotations

import os
import socket
import sys
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.data import DistributedSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from slurmgen.ddp import log
from slurmgen.ddp.checks import contents, fingerprint
from slurmgen.ddp.checks.data_parallel import DataParallel
from slurmgen.ddp.checks.epochs import Epochs, sampler_of
from slurmgen.ddp.checks.facts import COMPARED, Batch, Check, Facts
from slurmgen.ddp.checks.patches import around
from slurmgen.ddp.checks.saves import Saves
from slurmgen.ddp.checks.wrappers import Wrappers
from slurmgen.ddp.launch.devices import describe_seat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slurmgen.ddp.checks.exchange import Exchange
    from slurmgen.ddp.checks.wrappers import Sorted
    from slurmgen.ddp.launch.identity import Identity

STEPS = 8
"""After so many steps of its optimizers a rank tells what it has seen."""

_OPTIMIZERS = 4


class Watch:
    """One rank's view of its training, from the first step to the last look.

    Nothing here raises, waits for another rank, draws a random number or changes a tensor. Until
    a rank has told what it has seen, each batch costs it a digest and each step a few norms;
    afterwards a step costs it a comparison of two integers.
    """

    def __init__(
        self,
        identity: Identity,
        own: torch.device,
        exchange: Exchange,
        checks: Mapping[str, Check],
        env: Mapping[str, str],
    ) -> None:
        self._identity = identity
        self._own = own
        self._exchange = exchange
        self._checks = dict(checks)
        self._env = env
        self._process = os.getpid()
        self._facts = Facts(
            identity.rank,
            identity.node,
            socket.gethostname(),
            own=str(own),
            cpus=sum(1 << cpu for cpu in os.sched_getaffinity(0)),
            task=env.get("SLURM_PROCID", ""),
            cpus_per_task=_number(env.get("SLURM_CPUS_PER_TASK", "")),
            cpus_on_node=_number(env.get("SLURM_CPUS_ON_NODE", "")),
        )
        self._wrappers = Wrappers(identity.world_size)
        self._epochs = Epochs(speaks=identity.rank == 0, wake=self._wake)
        self._optimizers: weakref.WeakKeyDictionary[Any, Sorted] = weakref.WeakKeyDictionary()
        self._indices: weakref.WeakKeyDictionary[Any, deque[str]] = weakref.WeakKeyDictionary()
        self._drawn: tuple[Any, Batch] | None = None
        self._steps = 0
        self._depth = 0
        self._next = 0
        self._pause = 1
        self._posted = self._judged = False
        self._undo_first = [*self._watch_batches(), self._wrappers.watch()]
        self._undo_later = [
            self._epochs.watch(),
            DataParallel(identity.rank, identity.world_size).watch(),
            *([Saves(exchange).watch()] if identity.world_size > 1 else []),
        ]
        self._hooks = [
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]

    def close(self) -> None:
        """The program has ended: tell what was seen, if that is still to be done."""
        try:
            self._post()
        except Exception:
            self._give_up()
        for hook in self._hooks:
            hook.remove()
        for undo in self._undo_later:
            undo()

    def conclude(self) -> None:
        """Every rank has called `close`: judge, if that is still to be done."""
        try:
            self._judge()
        except Exception:
            self._give_up()

    def leave_out(self, check: str) -> None:
        """Don't say what the check of this name finds."""
        self._checks.pop(check, None)

    # --- what torch calls -------------------------------------------------------------

    def _watch_batches(self) -> list[Callable[[], None]]:
        def make_next(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def draw(iterator: Any) -> Any:
                batch = original(iterator)
                try:
                    self._draw(iterator, batch)
                except Exception:
                    self._give_up()
                return batch

            return draw

        def make_index(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def choose(iterator: Any) -> Any:
                indices = original(iterator)
                try:
                    self._choose(iterator, indices)
                except Exception:
                    self._give_up()
                return indices

            return choose

        return [
            around(_BaseDataLoaderIter, "__next__", make_next),
            around(_BaseDataLoaderIter, "_next_index", make_index),
        ]

    def _before(self, optimizer: Any, *_: Any) -> None:
        # Within torch.compile this is all that is left of it.
        if torch.compiler.is_compiling():
            return
        # Stays above 0 where a step raised: such a run is looked at no more.
        self._depth += 1
        # One that steps another one, as ZeroRedundancyOptimizer does, is a single step.
        if self._depth > 1:
            return
        self._steps += 1
        if self._steps >= self._next and os.getpid() == self._process:
            try:
                self._look(optimizer)
            except Exception:
                self._give_up()

    def _after(self, *_: Any) -> None:
        if not torch.compiler.is_compiling():
            self._depth -= 1

    # --- seeing -----------------------------------------------------------------------

    def _choose(self, iterator: Any, indices: Any) -> None:
        sampler = sampler_of(iterator)
        if isinstance(sampler, DistributedSampler) and sampler.num_replicas > 1:
            self._indices.setdefault(iterator, deque()).append(fingerprint.digest(indices))

    def _draw(self, iterator: Any, batch: Any) -> None:
        chosen = self._indices.get(iterator)
        indices = chosen.popleft() if chosen else ""
        # Evaluation is mostly without; what is left of it isn't the last before a step.
        if self._posted or not torch.is_grad_enabled() or os.getpid() != self._process:
            return
        wanted = len(self._facts.batches) < COMPARED
        leaves = fingerprint.leaves(batch) if wanted else []
        self._drawn = weakref.ref(iterator), Batch(leaves, indices)

    def _look(self, optimizer: Any) -> None:
        self._epochs.stepped()
        if self._posted:
            self._judge()
            self._pause *= 2
            waits = self._exchange.rank == 0 and not self._judged
            self._next = self._steps + self._pause if waits else sys.maxsize
            return
        self._see_batch()
        self._see_optimizer(optimizer)
        if self._steps >= STEPS:
            self._post()
            self._next = self._steps + 1 if self._exchange.rank == 0 else sys.maxsize

    def _see_batch(self) -> None:
        if self._drawn is None:
            return
        (reference, batch), self._drawn = self._drawn, None
        iterator = reference()
        if iterator is not None:
            self._facts.workers = max(self._facts.workers, iterator._num_workers)
            self._epochs.trains(sampler_of(iterator))
            if not self._facts.batches:
                self._see_dataset(iterator._dataset, sampler_of(iterator))
        if len(self._facts.batches) < COMPARED:
            self._facts.batches.append(batch)

    def _see_dataset(self, dataset: Any, sampler: Any) -> None:
        self._facts.whole = contents.of_whole(dataset, sampler)
        if self._facts.whole:
            self._facts.samples = len(dataset)

    def _see_optimizer(self, optimizer: Any) -> None:
        if self._own.type == "cuda" and torch.cuda.is_current_stream_capturing():
            return
        parameters = [one for options in optimizer.param_groups for one in options["params"]]
        seen = self._optimizers.get(optimizer)
        if seen is None:
            # LBFGS makes its gradients in the step itself.
            if len(self._facts.optimizers) >= _OPTIMIZERS or not any(
                one.grad is not None for one in parameters
            ):
                return
            if not self._facts.optimizers:
                self._see_devices(parameters)
            seen = self._optimizers[optimizer] = self._wrappers.sort(parameters)
            self._facts.optimizers.append(seen.seen)
        seen.look()

    def _see_devices(self, parameters: list[torch.Tensor]) -> None:
        devices = {one.device for one in parameters}
        if self._own.type != "cuda":
            return
        self._facts.gpus = sorted(
            describe_seat(self._identity, device, self._env).uuid or str(device)
            for device in devices
            if device.type == "cuda"
        )
        untouched = torch.cuda.max_memory_allocated(self._own) == 0
        self._facts.idle = not self._facts.gpus and untouched

    # --- telling ----------------------------------------------------------------------

    def _wake(self) -> None:
        self._next = 0

    def _post(self) -> None:
        if not self._posted:
            self._posted = True
            self._end_first()
            self._exchange.post("facts", self._facts.dump())

    def _judge(self) -> None:
        if self._judged or self._exchange.rank != 0:
            return
        texts = self._exchange.gather("facts")
        if texts is None:
            return
        self._judged = True
        everyone = [Facts.parse(text) for text in texts]
        for check in self._checks.values():
            for text in check(everyone):
                log.warn(text)

    def _give_up(self) -> None:
        """Something isn't as expected here: the training goes on without being looked at."""
        self._next = sys.maxsize
        self._posted = self._judged = True
        self._end_first()

    def _end_first(self) -> None:
        for undo in self._undo_first:
            undo()
        self._undo_first.clear()
        self._drawn = None
        self._indices.clear()
        self._optimizers.clear()


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
