"""What real ranks say of how they spent their time."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

# The fixture's class lives in a conftest, which importlib mode doesn't let a test import.
Ranks = Any

pytestmark = pytest.mark.torch

# argv: any of: slow-data, slow-rank, stop, fail
PROGRAM = """
import os, signal, sys, time
import torch
from slurmgen import ddp
from slurmgen.ddp.measure import meter, usage
from slurmgen.ddp.train import progress

usage.SHORTEST_S = meter.LOOK_S = progress.FIRST_S = 0


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        if "slow-data" in sys.argv:
            time.sleep(0.05)
        return torch.ones(4)


def main():
    model = ddp.wrap(torch.nn.Linear(4, 1))
    loader = ddp.loader(Slow(), global_batch_size=2 * ddp.world_size())
    run = ddp.resume("saved", model=model)
    for epoch in run.epochs(1):
        for batch in run.batches(loader):
            if "slow-rank" in sys.argv and ddp.rank() == 1:
                time.sleep(0.05)
            model(batch).sum().backward()
            if run.batch == 1 and "stop" in sys.argv:
                os.kill(os.getpid(), signal.SIGUSR1)
            if run.batch == 1 and "fail" in sys.argv:
                raise ValueError("broken")
"""


def train(ranks: Ranks, step: Callable[..., dict[str, str]], port: int, word: str) -> Any:
    ranks.write("job.py", PROGRAM)
    for rank in range(2):
        env = step(rank, 2, port, SLURMGEN_PROGRESS="job-7.progress", SLURM_RESTART_COUNT="1")
        ranks.start("-m", "slurmgen.ddp", "job:main", word, **env)
    ended = ranks.end()
    assert [e.code for e in ended] == [0, 0], ended
    lines = (ranks.folder / "job-7.usage.jsonl").read_text().splitlines()
    run, *told = map(json.loads, lines)
    assert (run["kind"], run["world_size"], run["ended"]) == ("run", 2, "done")
    assert [(one["rank"], one["steps"], one["restart"]) for one in told] == [(0, 12, 1), (1, 12, 1)]
    for line in run["summary"]:
        assert line in ended[0].err
        assert line not in ended[1].err
    # Rank 0 alone says how far it is.
    assert "epoch 1 of 1, step 1 (batch 1 of 12, 8 %)" in ended[0].err
    assert "steps/s" not in ended[1].err
    return run["summary"], told


def test_a_loader_that_is_too_slow(
    ranks: Ranks, step: Callable[..., dict[str, str]], port: int
) -> None:
    (overview, *findings), told = train(ranks, step, port, "slow-data")
    assert re.match(r"12 steps in .*, waiting for data \d\d %; CPUs \d+ % busy$", overview)
    assert findings[0].startswith("both ranks wait for data ")
    assert all(one["data_wait_share"] > 0.5 for one in told)
    assert all(one["step_s_median"] >= 0.1 for one in told)


def test_a_rank_that_is_slower_than_the_others(
    ranks: Ranks, step: Callable[..., dict[str, str]], port: int
) -> None:
    (_, *findings), told = train(ranks, step, port, "slow-rank")
    assert findings[0].startswith("rank 1 on n1 is slower than the others: they wait for it ")
    # The step's own time doesn't show it.
    assert told[0]["step_s_median"] == pytest.approx(told[1]["step_s_median"], rel=0.5)
    assert told[0]["peer_wait_s_median"] > told[1]["peer_wait_s_median"]


@pytest.mark.parametrize(
    ("word", "code", "ended", "said"),
    [("stop", 75, "stopped", "; CPUs "), ("fail", 1, "failed", "ValueError: broken")],
)
def test_a_run_that_ends_early(ranks: Ranks, word: str, code: int, ended: str, said: str) -> None:
    ranks.write("job.py", PROGRAM)
    env = {"SLURMGEN_SIGNAL": "USR1", "SLURMGEN_FAILURE": "logs-7.failure.json"}
    done = ranks.run("-m", "slurmgen.ddp", "job:main", word, **env)
    assert done.code == code, done
    assert said in done.err
    assert ("% busy" in done.err) == (ended == "stopped")
    run, alone = map(json.loads, (ranks.folder / "logs-7.usage.jsonl").read_text().splitlines())
    assert (run["ended"], alone["rank"], run["job"]) == (ended, 0, "")
