"""The example on a real GPU."""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any

import pytest

# The fixture's class lives in a conftest, which importlib mode doesn't let a test import.
Ranks = Any


@pytest.mark.gpu
def test_one_rank_on_one_gpu(ranks: Ranks, digits: str) -> None:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    ended = ranks.run(
        *("-m", "slurmgen.ddp", digits, "--epochs=4"),
        SLURMGEN_LAUNCHER="plain",
        SLURMGEN_WORLD_SIZE="1",
        CUDA_VISIBLE_DEVICES=visible,
        CUDA_DEVICE_ORDER="PCI_BUS_ID",
    )
    assert ended.code == 0, ended
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True)
    uuids = re.findall(r"UUID: (\S+?)\)", listed.stdout)
    expected = uuids[int(visible)] if visible.isdecimal() else visible
    title, _, row, *_ = ended.err[ended.err.index("slurmgen.ddp ") :].splitlines()
    assert title.endswith(" rank 0: 1 rank(s) on 1 node(s), backend nccl")
    assert "cuda:0" in row
    assert row.split()[-1].startswith(expected)

    precision, *epochs, _ = ended.out.splitlines()
    assert precision in {
        "device cuda, precision torch.bfloat16",
        "device cuda, precision torch.float16",
    }
    assert float(epochs[-1].split()[5]) > 0.9, epochs
