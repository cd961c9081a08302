"""The stall of a checkpoint.

    python benchmarks/checkpoint.py [--ranks 2] [--megabytes 64] [--rounds 12]

How much longer a step that saves takes than one that doesn't, with ``torch.save`` in the loop (what
people write, with neither fsync nor a proof) and with ddp.resume in the background.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT = Path(__file__).resolve().parent.parent


def median(values: Iterable[float]) -> float:
    return statistics.median(list(values))


def rank(megabytes: int, rounds: int) -> None:
    warnings.simplefilter("ignore")
    import torch
    from torch import nn

    from slurmgen import ddp

    ddp.init()
    torch.manual_seed(0)
    data = torch.randn(1 << 14, 32)

    def build(width: int, rows: int) -> tuple[nn.Module, torch.optim.Optimizer, Callable[[], None]]:
        model = nn.Sequential(nn.Linear(32, width), nn.Tanh(), nn.Linear(width, 32))
        parallel = ddp.wrap(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        inputs = data[:rows]

        def step() -> None:
            loss = (parallel(inputs) - inputs).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return parallel, optimizer, step

    def timed(action: Callable[[], object]) -> float:
        torch.distributed.barrier()
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    # Parameters and momentum: two floats of four bytes for each of about 65 * width.
    model, optimizer, step = build(megabytes * (1 << 20) // (65 * 8), rows=64)
    for _ in range(5):
        step()

    def in_the_loop() -> None:
        step()
        if ddp.is_main():
            content = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(content, "loop.pt")
        torch.distributed.barrier()

    run = ddp.resume("saved", every_minutes=None, model=model, optimizer=optimizer)

    def background() -> None:
        step()
        run._save(wait=False)
        torch.distributed.barrier()

    def neither() -> None:
        step()
        torch.distributed.barrier()

    # Each beside a step that doesn't save, since the machine's speed changes meanwhile.
    plain, saving, during, normal = [], [], [], []
    for _ in range(rounds):
        before = timed(neither)
        normal.append(before)
        plain.append(timed(in_the_loop) - before)
        before = timed(neither)
        saving.append(timed(background) - before)
        during.append(timed(neither) / before)
        run._writer.wait()
        run.step += 1
    ddp.print0(
        f"checkpoint of {megabytes} MiB, {ddp.world_size()} ranks, step of"
        f" {median(normal) * 1e3:.1f} ms\n"
        f"  stall, torch.save in the loop  {median(plain) * 1e3:7.1f} ms\n"
        f"  stall, ddp.resume              {median(saving) * 1e3:7.1f} ms"
        f"  (the step after it {median(during):.2f} times as long: it is being written)"
    )

    ddp.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    if "RANK" in os.environ:
        rank(options.megabytes, options.rounds)
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        place = {
            "WORLD_SIZE": options.ranks,
            "LOCAL_WORLD_SIZE": options.ranks,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "OMP_NUM_THREADS": 1,
            "PYTHONPATH": ROOT,
        }
        environment = {**os.environ, **{name: str(value) for name, value in place.items()}}
        children = [
            subprocess.Popen(
                [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:]],
                env={**environment, "RANK": str(number), "LOCAL_RANK": str(number)},
                cwd=folder,
                stderr=subprocess.DEVNULL if number else None,
            )
            for number in range(options.ranks)
        ]
        if any([child.wait() for child in children]):  # noqa: C419 - all of them
            raise SystemExit(1)


if __name__ == "__main__":
    main()
