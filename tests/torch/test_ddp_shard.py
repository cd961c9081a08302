"""A model that is sharded over the ranks: saved, damaged, and taken up by any number of them."""

from __future__ import annotations

import random
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

# The fixture's class lives in a conftest, which importlib mode doesn't let a test import.
Ranks = Any

pytestmark = pytest.mark.torch

STEPS = 24  # 4 epochs of 6 batches

# argv: log, then any of: at=STEP (to be signalled at), rank=N (which one), ddp, plain, norm, own,
# epochs=N, full=N (that rank's disk is full while step is below 12), dump (the state, gathered)
PROGRAM = """
import errno, os, random, signal, sys
import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
from slurmgen import ddp
from slurmgen.ddp import consensus, store

consensus.INTERVAL_S = 0  # The whole run takes less than the time between two questions.
log, *words = sys.argv[1:]
options = dict(word.partition("=")[::2] for word in words)


class Block(nn.Sequential):
    pass


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        return torch.randn(12, generator=torch.Generator().manual_seed(index)), index % 3


def main():
    rank, size = ddp.rank(), ddp.world_size()
    random.seed(rank)
    torch.manual_seed(7 + rank)  # All are to start from rank 0's.
    extra = [nn.BatchNorm1d(33)] if "norm" in options else []
    drop = [] if "even" in options else [nn.Dropout(0.2)]
    model = nn.Sequential(
        nn.Linear(12, 33), Block(nn.Linear(33, 50), nn.Tanh(), *drop, nn.Linear(50, 33)),
        Block(*extra, nn.Linear(33, 33), nn.Tanh()), nn.Linear(33, 3),
    )
    if "ddp" in options:
        wrapped = ddp.wrap(model)
    elif "own" in options:
        ddp.init()
        wrapped = torch.distributed.fsdp.fully_shard(model)
    else:
        wrapped = ddp.wrap(model, shard=[Block])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [5, 20])
    if "plain" in options:
        sampler = torch.utils.data.DistributedSampler(Data())
        loader = torch.utils.data.DataLoader(Data(), 16 // size, sampler=sampler)
    else:
        loader = ddp.loader(Data(), global_batch_size=16)
    if options.get("full") == str(rank):
        fsync = os.fsync

        def full(handle):
            if run.step < 12:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            fsync(handle)

        os.fsync = full
    run = ddp.resume("saved", every_steps=4, model=wrapped, optimizer=optimizer, schedule=schedule)
    if "dump" in options:
        whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
        if optimizer.state:
            state = get_state_dict(model, optimizer, options=whole)
            if rank == 0:
                torch.save(state, f"{log}.pt")
    seen = open(f"{log}.{rank}", "a")
    for epoch in run.epochs(int(options.get("epochs", 4))):
        for inputs, labels in run.batches(loader):
            loss = nn.functional.cross_entropy(wrapped(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            mean = ddp.all_mean(loss.detach()).item()
            first = inputs[:, 0].tolist()
            print(run.step, loss.item().hex(), mean, first, random.random(), file=seen, flush=True)
            if run.step == int(options.get("at", -1)) and rank == int(options.get("rank", 0)):
                os.kill(os.getpid(), signal.SIGUSR1)
    print("resumed" if run.resumed else "anew", run.step)
"""


@pytest.fixture
def live(ranks: Ranks, step: Callable[..., dict[str, str]], port: int) -> Callable[..., list[Any]]:
    """`live(log, word...)`: one life of the program above; how its ranks ended."""
    ranks.write("job.py", PROGRAM)

    def run(log: str, *words: str, world_size: int = 2) -> list[Any]:
        for rank in range(world_size):
            env = step(rank, world_size, port, SLURMGEN_SIGNAL="USR1")
            ranks.start("-m", "slurmgen.ddp", "job:main", log, *words, **env)
        ended = list(ranks.end())
        assert "Traceback" not in "".join(one.err for one in ended), ended
        return ended

    return run


def losses(ranks: Ranks, log: str, rank: int) -> list[str]:
    return list((ranks.folder / f"{log}.{rank}").read_text().splitlines())


def codes(ended: list[Any]) -> list[int]:
    return [one.code for one in ended]


@pytest.mark.parametrize(("words", "world_size"), [((), 2), (("norm", "own"), 2), ((), 4)])
def test_it_goes_on_to_the_bit(
    ranks: Ranks, live: Callable[..., list[Any]], words: tuple[str, ...], world_size: int
) -> None:
    whole = live("whole", *words, world_size=world_size)
    assert codes(whole) == [0] * world_size, whole
    shutil.rmtree(ranks.folder / "saved")

    at = random.Random(f"{words} {world_size}").randrange(1, STEPS - 3)
    stopped = live("cut", f"at={at}", f"rank={world_size - 1}", *words, world_size=world_size)
    assert codes(stopped) == [75] * world_size, stopped
    done = len(losses(ranks, "cut", 0))
    assert at < done < STEPS
    went_on = live("cut", *words, world_size=world_size)
    assert codes(went_on) == [0] * world_size, went_on
    assert f"goes on after step {done}" in went_on[0].err
    for rank in range(world_size):
        assert losses(ranks, "cut", rank) == losses(ranks, "whole", rank)
    names = {path.name for path in (ranks.folder / "saved").iterdir()}
    assert len(names) == 3
    assert all(re.fullmatch(r"step-\d{9}-[0-9a-f]{16}", name) for name in names), names
