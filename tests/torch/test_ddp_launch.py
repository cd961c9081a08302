"""Each way to start ranks, and each way that goes wrong, with real processes."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    # The fixture's class lives in a conftest, which importlib mode doesn't let a test import.
    Ranks = Any

pytestmark = pytest.mark.torch

TWICE = """
import sys, time
import torch, torch.distributed as dist
from slurmgen import ddp

assert __name__ == "__main__" and sys.argv == ["train.py", "--flag"], sys.argv
assert sys.modules["__main__"].__file__.endswith("train.py")
for turn in range(3):
    # Another rank each turn is late: it must not find the addresses of the turn before.
    if turn and dist_rank == turn % 2:
        time.sleep(1)
    dist.init_process_group("gloo")
    dist_rank = dist.get_rank()
    total = torch.tensor(dist_rank + 1.0)
    dist.all_reduce(total)
    assert total == 3 and ddp.rank() == dist_rank
    if turn < 2:
        dist.destroy_process_group()
print("rank", ddp.rank(), "of", ddp.world_size(), "turns", turn + 1)
"""


def test_a_step_runs_a_script_that_makes_its_own_groups(ranks: Ranks, port: int) -> None:
    ranks.write("train.py", TWICE)
    ranks.start_step("train.py", "--flag", port=port)
    ended = ranks.end()
    assert [(e.code, e.out) for e in ended] == [
        (0, "rank 0 of 2 turns 3\n"),
        (0, "rank 1 of 2 turns 3\n"),
    ], ended
    title, *table = ended[0].err.splitlines()[:4]
    assert title.endswith(" rank 0: 2 rank(s) on 1 node(s), backend gloo")
    assert table == [
        "rank  host  local  device  gpu  uuid",
        "0     n1    0      cpu     -    -",
        "1     n1    1      cpu     -    -",
    ]
    assert ended[1].err == ""


OWN_MEETING = """
import os, socket
import torch, torch.distributed as dist

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
taken = socket.create_server(("127.0.0.1", 0))
port = taken.getsockname()[1] if rank else 1
os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", str(port)
methods = [
    {},
    {"init_method": "env://", "rank": rank, "world_size": size},
    {"init_method": f"tcp://nowhere.invalid:{port}", "rank": rank, "world_size": size},
]
for options in methods:
    dist.init_process_group("gloo", **options)
    total = torch.tensor(rank + 1.0)
    dist.all_reduce(total)
    assert total == 3
    dist.destroy_process_group()
# Not of all ranks: the program's own affair.
with socket.create_server(("127.0.0.1", 0)) as probe:
    free = probe.getsockname()[1]
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{free}", rank=0, world_size=1)
print("alone in", dist.get_world_size())
"""


def test_a_program_that_names_its_own_meeting_place(ranks: Ranks, port: int) -> None:
    """Ports that are taken, and differ from rank to rank, at a host that isn't there."""
    ranks.write("train.py", OWN_MEETING)
    ranks.start_step("train.py", port=port)
    assert [(e.code, e.out) for e in ranks.end()] == [(0, "alone in 1\n")] * 2


def test_two_ranks_that_call_themselves_0(ranks: Ranks, port: int) -> None:
    """With the local rank in place of the rank: torch alone waits for rank 1 for half an hour."""
    ranks.write(
        "train.py",
        "import torch.distributed as dist\ndist.init_process_group('gloo', rank=0, world_size=2)\n",
    )
    ranks.start_step("train.py", port=port)
    ended = ranks.end()
    assert [one.code for one in ended] == [1, 1], ended
    assert "two ranks call init_process_group(rank=0)" in "".join(one.err for one in ended)


def test_torchrun(ranks: Ranks, env_ddp: str) -> None:
    ended = ranks.run(
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
        *("-m", "slurmgen.ddp", env_ddp),
        SLURMGEN_LAUNCHER="torchrun",
        SLURMGEN_WORLD_SIZE="2",
    )
    assert ended.code == 0, ended
    host = socket.gethostname()
    assert sorted(ended.out.splitlines()) == [
        f"rank {rank} of 2 on {host} local {rank} sum 3" for rank in (0, 1)
    ]
    assert "2 rank(s) on 1 node(s)" in ended.err


