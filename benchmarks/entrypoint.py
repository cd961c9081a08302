"""What the entrypoint costs a training, with everything on, against the same loop in plain DDP.

    python benchmarks/entrypoint.py [--ranks 2] [--pairs 60] [--launches 5]

1. Step: under ``python -m slurmgen.ddp``, with checks, sampling and supervisors on, the loop over
   ``run.batches`` and a plain one take turns in one process, every sixth of a second, and each turn
   is compared with its neighbour. Not in two processes: two of the same program differ by more
   than what is to be measured. What runs beside the ranks all the time (a supervisor each, and
   threads that sample) can't take turns: its CPU time is given per second.
2. Start to first step: the rendered script and a hand-written srun line for plain DDP, one after
   the other on a sandbox. Left out where there is no Slurm.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEPS = """
import json, os, statistics, sys, time, warnings
warnings.simplefilter("ignore")
from functools import partial
from itertools import count, islice
from pathlib import Path
import torch
from torch import nn
from slurmgen import ddp

pairs = int(sys.argv[1])
ddp.init()
torch.manual_seed(0)
data = torch.randn(1 << 14, 32)
median = statistics.median

def timed(action):
    torch.distributed.barrier()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start

for rows in (64, 1024, 8192):
    model = nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 32))
    parallel = ddp.wrap(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    inputs = data[:rows]

    def step():
        loss = (parallel(inputs) - inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    run = ddp.resume(f"saved{rows}", every_minutes=60, model=parallel, optimizer=optimizer)
    for _ in range(20):
        step()
    steps = max(int(0.15 / median(timed(step) for _ in range(20))), 3)
    steps = int(ddp.all_mean(float(steps)))

    def take(batches, step=step, n=steps):
        for _ in islice(batches, n):
            step()

    # One epoch without an end: what its beginning costs is no matter of steps.
    ours, theirs = partial(take, run.batches(count())), partial(take, count())
    take(run.batches(count()))
    ratios, cpu_ratios, seconds = [], [], []
    for number in range(pairs):
        pair, cpu = {}, {}
        # Who begins changes, so that a machine that slows down favours neither.
        for action in (ours, theirs) if number % 2 else (theirs, ours):
            torch.distributed.barrier()
            used = time.process_time()
            pair[action] = timed(action)
            cpu[action] = time.process_time() - used
        cpu_ratios.append(cpu[ours] / cpu[theirs])
        ratios.append(pair[ours] / pair[theirs])
        seconds.append(pair[theirs] / steps)
    low, middle, high = statistics.quantiles(ratios, n=4)
    ddp.print0(
        f"step of {median(seconds) * 1e3:7.2f} ms: {(middle - 1) * 100:+.2f} %"
        f" (quartiles {(low - 1) * 100:+.2f}, {(high - 1) * 100:+.2f}), CPU time"
        f" {(median(cpu_ratios) - 1) * 100:+.2f} %; {pairs} pairs of {steps} steps"
    )
ddp.shutdown()
"""

FIRST_STEP = """
import sys, time
import torch
from torch import nn
if sys.argv[1] == "ours":
    from slurmgen import ddp
    ddp.init()
    parallel = ddp.wrap(nn.Linear(8, 8))
else:
    torch.distributed.init_process_group("gloo")
    parallel = nn.parallel.DistributedDataParallel(nn.Linear(8, 8))
parallel(torch.ones(1, 8)).sum().backward()
print("first step at", time.time(), flush=True)
"""

BY_HAND = """#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --mem=1G --output=log
date +'started at %s.%N'
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_ADDR=$(scontrol -o show node "$MASTER_ADDR" | sed -n 's/.* NodeAddr=\\([^ ]*\\).*/\\1/p')
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000)) OMP_NUM_THREADS=1
srun --export=ALL bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID \\
  exec python first.py theirs'
"""


def compare_steps(folder: Path, ranks: int, pairs: int) -> None:
    (folder / "steps.py").write_text(STEPS)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = {
        "WORLD_SIZE": ranks,
        "LOCAL_WORLD_SIZE": ranks,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "OMP_NUM_THREADS": 1,
        "PYTHONPATH": ROOT,
    }
    environment = {**os.environ, **{name: str(value) for name, value in place.items()}}
    start = time.monotonic()
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "slurmgen.ddp", "steps.py", str(pairs)],
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            cwd=folder,
            stderr=subprocess.DEVNULL,
        )
        for rank in range(ranks)
    ]
    beside = 0.0
    while children[0].poll() is None:
        # The process that was started supervises, where it isn't the rank itself.
        beside = max(beside, _cpu(children[0].pid)) if _children(children[0].pid) else 0.0
        time.sleep(0.2)
    seconds = time.monotonic() - start
    if any([child.wait() for child in children]):  # noqa: C419 - all of them
        raise SystemExit("a rank failed")
    print(f"a supervisor: {beside / seconds * 1e3:.2f} ms of CPU time a second", flush=True)


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _cpu(pid: int) -> float:
    """Seconds of CPU time that the process's main thread has used."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def compare_starts(folder: Path, launches: int) -> None:
    from slurmgen.errors import SlurmgenError
    from slurmgen.sandbox import Sandbox

    (folder / "first.py").write_text(FIRST_STEP)
    (folder / "by-hand.sbatch").write_text(BY_HAND)
    job = "nodes: 2\nntasks_per_node: 1\nmem: 1G\noutput: log\nddp: first.py\nargs: [ours]\n"
    (folder / "job.yaml").write_text(job + "setup:\n  commands: [\"date +'started at %s.%N'\"]\n")
    rendered = subprocess.run(
        [sys.executable, "-m", "slurmgen", "render", "job.yaml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        stdout=subprocess.PIPE,
    )
    (folder / "ours.sbatch").write_bytes(rendered.stdout)
    try:
        sandbox = Sandbox.up(name="benchmark", directory=folder / "sandbox")
    except SlurmgenError as error:
        print(f"start to first step: left out, {error}")
        return
    taken: dict[str, list[float]] = {"ours": [], "by-hand": []}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with sandbox:
        for number in range(2 * launches):
            name = ("ours", "by-hand")[number % 2]
            (folder / "log").unlink(missing_ok=True)
            sandbox.run(
                ["sbatch", "--wait", f"{name}.sbatch"],
                cwd=folder,
                extra={"PATH": path, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
            )
            log = (folder / "log").read_text()
            start, *first = _times(log)
            if len(first) != 2:
                raise SystemExit(log)
            taken[name].append(max(first) - start)
    for name, seconds in taken.items():
        print(
            f"start to first step, {name:7}: {statistics.median(seconds):.2f} s"
            f" ({min(seconds):.2f} to {max(seconds):.2f}, {launches} launches)"
        )


def _times(log: str) -> list[float]:
    return [float(text) for text in re.findall(r"(?:started|first step) at ([\d.]+)", log)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--launches", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        compare_steps(Path(name), options.ranks, options.pairs)
        compare_starts(Path(name), options.launches)


if __name__ == "__main__":
    main()
