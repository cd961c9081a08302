"""Several ranks where torch is all there is: no NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

# The fixture's class lives in a conftest, which importlib mode doesn't let a test import.
Ranks = Any

pytestmark = pytest.mark.torch

# argv: shard or ddp, epochs
PROGRAM = """
import sys
import torch
from slurmgen import ddp

kind, epochs = sys.argv[1:]


def main():
    try:
        torch.zeros(1).numpy()
    except RuntimeError:
        pass
    else:
        raise AssertionError("there is NumPy")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    model = ddp.wrap(model, shard=[torch.nn.Linear] if kind == "shard" else None)
    optimizer = torch.optim.AdamW(model.parameters())
    own = {"seen": 0.0}
    run = ddp.resume(kind, every_steps=2, model=model, optimizer=optimizer, own=own)
    loader = ddp.loader(torch.utils.data.TensorDataset(torch.randn(32, 4)), global_batch_size=8)
    for _ in run.epochs(int(epochs)):
        for (batch,) in run.batches(loader):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
            own["seen"] += 1
    print(run.resumed, own["seen"], ddp.load(kind)["slurmgen"]["step"])
"""


@pytest.mark.parametrize("kind", ["ddp", "shard"])
def test_a_run_is_saved_and_goes_on(
    ranks: Ranks, step: Callable[..., dict[str, str]], port: int, kind: str
) -> None:
    ranks.write("train.py", PROGRAM)
    for epochs, expected in ((1, "False 4.0 4\n"), (2, "True 8.0 8\n")):
        for rank in (0, 1):
            env = step(rank, 2, port)
            words = ("-W", "ignore", "-c", START, str(ranks.folder), "train:main", kind)
            ranks.start(*words, str(epochs), **env)
        ended = ranks.end()
        assert [one.code for one in ended] == [0, 0], ended
        assert [one.out for one in ended] == [expected] * 2


# In place of ``-m slurmgen.ddp``, so that NumPy is hidden before anything is imported.
START = """
import sys
sys.modules["numpy"] = None
sys.path.insert(0, sys.argv.pop(1))
from slurmgen.ddp.launch import entry
sys.exit(entry.main(sys.argv[1:]))
"""
