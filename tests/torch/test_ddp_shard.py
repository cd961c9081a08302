"""A model that is sharded over the ranks: saved, damaged, and taken up by any number of them."""

from __future__ import annotations

import json
import random
import re
import shutil
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

# The fixture's class lives in a conftest, which importlib mode doesn't let a test import.
Ranks = Any

pytestmark = pytest.mark.torch

STEPS = 24  # 4 epochs of 6 batches

# argv: log, then any of: at=STEP (to be signalled at), rank=N (which one), ddp, plain, norm, own,
# even, epochs=N, full=N (that rank's disk is full while step is below 12), dump (the state,
# gathered), wait (for each save)
PROGRAM = """
import errno, os, random, signal, sys
import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
from slurmgen import ddp
from slurmgen.ddp.train import consensus
from slurmgen.ddp.train.checkpoints import store

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
            if "wait" in options:
                run._writer.wait()  # So that none is left out because another is being written.
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


def dumped(ranks: Ranks, log: str) -> Any:
    import torch

    return torch.load(ranks.folder / f"{log}.pt")


def close(one: list[str], other: list[str]) -> None:
    """The same steps and samples, and mean losses equal but for the order of sums."""
    assert len(one) == len(other)
    for line, reference in zip(one, other, strict=True):
        (step, _, mean, *_), (step2, _, mean2, *_) = line.split(), reference.split()
        assert step == step2
        assert float(mean) == pytest.approx(float(mean2), rel=1e-4)


def samples(ranks: Ranks, log: str, world_size: int, lines: slice) -> list[list[float]]:
    """What all ranks together saw in each step."""
    parts = [
        [json.loads(line[line.index("[") : line.index("]") + 1]) for line in rank[lines]]
        for rank in (losses(ranks, log, number) for number in range(world_size))
    ]
    return [list(chain.from_iterable(step)) for step in zip(*parts, strict=True)]


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        ((), 2, 4),
        ((), 4, 2),
        ((), 2, 1),
        ((), 1, 2),
        (("ddp",), 2, 4),
        (("ddp",), 4, 2),
        (("ddp",), 2, 1),
    ],
)
def test_another_number_of_ranks_goes_on(
    ranks: Ranks,
    live: Callable[..., list[Any]],
    words: tuple[str, ...],
    before: int,
    after: int,
) -> None:
    """In the middle of an epoch; with one rank nothing is sharded."""
    words = ("even", *words)
    stopped = live("cut", "at=8", *words, world_size=before)
    assert codes(stopped) == [75] * before, stopped
    done = len(losses(ranks, "cut", 0))
    # As many ranks again, only to see what the state is.
    again = live("same", "dump", "epochs=0", *words, world_size=before)
    went_on = live("other", "dump", *words, world_size=after)
    assert codes(again) + codes(went_on) == [0] * (before + after), (again, went_on)
    assert went_on[0].out == f"resumed {STEPS}\n"
    assert f"{before} rank(s) wrote it and {after} go on" in went_on[0].err

    from slurmgen.ddp.train import state

    assert state.same(*map(plain, (dumped(ranks, "same"), dumped(ranks, "other"))))
    shutil.rmtree(ranks.folder / "saved")
    whole = live("whole", *words, world_size=before)
    assert codes(whole) == [0] * before, whole
    close(losses(ranks, "other", 0), losses(ranks, "whole", 0)[done:])
    assert samples(ranks, "other", after, slice(None)) == samples(
        ranks, "whole", before, slice(done, None)
    )


def plain(value: Any) -> Any:
    """Without the classes that depend on how a model is wrapped."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def test_a_plain_loader_and_another_number_of_ranks(
    ranks: Ranks, live: Callable[..., list[Any]]
) -> None:
    words = ("ddp", "even", "plain")
    stopped = live("cut", "at=8", *words)
    assert codes(stopped) == [75, 75], stopped
    refused = live("other", *words, world_size=4)
    assert codes(refused) == [78] * 4, refused
    assert "batches into an epoch of another loader (world_size 2 -> 4)" in refused[0].err

    # At the end of an epoch there is nothing left of the loader as it was.
    shutil.rmtree(ranks.folder / "saved")
    assert codes(live("first", "epochs=2", *words)) == [0, 0]
    more = live("second", "epochs=3", *words, world_size=1)
    assert codes(more) == [0], more
    assert more[0].out == "resumed 18\n"


def test_a_disk_that_is_full_on_one_rank(ranks: Ranks, live: Callable[..., list[Any]]) -> None:
    ended = live("log", "full=1", "epochs=3", "wait")
    assert codes(ended) == [0, 0], ended
    said = [line.partition(": ")[2] for line in ended[0].err.splitlines() if "checkpoint" in line]
    first, again = said[-2:]
    assert first == (
        "warning: no checkpoint of step 4 in saved: No space left on device (rank 1);"
        " there is none yet"
    )
    assert re.fullmatch(r"checkpoints are written again, step \d+", again)
    assert "warning" not in ended[1].err
    left = sorted(path.name for path in (ranks.folder / "saved").iterdir())
    assert all(name.startswith("step-") and int(name[5:14]) >= 12 for name in left), left


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "how", "reason"),
    [
        ("__1_0.distcp", flip, "its __1_0.distcp isn't what was written"),
        ("rank-00001.pt", Path.unlink, "its rank-00001.pt is missing"),
        ("manifest.json", Path.unlink, "its manifest.json is missing"),
    ],
)
def test_the_one_before_a_damaged_one(
    ranks: Ranks,
    live: Callable[..., list[Any]],
    name: str,
    how: Callable[[Path], None],
    reason: str,
) -> None:
    assert codes(live("whole", "epochs=2", "wait")) == [0, 0]
    # Of the last step there are two, that of the epoch's end and that of the run's.
    newest = sorted((ranks.folder / "saved").glob("step-000000012-*"))
    assert len(newest) == 2
    for one in newest:
        how(one / name)
    left = ranks.folder / "saved/.step-12.host.7.140.tmp"
    left.mkdir()
    (left / "__0_0.distcp").write_bytes(b"half")
    ended = live("cut", "epochs=2")
    assert codes(ended) == [0, 0], ended
    found = {path.name for path in (ranks.folder / "saved").iterdir()}
    for one in newest:
        assert f"skips {one.name}: {reason}" in ended[0].err
        assert one.name + ".damaged" in found
    assert left.name not in found
    assert "goes on after step 8" in ended[0].err
    assert losses(ranks, "cut", 0) == losses(ranks, "whole", 0)[8:]


def test_ten_kills(ranks: Ranks) -> None:
    """At random moments and in the middle of saves, of any rank; see soak.py."""
    ended = ranks.run(
        str(Path(__file__).with_name("soak.py")), "--kills", "10", "--seed", "0", "--shard"
    )
    assert ended.code == 0, ended
    assert ended.out.endswith("every loss the same to the bit\n"), ended
