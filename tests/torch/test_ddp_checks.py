"""Mistakes are found while training, and right programs of all styles hear nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

# The fixture's class lives in a conftest, which importlib mode doesn't let a test import.
Ranks = Any

pytestmark = pytest.mark.torch

PROGRAMS = Path(__file__).with_name("checks_programs.py")


@pytest.mark.parametrize("table", ["wrong", "right"])
def test_programs(ranks: Ranks, port: int, step: Callable[..., dict[str, str]], table: str) -> None:
    ranks.write("programs.py", PROGRAMS.read_text())
    for rank in range(2):
        # Each program brings checks of its own.
        env = step(rank, 2, port, SLURMGEN_CHECKS="off", SLURM_CPUS_PER_TASK="1")
        ranks.start("-m", "slurmgen.ddp", f"programs:{table}", **env)
    ended = ranks.end()
    assert [one.code for one in ended] == [0, 0], ended
    assert "".join(one.out for one in ended) == ""


WRONG_FOR_LONG = """
import hashlib, random
import torch, torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Noise(Dataset):
    def __len__(self): return 48
    def __getitem__(self, index): return torch.randn(12) + random.random(), index % 3

dist.init_process_group("gloo")
torch.manual_seed(3)
random.seed(3)
model = nn.Sequential(
    nn.Linear(12, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 3)
)
parallel = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(parallel.parameters())
loader = DataLoader(Noise(), 4, shuffle=True)
for epoch in range(2):
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(parallel(inputs), labels).backward()
        optimizer.step()
state = [*model.state_dict().values(), torch.get_rng_state()]
print(hashlib.sha256(repr([one.tolist() for one in state]).encode()).hexdigest(), random.random())
torch.save(model.state_dict(), "model.pt")
dist.destroy_process_group()
"""


def test_a_plain_program_hears_of_it_once_and_has_the_same_numbers(
    ranks: Ranks, port: int, step: Callable[..., dict[str, str]]
) -> None:
    ranks.write("train.py", WRONG_FOR_LONG)
    ended = {}
    for switch in ("on", "off"):
        for rank in range(2):
            env = step(rank, 2, port, SLURMGEN_CHECKS=switch)
            ranks.start("-m", "slurmgen.ddp", "train.py", **env)
        ended[switch] = ranks.end()
        assert [one.code for one in ended[switch]] == [0, 0], ended
    said = "".join(one.err for one in ended["on"])
    assert said.count("warning:") == 2, said
    assert said.count("ranks 0, 1 train on the same batches") == 1
    assert said.count("model.pt, over each other's") == 1
    assert not any("warning:" in one.err for one in ended["off"])
    assert [one.out for one in ended["on"]] == [one.out for one in ended["off"]]


def test_the_example_hears_nothing(ranks: Ranks, port: int, digits: str) -> None:
    sizes = ("--epochs", "2", "--train-size", "1024", "--checkpoint", "digits.pt")
    ranks.start_step(digits, *sizes, port=port)
    ended = ranks.end()
    assert [one.code for one in ended] == [0, 0], ended
    assert not any("warning:" in one.err for one in ended), ended