def spawn(port: int, world_size: int) -> dict[str, str]:
    return {
        "SLURMGEN_LAUNCHER": "spawn",
        "SLURMGEN_WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
        "NODE_RANK": "0",
    }


def test_spawn_ends_all_when_one_dies(ranks: Ranks, port: int) -> None:
    ranks.write(
        "job.py",
        "import os, time\n"
        "import torch.distributed as dist\n"
        "def main():\n"
        "    assert dist.is_initialized()\n"
        "    os.kill(os.getpid(), 9) if dist.get_rank() == 1 else time.sleep(600)\n",
    )
    ended = ranks.run("-m", "slurmgen.ddp", "job:main", **spawn(port, 2))
    assert ended.code == 128 + 9, ended
    assert "ended with signal 9; ending the others" in ended.err


def test_spawn_ends_with_the_code_of_the_rank_that_failed(ranks: Ranks, port: int) -> None:
    ranks.write(
        "train.py",
        "import sys\nfrom slurmgen import ddp\nsys.exit(3) if ddp.rank() == 1 else print('done')\n",
    )
    ended = ranks.run("-m", "slurmgen.ddp", "train.py", **spawn(port, 2))
    assert (ended.code, ended.out) == (3, "done\n"), ended


def test_plain(ranks: Ranks, env_ddp: str) -> None:
    ended = ranks.run(
        "-m", "slurmgen.ddp", env_ddp, SLURMGEN_LAUNCHER="plain", SLURMGEN_WORLD_SIZE="1", RANK="3"
    )
    assert ended.code == 0, ended
    assert ended.out.startswith("rank 0 of 1 on ")


def test_the_same_loss_on_1_2_and_8_ranks(ranks: Ranks, digits: str, port: int) -> None:
    arguments = ("--epochs=3", "--train-size=1024", "--global-batch-size=64")
    # First without any launcher or entrypoint.
    runs = [ranks.run(digits, *arguments)]
    for world_size in (2, 8):
        words = ("-m", "slurmgen.ddp", digits, *arguments)
        runs.append(ranks.run(*words, **spawn(port, world_size)))
    assert [run.code for run in runs] == [0, 0, 0], runs
    one, two, eight = (
        [float(line.split()[3]) for line in run.out.splitlines() if line.startswith("epoch")]
        for run in runs
    )
    assert len(one) == 3
    assert one[2] < one[0]
    # The same samples in the same steps: only the order in which float32 gradients are summed
    # differs, about 1e-7 a step. A wrong share of the batch shows in the second digit.
    assert two == pytest.approx(one, rel=1e-4)
    assert eight == pytest.approx(one, rel=1e-4)


def test_the_example_learns(ranks: Ranks, digits: str) -> None:
    ended = ranks.run("-m", "slurmgen.ddp", digits, SLURMGEN_LAUNCHER="plain")
    assert ended.code == 0, ended
    *epochs, checkpoint = ended.out.splitlines()
    assert float(epochs[-1].split()[5]) > 0.9, epochs
    assert checkpoint == f"checkpoint {ranks.folder / 'checkpoints/digits.pt'}"
    assert [path.name for path in (ranks.folder / "checkpoints").iterdir()] == ["digits.pt"]


def test_two_jobs_on_one_port_do_not_meet(
    ranks: Ranks, step: Callable[..., dict[str, str]], port: int, env_ddp: str
) -> None:
    words = ("-m", "slurmgen.ddp", env_ddp)
    ranks.start(*words, **step(0, 2, port))
    alone = step(1, 2, port, SLURM_JOB_ID="4711", SLURMGEN_RDZV_TIMEOUT="2")
    ranks.start(*words, **alone).wait(240)
    ranks.start(*words, **step(1, 2, port))
    first, stranger, second = ranks.end()
    assert (first.code, second.code) == (0, 0), (first, second)
    assert stranger.code == 78, stranger
    assert "isn't rank 0 of this run" in stranger.err


