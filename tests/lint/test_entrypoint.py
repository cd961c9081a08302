"""A program that the entrypoint runs is read as any other, but for what the entrypoint mends."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurmgen.lint import engine, registry
from slurmgen.lint.job import load
from tests.lint.asking import TASKS

MISTAKES = Path(__file__).parents[2] / "docs" / "examples" / "entrypoint" / "mistakes" / "wrong.py"

MENDED = """
import os
import torch
import torch.distributed as dist
from torch import nn

os.environ["MASTER_ADDR"] = "localhost"
os.environ["MASTER_PORT"] = "12355"
rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
dist.init_process_group("nccl", rank=rank, world_size=size)
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 8).cuda())
model(torch.ones(8).cuda()).sum().backward()
"""


def said(command: str, program: str, folder: Path) -> list[str]:
    (folder / "train.py").write_text(program, encoding="utf-8")
    text = f"{TASKS}srun --kill-on-bad-exit=1 {command}\n"
    outcome = engine.check(load("job.sbatch", text, folder=folder), registry.rules())
    assert not outcome.failures
    return sorted(
        f"{one.rule} {one.location.line}"
        for one in outcome.diagnostics
        if one.location.path.endswith("train.py")
    )


@pytest.mark.parametrize("command", ["train.py", "train:main"])
def test_mistakes_in_the_program(command: str, tmp_path: Path) -> None:
    program = MISTAKES.read_text()
    expected = said("python train.py", program, tmp_path)
    assert [one.partition(" ")[0] for one in expected] == [
        "all-ranks-save",
        "device-global-rank",
        "no-set-epoch",
    ]
    assert said(f"python3 -m slurmgen.ddp {command}", program, tmp_path) == expected


def test_what_the_entrypoint_mends(tmp_path: Path) -> None:
    bare = said("python train.py", MENDED, tmp_path)
    assert {one.partition(" ")[0] for one in bare} >= {
        "fixed-port",
        "master-addr-localhost",
        "no-set-device",
    }
    assert said("python -m slurmgen.ddp train.py", MENDED, tmp_path) == []
