"""What the pages say of torch itself, where plain programs run into it.

Which sentence is shown by which test stands in tests/docs/claims.py.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from tests.torch.conftest import Ranks

pytestmark = pytest.mark.torch

MEETS = """
import datetime, sys
import torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=float(sys.argv[1])))
print("met", dist.get_rank(), "of", dist.get_world_size())
dist.barrier()
dist.destroy_process_group()
"""


def start(ranks: Ranks, number: int, world: int, port: int, **more: str) -> None:
    """A rank of a program that meets the others, or fails after ten seconds."""
    told = {"RANK": f"{number}", "WORLD_SIZE": f"{world}", "MASTER_ADDR": "127.0.0.1"}
    ranks.write("meets.py", MEETS)
    ranks.start("meets.py", "10", **{**told, "MASTER_PORT": f"{port}", **more})


def test_ranks_that_are_told_the_same(ranks: Ranks, port: int) -> None:
    """Of two that are rank 0 one has the port, and waits for a rank 1."""
    start(ranks, 0, 2, port)
    start(ranks, 0, 2, port)
    found = ranks.end()
    assert all(ended.code for ended in found)
    assert sum("EADDRINUSE" in ended.err for ended in found) == 1, found


def test_a_world_that_is_too_large(ranks: Ranks, port: int) -> None:
    start(ranks, 0, 2, port)
    (ended,) = ranks.end()
    assert ended.code
    assert "1/2 clients joined" in ended.err


def test_each_names_a_port_of_its_own(ranks: Ranks, port: int) -> None:
    start(ranks, 0, 2, port)
    start(ranks, 1, 2, port + 1 if port < 65_535 else port - 1)
    assert [("met" in ended.out, bool(ended.code)) for ended in ranks.end()] == [(False, True)] * 2


def test_a_rank_that_nobody_has_set(ranks: Ranks, port: int) -> None:
    ranks.write("meets.py", MEETS)
    ended = ranks.run("meets.py", "10", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    assert "environment variable RANK expected, but not set" in ended.err


def test_an_address_for_an_interface(ranks: Ranks, port: int) -> None:
    start(ranks, 0, 1, port, GLOO_SOCKET_IFNAME="10.0.0.5")
    (ended,) = ranks.end()
    assert ended.code
    assert "Unable to find address for: 10.0.0.5" in ended.err


def test_how_long_ranks_wait() -> None:
    from torch.distributed import constants

    assert constants.default_pg_timeout.total_seconds() == 30 * 60
    nccl = constants.default_pg_nccl_timeout
    assert nccl is None or nccl.total_seconds() == 10 * 60


# --- torchrun ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["USR1", "TERM"])
def test_torchrun_dies_of_a_signal(ranks: Ranks, name: str) -> None:
    """The ranks are not asked, but ended, or left behind."""
    ranks.write(
        "train.py",
        "import pathlib, signal, time\n"
        "signal.signal(signal.SIGUSR1, lambda *_: pathlib.Path('told').touch())\n"
        "pathlib.Path('ready').touch()\n"
        "for _ in range(600):\n"
        "    time.sleep(0.1)\n"
        "    if pathlib.Path('end').exists(): break\n",
    )
    words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1", "train.py")
    process = ranks.start(*words)
    end = time.monotonic() + PATIENCE_S
    while not (ranks.folder / "ready").exists():
        assert time.monotonic() < end
        time.sleep(0.1)
    process.send_signal(signal.Signals[f"SIG{name}"])
    assert process.wait(120) != 0
    assert not (ranks.folder / "told").exists()
    (ranks.folder / "end").touch()


def test_torchrun_makes_a_failure_of_75(ranks: Ranks) -> None:
    ranks.write("train.py", "raise SystemExit(75)\n")
    words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1", "train.py")
    assert ranks.run(*words).code == 1


def test_torchrun_reads_no_list(ranks: Ranks) -> None:
    words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4(x2)", "train.py")
    ended = ranks.run(*words)
    assert ended.code
    assert "Unsupported nproc_per_node value: 4(x2)" in ended.err


def test_torchrun_takes_no_port_of_17_bits(ranks: Ranks) -> None:
    ended = ranks.run("-m", "torch.distributed.run", "--master-port=66660", "train.py")
    assert ended.code
    assert "must be an integer between 0 and 65536" in ended.err


def test_the_old_launcher_passes_an_option_with_a_dash(ranks: Ranks) -> None:
    ranks.write(
        "train.py",
        "import argparse\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--local_rank', type=int, default=0)\n"
        "parser.parse_args()\n",
    )
    ended = ranks.run("-m", "torch.distributed.launch", "--nproc-per-node=1", "train.py")
    assert ended.code
    assert "unrecognized arguments: --local-rank=0" in ended.err


def test_spawn_counts_from_0(ranks: Ranks) -> None:
    ranks.write(
        "spawn.py",
        "import torch.multiprocessing as mp\n"
        "def main(index): print(index, flush=True)\n"
        "if __name__ == '__main__': mp.spawn(main, nprocs=2)\n",
    )
    ended = ranks.run("spawn.py", NODE_RANK="1", WORLD_SIZE="4")
    assert sorted(ended.out.split()) == ["0", "1"]


def test_threads_where_nobody_says_how_many(ranks: Ranks) -> None:
    """As many as there are CPUs; as cores, where a core is two CPUs."""
    ranks.write(
        "threads.py",
        "import os\n"
        "del os.environ['OMP_NUM_THREADS']\n"
        "import torch\n"
        "print(torch.get_num_threads(), len(os.sched_getaffinity(0)))\n",
    )
    threads, cpus = map(int, ranks.run("threads.py").out.split())
    assert cpus / 2 <= threads <= cpus


# --- data ----------------------------------------------------------------------------


def test_a_sampler_with_a_fixed_rank_reads_one_share() -> None:
    from torch.utils.data import DistributedSampler

    shares = [
        list(DistributedSampler(range(64), num_replicas=8, rank=0, shuffle=False)) for _ in range(8)
    ]
    assert len({tuple(share) for share in shares}) == 1
    assert len(shares[0]) == 8


def test_a_sampler_without_set_epoch_repeats_itself() -> None:
    from torch.utils.data import DistributedSampler

    sampler = DistributedSampler(range(64), num_replicas=2, rank=0)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first


def test_more_workers_than_cpus_are_told() -> None:
    from torch.utils.data import DataLoader

    few = len(os.sched_getaffinity(0))
    with pytest.warns(UserWarning, match=f"will create {few + 1} worker processes") as said:
        DataLoader(range(4), num_workers=few + 1)
    assert f"suggested max number of worker in current system is {few}" in str(said[0].message)