def test_a_port_that_another_program_holds_is_passed_by(
    ranks: Ranks, port: int, step: Callable[..., dict[str, str]], env_ddp: str
) -> None:
    with socket.create_server(("127.0.0.1", port)):
        for rank in (0, 1):
            ranks.start("-m", "slurmgen.ddp", env_ddp, **step(rank, 2, port))
        first, second = ranks.end()
    assert (first.code, second.code) == (0, 0), (first, second)


def test_the_first_failure_is_written_down(ranks: Ranks, port: int) -> None:
    """The others wait in a collective, and fail because of it."""
    ranks.write(
        "train.py",
        "import torch, torch.distributed as dist\n"
        "from slurmgen import ddp\n"
        "ddp.init()\n"
        "if ddp.rank() == 2:\n"
        "    raise KeyError('no such column')\n"
        "dist.all_reduce(torch.ones(1))\n",
    )
    ranks.start_step("train.py", world_size=3, port=port)
    ended = ranks.end()
    assert [e.code for e in ended] == [1, 1, 1], ended
    failure = json.loads((ranks.folder / "slurmgen-failure-1.0.json").read_text())
    assert failure["first"]["rank"] == 2
    assert failure["first"]["traceback"].endswith("KeyError: 'no such column'\n")
    assert "first failure: rank 2 on n1 (local rank 2): ended with exit code 1" in ended[0].err


def test_a_hang_names_the_line(ranks: Ranks, port: int) -> None:
    """One rank sleeps, the other waits for it in a collective; steps are the optimizer's."""
    ranks.write(
        "train.py",
        "import time, datetime, torch\n"
        "from slurmgen import ddp\n"
        "ddp.init()\n"
        "model = ddp.wrap(torch.nn.Linear(2, 2))\n"
        # Only here: the first DDP module imports a lot.
        "ddp.init(hang_timeout=datetime.timedelta(seconds=8))\n"
        "optimizer = torch.optim.SGD(model.parameters())\n"
        "for step in range(100):\n"
        "    model(torch.ones(1, 2)).sum().backward()\n"
        "    optimizer.step()\n"
        "    if step == 3 and ddp.rank() == 1:\n"
        "        time.sleep(600)\n",
    )
    ranks.start_step("train.py", port=port)
    ended = ranks.end()
    assert [e.code for e in ended] == [1, 1], ended
    failure = json.loads((ranks.folder / "slurmgen-failure-1.0.json").read_text())
    assert failure["first"]["kind"] == "hang"
    (sleeper,) = [group for group in failure["stacks"] if group["ranks"] == [1]]
    assert 'train.py", line 11 in <module>' in sleeper["stack"]
    assert 'train.py", line 11 in <module>' in ended[1].err


def test_a_rank_that_raises_ends_the_others(ranks: Ranks, port: int) -> None:
    ranks.write(
        "train.py",
        "from slurmgen import ddp\n"
        "ddp.init()\n"
        "if ddp.rank() == 1:\n"
        "    raise ValueError('no such column')\n",
    )
    ranks.start_step("train.py", port=port)
    waiting, failed = ranks.end()
    assert failed.code == 1
    assert failed.err.startswith("Traceback (most recent call last):\n")
    assert "entry.py" not in failed.err
    error, last = failed.err.splitlines()[-2:]
    assert error == "ValueError: no such column"
    assert last.endswith(" rank 1: rank 1 on n1 (local rank 1) failed with exit code 1")
    assert waiting.code == 1
    assert "rank 0 had ended well, but the run failed: rank 1 on n1" in waiting.err


def test_exit_codes_are_kept(ranks: Ranks) -> None:
    for name, statement in (
        ("three", "sys.exit(3)"),
        ("none", "sys.exit()"),
        ("text", "exit('x')"),
    ):
        ranks.write(f"{name}.py", f"import sys\n{statement}\n")
        ranks.start("-m", "slurmgen.ddp", f"{name}.py", SLURMGEN_LAUNCHER="plain")
    three, none, text = ranks.end()
    assert (three.code, none.code, text.code) == (3, 0, 1)
    assert "\nx\n" in text.err
