"""Learn to read digits, on one process or on many.

The images are drawn by this file from a seed: nothing is downloaded. The loss depends on the
global batch size, not on the number of ranks.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import Dataset

from slurmgen import ddp

GLYPHS = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)
SIZE = 16


class Digits(Dataset[tuple[torch.Tensor, int]]):
    """`length` images of 1 x 16 x 16 with their digits: shifted, scaled, sheared and noisy.

    The same seed and length give the same images everywhere.
    """

    def __init__(self, length: int, seed: int) -> None:
        rng = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(10, (length,), generator=rng)
        rows = [[float(bit) for bit in glyph.replace(" ", "")] for glyph in GLYPHS]
        glyphs = F.pad(torch.tensor(rows).view(10, 1, 7, 5), (1, 2, 1, 0))
        glyphs = F.interpolate(glyphs, size=(SIZE, SIZE), mode="bilinear")

        def between(low: float, high: float) -> torch.Tensor:
            return low + (high - low) * torch.rand(length, generator=rng)

        across = (between(0.9, 1.6), between(-0.3, 0.3), between(-0.4, 0.4))
        down = (between(-0.2, 0.2), between(0.9, 1.6), between(-0.4, 0.4))
        transform = torch.stack((*across, *down), dim=1).view(length, 2, 3)
        grid = F.affine_grid(transform, [length, 1, SIZE, SIZE], align_corners=False)
        images = F.grid_sample(glyphs[self.labels], grid, align_corners=False)
        self.images = images + 0.3 * torch.randn(images.shape, generator=rng)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.images[index], int(self.labels[index])


def build_model() -> nn.Module:
    """A small CNN whose training doesn't depend on the number of ranks.

    No BatchNorm and no dropout, which would depend on each rank's share. No ReLU and no
    max-pooling either: at their kinks the last bit of a sum, whose order is the ranks' number's,
    decides between two gradients, and the runs drift apart by parts in a hundred.
    """
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1),
        nn.GELU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64),
        nn.GELU(),
        nn.Linear(64, 10),
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--global-batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train-size", type=int, default=8192)
    parser.add_argument("--checkpoint", type=Path, default=Path("checkpoints/digits.pt"))
    # A requeued job keeps its id, and so finds what it has done; another job starts anew.
    job = os.environ.get("SLURM_JOB_ID")
    folder = Path(f"checkpoints/job-{job}") if job else None
    parser.add_argument("--resume", type=Path, default=folder, metavar="FOLDER")
    parser.add_argument("--save-steps", type=int)
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    ddp.init()
    device = ddp.device()
    if device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ:
        # Images this small gain nothing from more threads, and threads of several ranks fight.
        torch.set_num_threads(1)
    torch.manual_seed(options.seed)

    train_set = Digits(options.train_size, seed=options.seed)
    test_set = Digits(1024, seed=options.seed + 1)
    batches = ddp.loader(train_set, global_batch_size=options.global_batch_size, seed=options.seed)
    test_batches = ddp.loader(
        test_set, global_batch_size=128 * ddp.world_size(), shuffle=False, drop_last=False
    )

    model = build_model()
    parallel = ddp.wrap(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.lr, epochs=options.epochs, steps_per_epoch=len(batches)
    )

    on_gpu = device.type == "cuda"
    # Older GPUs only emulate bfloat16.
    modern = on_gpu and torch.cuda.get_device_capability(device) >= (8, 0)
    half = torch.bfloat16 if modern else torch.float16
    # bfloat16 has float32's range; only float16 gradients need scaling.
    scaler = torch.amp.GradScaler(device.type, enabled=on_gpu and half is torch.float16)

    def precision() -> torch.autocast | nullcontext[None]:
        return torch.autocast("cuda", dtype=half) if on_gpu else nullcontext()

    ddp.print0(f"device {device.type}, precision {half if on_gpu else torch.float32}")

    total = torch.zeros((), device=device)
    run = ddp.resume(
        options.resume,
        model=parallel,
        optimizer=optimizer,
        schedule=schedule,
        scaler=scaler,
        total=total,
        every_steps=options.save_steps,
    )
    for epoch in run.epochs(options.epochs):
        start, before = time.perf_counter(), run.batch
        for images, labels in run.batches(batches):
            with precision():
                loss = F.cross_entropy(parallel(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            total += loss.detach()
        loss_mean = ddp.all_mean(total / len(batches)).item()
        seconds = time.perf_counter() - start

        right, seen = torch.zeros((), device=device), torch.zeros((), device=device)
        with torch.inference_mode():
            for images, labels in test_batches:
                with precision():
                    guesses = model(images.to(device)).argmax(1)
                right += (guesses == labels.to(device)).sum()
                seen += len(labels)
        accuracy = (ddp.all_mean(right) / ddp.all_mean(seen)).item()
        speed = (run.batch - before) * options.global_batch_size / seconds
        ddp.print0(
            f"epoch {epoch + 1}/{options.epochs} loss {loss_mean:.6f}"
            f" accuracy {accuracy:.4f} images/s {speed:.0f}"
        )
        total.zero_()

    ddp.save({"model": model.state_dict(), "epochs": options.epochs}, options.checkpoint)
    ddp.print0(f"checkpoint {options.checkpoint.resolve()}")
    ddp.shutdown()


if __name__ == "__main__":
    main()
