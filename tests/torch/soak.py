"""Trains, is killed at random moments, goes on, and compares every loss with an untouched run's.

    python tests/torch/soak.py --kills 50 --seed 0
    python tests/torch/soak.py --kills 50 --seed 0 --shard

Half of the kills come at a random moment from outside, half at a chosen system call of a save.
The processes are forks of this one, which has imported torch for all of them.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import shutil
import signal
import socket
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

warnings.simplefilter("ignore")

import torch  # noqa: E402
from torch import nn  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

# The constructor of DDP would import it, at a second in each life.
importlib.import_module("torch._dynamo")
importlib.import_module("slurmgen.ddp.train.checkpoints.folders")
importlib.import_module("slurmgen.ddp.train.sharding")
ddp = importlib.import_module("slurmgen.ddp")
for _name in ddp.__all__:
    getattr(ddp, _name)

RANKS = 2
EPOCHS = 5
BATCHES = 24
# Where a save can be hit.
POINTS = ("open", "write", "fsync", "replace", "unlink", "after replace")
# With --shard, where any rank can be hit.
SHARD_POINTS = (*POINTS, "mkdir", "rename", "after rename")


def train(log: Path, shard: bool) -> None:
    ddp.init()
    torch.manual_seed(3)
    random.seed(ddp.rank())
    model = nn.Sequential(
        nn.Linear(8, 64), nn.Tanh(), nn.Dropout(0.1), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )
    if shard:
        parallel = ddp.wrap(model, shard=[nn.Linear])
    else:
        parallel = ddp.wrap(model, bucket_cap_mb=0.01)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    total = torch.zeros(())
    data = torch.randn(BATCHES * 8, 8, generator=torch.Generator().manual_seed(1))
    loader = ddp.loader(data, global_batch_size=8)
    run = ddp.resume("saved", every_steps=3, model=parallel, optimizer=optimizer, total=total)
    Path(f"training.{ddp.rank()}").touch()
    with log.with_suffix(f".{ddp.rank()}").open("a", buffering=1) as seen:
        for _ in run.epochs(EPOCHS):
            for inputs in run.batches(loader):
                loss = (parallel(inputs) - inputs.sum(1, keepdim=True)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach()
                seen.write(f"{run.step} {loss.item().hex()} {random.random()} {total.item()}\n")
    ddp.shutdown()


def arm(point: str, passes: int) -> None:
    """Kill this process in the system call `point` of a save, after letting `passes` through."""
    from slurmgen.ddp.train.checkpoints import digests

    left = passes

    def armed(original: Callable[..., Any], after: bool = False) -> Callable[..., Any]:
        def call(*words: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0 and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*words, **options)
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    if point == "write":

        def torn(self: Any, data: bytes) -> int:
            nonlocal left
            left -= 1
            if left < 0:
                self._file.write(bytes(data)[: len(data) // 2])
                self._file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            return whole(self, data)

        whole = digests.Digesting.write
        digests.Digesting.write = torn  # type: ignore[method-assign]
    elif point == "fsync":
        os.fsync = armed(os.fsync)
    else:
        name = point.removeprefix("after ")
        setattr(Path, name, armed(getattr(Path, name), after=point != name))


def start(
    folder: Path,
    log: str,
    port: int,
    strike: tuple[str, int] | None = None,
    *,
    shard: bool,
    victim: int = 0,
) -> list[int]:
    children = []
    for rank in range(RANKS):
        child = os.fork()
        if child:
            children.append(child)
            continue
        os.chdir(folder)
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": RANKS, "MASTER_PORT": port}
        os.environ.update({name: str(value) for name, value in place.items()})
        os.environ.update(LOCAL_WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1")
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        with open(f"{log}.err{rank}", "a") as errors:
            os.dup2(errors.fileno(), 2)
        code = 1
        try:
            if strike and rank == victim:
                arm(*strike)
            train(Path(log), shard)
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    return children


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def wait_for_any(children: list[int], until: float = float("inf")) -> None:
    while time.monotonic() < until and not any(map(ended, children)):
        time.sleep(0.001)


def collect(children: list[int], delay: float) -> list[int]:
    """Exit codes; once one isn't 0, the launcher kills the others after `delay`."""
    codes: dict[int, int] = {}
    while len(codes) < len(children):
        for child in children:
            if child not in codes and ended(child):
                codes[child] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if any(codes.values()):
            time.sleep(delay)
            for child in children:
                if child not in codes and not ended(child):
                    os.kill(child, signal.SIGKILL)
        time.sleep(0.001)
    return [codes[child] for child in children]


def live(folder: Path, log: str, rng: random.Random, *, shard: bool) -> str:
    """One life of a run: "whole" where it came to its end, else how it was killed."""
    for rank in range(RANKS):
        (folder / f"training.{rank}").unlink(missing_ok=True)
    points = SHARD_POINTS if shard else POINTS
    strike = (rng.choice(points), rng.randrange(20)) if rng.random() < 0.5 else None
    delay, pause, victim = rng.uniform(0, 0.02), rng.uniform(0, 0.25), rng.randrange(RANKS)
    # A file is rank 0's alone.
    struck = victim if shard else 0
    children = start(folder, log, free_port(), strike, shard=shard, victim=struck)
    if strike:
        wait_for_any(children)
    else:
        while not (folder / "training.0").exists() and not any(map(ended, children)):
            time.sleep(0.001)
        wait_for_any(children, time.monotonic() + pause)
        if not any(map(ended, children)):
            os.kill(children[victim], signal.SIGKILL)
    codes = collect(children, delay)
    if not any(codes):
        return "whole"
    errors = "".join((folder / f"{log}.err{rank}").read_text() for rank in range(RANKS))
    assert -signal.SIGKILL in codes, f"{codes}: {errors}"
    return "in a save" if strike else "at any moment"


def read(path: Path) -> dict[int, set[str]]:
    """What each step drew and lost, in whatever life; a torn last line counts for nothing."""
    steps: dict[int, set[str]] = {}
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            step, _, rest = line.strip().partition(" ")
            steps.setdefault(int(step), set()).add(rest)
    return steps


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shard", action="store_true", help="FSDP2 in place of DDP")
    parser.add_argument("--folder", type=Path, default=Path("soak"))
    options = parser.parse_args()
    rng = random.Random(options.seed)
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    torch.set_num_threads(1)

    codes = collect(start(folder, "whole", free_port(), shard=options.shard), 0)
    assert not any(codes), (folder / "whole.err0").read_text()
    whole = [read(folder / f"whole.{rank}") for rank in range(RANKS)]
    assert all(sorted(steps) == list(range(EPOCHS * BATCHES)) for steps in whole)

    kills: Counter[str] = Counter()
    runs = 0
    while sum(kills.values()) < options.kills:
        shutil.rmtree(folder / "saved")
        while (how := live(folder, f"run{runs}", rng, shard=options.shard)) != "whole":
            kills[how] += 1
        for rank in range(RANKS):
            assert read(folder / f"run{runs}.{rank}") == whole[rank], f"run {runs}, rank {rank}"
        left = [path.name for path in (folder / "saved").iterdir()]
        # One that died between its last file and the removal of the oldest left that.
        assert len(left) <= 4, left
        assert all(name.endswith(".pt") != options.shard for name in left), left
        assert all(name.startswith("step-") for name in left), left
        runs += 1
    print(
        f"{sum(kills.values())} kills in {runs} runs, {kills['in a save']} in a save:"
        " every loss the same to the bit"
    )


if __name__ == "__main__":
    main()
