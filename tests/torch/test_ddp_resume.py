"""A training that is stopped or killed goes on to the bit."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The fixture's class lives in a conftest, which importlib mode doesn't let a test import.
Ranks = Any

pytestmark = pytest.mark.torch

STEPS = 30  # 5 epochs of 6 batches

# argv: log, step to be signalled at (-1: never), signal, then any of: plain, workers=N, epochs=N
PROGRAM = """
import os, random, signal, sys
import torch
from torch import nn
from slurmgen import ddp
from slurmgen.ddp.train import consensus

consensus.INTERVAL_S = 0  # The whole run takes less than the time between two questions.
log, at, name, *words = sys.argv[1:]
options = dict(word.partition("=")[::2] for word in words)


class Noise(torch.utils.data.Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        own = torch.Generator().manual_seed(index)
        return torch.randn(12, generator=own) + 0.1 * torch.rand(()), index % 3


def main():
    random.seed(ddp.rank())
    torch.manual_seed(7)
    # Wide enough for several buckets, with what draws random numbers and what has buffers.
    model = nn.Sequential(
        nn.Linear(12, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(64, 2000), nn.Tanh(), nn.Linear(2000, 64), nn.Linear(64, 3),
    )
    parallel = ddp.wrap(model, bucket_cap_mb=0.3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [5, 20])
    total, notes = torch.zeros(()), {"best": 9.0}
    workers = int(options.get("workers", 0))
    if "plain" in options:
        sampler = torch.utils.data.DistributedSampler(Noise()) if ddp.world_size() > 1 else None
        loader = torch.utils.data.DataLoader(
            Noise(), 16 // ddp.world_size(), sampler=sampler, shuffle=sampler is None,
            num_workers=workers,
        )
    else:
        loader = ddp.loader(Noise(), global_batch_size=16, num_workers=workers)
    run = ddp.resume(
        "saved", every_steps=4, model=parallel, optimizer=optimizer, schedule=schedule,
        total=total, notes=notes,
    )
    if run.resumed:
        torch.rand(99), random.random()  # What is drawn before the loop doesn't count.
    seen = open(f"{log}.{ddp.rank()}", "a")
    for epoch in run.epochs(int(options.get("epochs", 5))):
        for inputs, labels in run.batches(loader):
            loss = nn.functional.cross_entropy(parallel(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach()
            notes["best"] = min(notes["best"], loss.item())
            drawn = random.random(), notes["best"], total.item()
            print(run.step, epoch, run.batch, loss.item().hex(), *drawn, file=seen, flush=True)
            if run.step == int(at) and not run.resumed and ddp.rank() == ddp.world_size() - 1:
                os.kill(os.getpid(), getattr(signal, name))
    print("resumed" if run.resumed else "anew", run.step)
"""


@pytest.fixture(autouse=True)
def _signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leaves this process's own handlers as they were."""
    from slurmgen.ddp.launch import signals

    numbers = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
    before = [signal.getsignal(number) for number in numbers]
    monkeypatch.setattr(signals, "_state", signals._State())
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def lives(ranks: Ranks, port: int, log: str, *words: str, world_size: int = 2) -> list[Any]:
    ranks.write("job.py", PROGRAM)
    for rank in range(world_size):
        env = ranks.step(rank, world_size, port, SLURMGEN_SIGNAL="USR1")
        ranks.start("-m", "slurmgen.ddp", "job:main", log, *words, **env)
    return list(ranks.end())


def losses(ranks: Ranks, log: str, rank: int) -> list[str]:
    return list((ranks.folder / f"{log}.{rank}").read_text().splitlines())


@pytest.mark.parametrize(
    ("name", "words", "world_size"),
    [
        ("SIGUSR1", (), 2),
        ("SIGTERM", (), 4),
        ("SIGTERM", ("workers=1",), 2),
        ("SIGUSR1", ("plain",), 2),
        ("SIGUSR1", ("plain", "workers=1"), 1),
    ],
)
def test_a_signal_at_a_random_step(
    ranks: Ranks,
    step: Callable[..., dict[str, str]],
    port: int,
    name: str,
    words: tuple[str, ...],
    world_size: int,
) -> None:
    ranks.step = step
    whole = lives(ranks, port, "whole", "-1", name, *words, world_size=world_size)
    assert [e.code for e in whole] == [0] * world_size, whole
    (ranks.folder / "saved").rename(ranks.folder / "other")

    at = random.Random(f"{name} {words}").randrange(1, STEPS - 3)
    stopped = lives(ranks, port, "cut", str(at), name, *words, world_size=world_size)
    assert [e.code for e in stopped] == [75] * world_size, stopped
    assert "exit status 75" in stopped[0].err
    assert "Traceback" not in "".join(e.err for e in stopped)
    done = len(losses(ranks, "cut", 0))
    # That step is done, and a few more until all have agreed.
    assert at < done < STEPS
    went_on = lives(ranks, port, "cut", "-1", name, *words, world_size=world_size)
    assert [e.code for e in went_on] == [0] * world_size, went_on
    assert went_on[0].out == f"resumed {STEPS}\n"
    assert f"goes on after step {done}" in went_on[0].err
    for rank in range(world_size):
        assert losses(ranks, "cut", rank) == losses(ranks, "whole", rank)


def test_another_number_of_ranks(
    ranks: Ranks, step: Callable[..., dict[str, str]], port: int
) -> None:
    ranks.step = step
    stopped = lives(ranks, port, "cut", "9", "SIGUSR1")
    assert [e.code for e in stopped] == [75, 75], stopped
    # In the middle of an epoch each rank has a total of its own.
    refused = lives(ranks, port, "cut", "-1", "SIGUSR1", world_size=1)[0]
    assert refused.code == 78, refused
    assert "2 rank(s) wrote the checkpoint in saved and 1 are to go on, but" in refused.err
    assert "total isn't the same on all of them" in refused.err


def test_what_can_not_go_on_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    from slurmgen import ddp

    model = torch.nn.Linear(2, 2)
    with pytest.raises(TypeError, match="words is str: a checkpoint holds"):
        ddp.resume(tmp_path, words="abc")
    with pytest.raises(TypeError, match="notes holds what a checkpoint can't"):
        ddp.resume(tmp_path, notes={"path": tmp_path})
    with pytest.raises(TypeError, match="requires grad"):
        ddp.resume(tmp_path, weight=model.weight)
    with pytest.raises(TypeError, match="the name slurmgen is taken"):
        ddp.resume(tmp_path, slurmgen=model)

    def loop(size: int, steps: int) -> None:
        run = ddp.resume(tmp_path, model=model)
        for _ in run.batches(ddp.loader(list(range(64)), global_batch_size=size)):
            if run.batch == steps:
                break
        run.save()

    loop(4, 3)
    with pytest.raises(SystemExit) as ended:
        loop(8, 9)
    assert ended.value.code == 78
    error = capsys.readouterr().err
    assert "3 batches into an epoch of another loader (global_batch_size 4 -> 8)" in error

    for file in tmp_path.iterdir():
        file.write_bytes(b"torn")
    with pytest.raises(SystemExit) as ended:
        loop(4, 3)
    assert ended.value.code == 78
    error = capsys.readouterr().err
    assert "none of the 1 checkpoint(s)" in error
    assert "its 4 bytes aren't those that were written" in error


def test_the_one_before_a_damaged_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from slurmgen import ddp

    notes = {"count": 0}
    run = ddp.resume(tmp_path, notes=notes)
    for _ in run.epochs(3):
        for _ in run.batches(range(4)):
            notes["count"] += 1
        run.save()
    newest = max(tmp_path.iterdir())
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 16
    newest.write_bytes(data)
    capsys.readouterr()

    notes = {"count": -1}
    run = ddp.resume(tmp_path, notes=notes)
    # The end of the third epoch was saved twice, in the epoch and after it.
    assert (run.step, notes) == (12, {"count": 12}) or (run.step, notes) == (8, {"count": 8})
    error = capsys.readouterr().err
    assert f"skips {newest.name}: its {len(data)} bytes aren't those" in error
    assert newest.name + ".damaged" in {file.name for file in tmp_path.iterdir()}


def test_without_a_folder_nothing_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from slurmgen import ddp

    monkeypatch.chdir(tmp_path)
    handler = signal.getsignal(signal.SIGTERM)
    run = ddp.resume(None, every_steps=1, notes={})
    assert [batch for _ in run.epochs(2) for batch in run.batches([1, 2])] == [1, 2, 1, 2]
    assert run.step == 4
    run.save()
    assert os.listdir(tmp_path) == []
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_checkpoint_asked_for_in_a_step_holds_the_whole_step(tmp_path: Path) -> None:
    from slurmgen import ddp

    notes = {"seen": 0}
    run = ddp.resume(tmp_path, notes=notes)
    for number in run.batches(range(4)):
        if number == 1:
            run.save()
            assert os.listdir(tmp_path) == []
        notes["seen"] += 1
    again: dict[str, int] = {}
    run = ddp.resume(tmp_path, notes=again)
    assert (run.batch, again) == (2, {"seen": 2})
    assert list(run.batches(range(4))) == [2, 3]


def test_checkpoints_fall_between_optimizer_steps(tmp_path: Path) -> None:
    from slurmgen import ddp

    run = ddp.resume(tmp_path, every_steps=1, keep=99)
    for _ in run.batches(range(10), accumulate=4):
        run._writer.wait()
    run._writer.wait()
    assert [one.step for one in run._store.found()] == [8, 4]


def test_an_epoch_that_is_done_holds_to_no_loader(tmp_path: Path) -> None:
    from slurmgen import ddp

    run = ddp.resume(tmp_path, notes={})
    assert list(run.batches(range(4))) == [0, 1, 2, 3]
    run.save()
    # As a plain loader of half as many ranks would be.
    run = ddp.resume(tmp_path, notes={})
    assert [list(run.batches(range(8))) for _ in run.epochs(2)] == [[], list(range(8))]


def test_term_before_training_ends_it_at_once(ranks: Ranks) -> None:
    ranks.write(
        "train.py",
        "import os, signal, sys, time\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
        "print('alive', flush=True)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "time.sleep(60)\n",
    )
    ended = ranks.run(
        "-m", "slurmgen.ddp", "train.py", SLURMGEN_LAUNCHER="plain", SLURMGEN_SIGNAL="USR1"
    )
    assert (ended.code, ended.out) == (-signal.SIGTERM, "alive\n"), ended


def test_a_late_signal_spoils_nothing(ranks: Ranks) -> None:
    ranks.write(
        "train.py",
        "import atexit, os, signal\n"
        "from slurmgen import ddp\n"
        "run = ddp.resume('saved')\n"
        "for _ in run.batches(range(3)): pass\n"
        "@atexit.register\n"
        "def late():\n"
        "    os.kill(os.getpid(), signal.SIGUSR2)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n",
    )
    ended = ranks.run(
        "-m", "slurmgen.ddp", "train.py", SLURMGEN_LAUNCHER="plain", SLURMGEN_SIGNAL="USR2"
    )
    assert ended.code == 0, ended


def test_a_signal_while_nothing_can_be_saved(ranks: Ranks) -> None:
    ranks.write(
        "train.py",
        "import os, signal\n"
        "from slurmgen import ddp\n"
        "run = ddp.resume('saved')\n"
        "def full(_): raise OSError(28, 'No space left on device')\n"
        "os.fsync = full\n"
        "for n in run.batches(range(9)):\n"
        "    if n == 3: os.kill(os.getpid(), signal.SIGTERM)\n",
    )
    ended = ranks.run("-m", "slurmgen.ddp", "train.py", SLURMGEN_LAUNCHER="plain")
    # 75 would say that everything is saved.
    assert ended.code == 1, ended
    assert "warning: no checkpoint of step 4 in saved: No space left on device" in ended.err


def test_spawned_ranks_save_when_their_parent_is_told(ranks: Ranks, port: int) -> None:
    ranks.write(
        "train.py",
        "import time\n"
        "from pathlib import Path\n"
        "from slurmgen import ddp\n"
        "ddp.init()\n"
        "run = ddp.resume('saved')\n"
        "for n in run.batches(range(10**6)):\n"
        "    Path(f'training{ddp.rank()}').touch()\n"
        "    time.sleep(0.01)\n",
    )
    process = ranks.start(
        *("-m", "slurmgen.ddp", "train.py"),
        SLURMGEN_LAUNCHER="spawn",
        SLURMGEN_SIGNAL="USR1",
        SLURMGEN_WORLD_SIZE="2",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        WORLD_SIZE="2",
        LOCAL_WORLD_SIZE="2",
        NODE_RANK="0",
    )
    while not all((ranks.folder / f"training{rank}").exists() for rank in (0, 1)):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGUSR1)
    ended = ranks.end()[0]
    assert ended.code == 75, ended
    assert "exit status 75" in ended.err


def test_fifty_kills(ranks: Ranks) -> None:
    """At random moments and in the middle of saves; see soak.py."""
    ended = ranks.run(str(Path(__file__).with_name("soak.py")), "--kills", "50", "--seed", "0")
    assert ended.code == 0, ended
    assert ended.out.endswith("every loss the same to the bit\n"), ended
