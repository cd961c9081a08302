"""Trainings for test_ddp_checks: wrong ones, each with what has to be said, and right ones.

A rank runs all of a table in one process, each under checks of its own, since a process that
imports torch costs seconds.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    Subset,
    TensorDataset,
)

from slurmgen import ddp
from slurmgen.ddp import checks, group
from slurmgen.ddp.checks.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LENGTH = 96
BATCH = 4


def data(seed: int = 5) -> TensorDataset:
    rng = torch.Generator().manual_seed(seed)
    return TensorDataset(
        torch.randn(LENGTH, 8, generator=rng), torch.randn(LENGTH, 1, generator=rng)
    )


class Augmented(Dataset[Any]):
    """With noise that differs from rank to rank."""

    def __init__(self) -> None:
        self.inner = data()
        self.rng = torch.Generator().manual_seed(ddp.rank())

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> Any:
        x, y = self.inner[index]
        return x + 0.1 * torch.randn(8, generator=self.rng), y


def network(seed: int = 0, *middle: nn.Module) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), *middle, nn.ReLU(), nn.Linear(16, 1))


def shared(dataset: Any = None, **options: Any) -> DataLoader[Any]:
    dataset = data() if dataset is None else dataset
    return DataLoader(dataset, BATCH, sampler=DistributedSampler(dataset, **options))


def train(
    call: nn.Module,
    model: nn.Module,
    loader: Any,
    *,
    epochs: int = 1,
    set_epoch: bool = True,
    between: Callable[[], None] = lambda: None,
    after_backward: Callable[[], None] = lambda: None,
) -> None:
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)
    for epoch in range(epochs):
        if set_epoch and hasattr(getattr(loader, "sampler", None), "set_epoch"):
            loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(call(x), y).backward()
            after_backward()
            optimizer.step()
        between()


def average(model: nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


# --- wrong ----------------------------------------------------------------------------


def no_sampler() -> None:
    model = network()
    train(DistributedDataParallel(model), model, DataLoader(data(), BATCH, shuffle=True))


def no_sampler_nor_seed() -> None:
    model = network()
    rng = torch.Generator().manual_seed(ddp.rank())
    loader = DataLoader(data(), BATCH, shuffle=True, generator=rng)
    train(DistributedDataParallel(model), model, loader)


def copies() -> None:
    """A program for one GPU, started once per rank."""
    model = network()
    train(model, model, DataLoader(data(), BATCH, shuffle=True))


def copies_with_their_own_weights() -> None:
    model = network(ddp.rank())
    train(model, model, DataLoader(data(), BATCH))


def sampler_of_rank_0() -> None:
    model = network()
    loader = shared(Augmented(), num_replicas=2, rank=0)
    train(DistributedDataParallel(model), model, loader)


def no_set_epoch() -> None:
    model = network()
    train(DistributedDataParallel(model), model, shared(), epochs=2, set_epoch=False)


def not_wrapped() -> None:
    model = network()
    train(model, model, shared())


def not_wrapped_nor_seeded() -> None:
    model = network(ddp.rank())
    train(model, model, shared())


def called_past_its_wrapper() -> None:
    model = network()
    DistributedDataParallel(model)
    parallel = DistributedDataParallel(model)
    train(parallel.module, parallel, shared())


def head_not_wrapped() -> None:
    model = network()
    head = nn.Linear(1, 1)
    parallel = DistributedDataParallel(model)
    train(nn.Sequential(parallel, head), nn.Sequential(model, head), shared())


def averages_from_other_weights() -> None:
    model = network(ddp.rank())
    train(model, model, shared(), after_backward=partial(average, model))


def every_rank_saves() -> None:
    with open("every.pt", "wb") as file:
        torch.save(1, file)
    torch.save(2, os.path.abspath("every.pt"))


def data_parallel() -> None:
    model = nn.DataParallel(network())
    train(model, model, shared(), after_backward=partial(average, model))


def too_many_workers() -> None:
    model = network()
    dataset = data()
    loader = DataLoader(dataset, BATCH, sampler=DistributedSampler(dataset), num_workers=2)
    train(DistributedDataParallel(model), model, loader)


WRONG: dict[str, tuple[Callable[[], None], list[str]]] = {
    "no sampler": (no_sampler, ["train on the same batches"]),
    "no sampler, not seeded": (no_sampler_nor_seed, ["goes through all 96 samples in an epoch"]),
    "copies": (copies, ["train on the same batches"]),
    "copies, weights": (
        copies_with_their_own_weights,
        ["train on the same batches", "each rank trains a model of its own"],
    ),
    "sampler of rank 0": (sampler_of_rank_0, ["leave rank= and num_replicas="]),
    "no set_epoch": (no_set_epoch, ["the same epoch number in its second epoch"]),
    "not wrapped": (not_wrapped, ["each rank trains a model of its own"]),
    "not wrapped, not seeded": (not_wrapped_nor_seeded, ["each rank trains a model of its own"]),
    "past the wrapper": (called_past_its_wrapper, ["called past its wrapper"]),
    "head not wrapped": (head_not_wrapped, ["2 parameter(s) that are not in"]),
    "other weights": (averages_from_other_weights, ["started from different weights"]),
    "every rank saves": (every_rank_saves, ["every.pt, over each other's"]),
    "DataParallel": (data_parallel, ["nn.DataParallel on each of 2 ranks"]),
    "workers": (too_many_workers, ["4 DataLoader workers of 2 rank(s) share 2 CPU(s)"]),
}


# --- right ----------------------------------------------------------------------------


def entrypoint() -> None:
    torch.manual_seed(0)
    model = network()
    parallel = ddp.wrap(model)
    train(parallel, model, ddp.loader(data(), global_batch_size=8), epochs=2)
    ddp.save(model.state_dict(), "once.pt")


def resumed_loop() -> None:
    model = network()
    parallel = ddp.wrap(model)
    optimizer = torch.optim.AdamW(model.parameters())
    run = ddp.resume("checkpoints", model=parallel, optimizer=optimizer, every_steps=5)
    loader = shared()
    for _ in run.epochs(2):
        for x, y in run.batches(loader):
            optimizer.zero_grad()
            nn.functional.mse_loss(parallel(x), y).backward()
            optimizer.step()


def plain_torch() -> None:
    """Evaluates all data on every rank, before and between, and saves on one."""
    model = network(0, nn.BatchNorm1d(16))
    parallel = DistributedDataParallel(model)
    every = DataLoader(data(1), BATCH)
    loader = shared()

    def evaluate() -> None:
        for x, _ in every:
            with torch.no_grad():
                model(x)
        # Over the training data, in the order of the epoch before.
        with torch.no_grad():
            for x, _ in loader:
                model(x)
        if ddp.is_main():
            torch.save(model.state_dict(), "main.pt")
        torch.save(torch.get_rng_state(), f"rng{ddp.rank()}.pt")

    evaluate()
    train(parallel, model, loader, epochs=3, between=evaluate)


def averages_by_hand() -> None:
    model = network()
    train(model, model, shared(), after_backward=partial(average, model))


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        inner = data()
        return (inner[index] for index in range(ddp.rank(), LENGTH, ddp.world_size()))


def stream() -> None:
    model = network()
    train(DistributedDataParallel(model), model, DataLoader(Stream(), BATCH))


def own_part_of_the_data() -> None:
    """Shuffled alike, but each of its own half."""
    model = network()
    part = Subset(data(), range(ddp.rank(), LENGTH, ddp.world_size()))
    rng = torch.Generator().manual_seed(0)
    loader = DataLoader(part, BATCH, shuffle=True, generator=rng)
    train(DistributedDataParallel(model), model, loader)


def own_part_shuffled_freely() -> None:
    model = network()
    part = Subset(data(), range(ddp.rank(), LENGTH, ddp.world_size()))
    rng = torch.Generator().manual_seed(ddp.rank())
    loader = DataLoader(part, BATCH, shuffle=True, generator=rng)
    train(DistributedDataParallel(model), model, loader)


def constant_data() -> None:
    model = network()
    same = TensorDataset(torch.ones(LENGTH, 8), torch.ones(LENGTH, 1))
    train(DistributedDataParallel(model), model, shared(same))


def accumulates() -> None:
    model = network()
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, (x, y) in enumerate(shared()):
        last = number % 2 == 1
        with contextlib.nullcontext() if last else parallel.no_sync():
            nn.functional.mse_loss(parallel(x), y).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()


def two_models() -> None:
    makes, judges = network(), network(1)
    makes_parallel = DistributedDataParallel(makes)
    judges_parallel = DistributedDataParallel(judges, broadcast_buffers=False)
    one = torch.optim.Adam(makes.parameters())
    other = torch.optim.Adam(judges.parameters())
    for x, y in shared():
        other.zero_grad()
        nn.functional.mse_loss(judges_parallel(x), y).backward()
        other.step()
        one.zero_grad()
        judges(makes_parallel(x).expand(-1, 8)).mean().backward()
        one.step()


def compiled() -> None:
    model = network()
    call = torch.compile(DistributedDataParallel(model), backend="eager")
    train(call, model, shared())


def compiled_step() -> None:
    model = network()
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.01))
    step = torch.compile(optimizer.step, backend="eager")
    for x, y in shared():
        optimizer.zero_grad()
        nn.functional.mse_loss(parallel(x), y).backward()
        step()


def frozen() -> None:
    model = network()
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    train(DistributedDataParallel(model), model, shared())


def closure() -> None:
    model = network()
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    for x, y in shared():

        def loss(x: Any = x, y: Any = y) -> Any:
            optimizer.zero_grad()
            value = nn.functional.mse_loss(parallel(x), y)
            value.backward()
            return value

        optimizer.step(loss)


def fully_sharded() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = network()
    fully_shard(model, mesh=init_device_mesh("cpu", (ddp.world_size(),)))
    train(model, model, shared())


def sharded_optimizer() -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = network()
    parallel = DistributedDataParallel(model)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    for x, y in shared():
        optimizer.zero_grad()
        nn.functional.mse_loss(parallel(x), y).backward()
        optimizer.step()


def own_experts() -> None:
    """A part of the model that each rank has for itself, beside one that is shared."""
    model = network()
    torch.manual_seed(1 + ddp.rank())
    expert = nn.Linear(1, 1)
    parallel = DistributedDataParallel(model)
    train(nn.Sequential(parallel, expert), nn.Sequential(model, expert), shared())


def parts_of_a_model() -> None:
    """Each rank has its half of a layer, and both read the same batches."""
    torch.manual_seed(ddp.rank())
    half = nn.Linear(8, 4)
    torch.manual_seed(0)
    last = nn.Linear(4, 1)
    model = nn.Sequential(half, last)
    train(model, model, DataLoader(data(), BATCH), after_backward=partial(average, last))


RIGHT: dict[str, Callable[[], None]] = {
    "entrypoint": entrypoint,
    "resumed loop": resumed_loop,
    "plain torch": plain_torch,
    "averages by hand": averages_by_hand,
    "stream": stream,
    "own part of the data": own_part_of_the_data,
    "own part, shuffled freely": own_part_shuffled_freely,
    "constant data": constant_data,
    "accumulates": accumulates,
    "two models": two_models,
    "compiled": compiled,
    "compiled step": compiled_step,
    "frozen": frozen,
    "closure": closure,
    "fully sharded": fully_sharded,
    "sharded optimizer": sharded_optimizer,
    "own experts": own_experts,
    "parts of a model": parts_of_a_model,
}


def fail(_: Watch) -> None:
    """In place of giving up silently."""
    raise AssertionError from sys.exc_info()[1]


def said_by(name: str, body: Callable[[], None]) -> list[str]:
    """What the checks of both ranks say about `body`."""
    run = group._run
    assert run.meeting is not None
    assert run.identity is not None
    stderr, sys.stderr = sys.stderr, io.StringIO()
    try:
        store = dist.PrefixStore(name, run.meeting.store)
        watch = checks.install(run.identity, ddp.device(), store)
        body()
        watch.close()
        # The answer comes after what this rank has told is in the store; a set alone has none.
        store.add("told", 1)
        dist.barrier()
        watch.conclude()
        assert watch._judged == ddp.is_main()
        said = sys.stderr.getvalue()
    finally:
        sys.stderr = stderr
    both: list[Any] = [None, None]
    dist.all_gather_object(both, said)
    return [line for text in both for line in text.splitlines() if "warning" in line]


Watch._give_up = fail  # type: ignore[assignment, method-assign]


def wrong() -> None:
    for name, (body, expected) in WRONG.items():
        said = said_by(name, body)
        fits = [part in line for part, line in zip(expected, said, strict=False)]
        if len(said) != len(expected) or not all(fits):
            ddp.print0(f"{name}: {said}, not {expected}")


def right() -> None:
    for name, body in RIGHT.items():
        said = said_by(name, body)
        if said:
            ddp.print0(f"{name}: {said}")
