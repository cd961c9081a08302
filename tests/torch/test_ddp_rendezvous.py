"""The meeting of the ranks, with a thread in place of each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.ddp.failure import LaunchError
from slurmgen.ddp.launch.devices import Seat
from slurmgen.ddp.launch.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = pytest.mark.torch


def identity(rank: int, world_size: int) -> Identity:
    return Identity(
        source="slurm",
        rank=rank,
        local_rank=rank,
        world_size=world_size,
        local_world_size=world_size,
        node_rank=0,
        nnodes=1,
        node="n1",
        job="cluster c job 1 step 0 restart 0",
    )


def seat(rank: int, uuid: str) -> Seat:
    return Seat(
        rank=rank,
        node="n1",
        machine="n1",
        local_rank=rank,
        device=f"cuda:{rank}",
        gpu="H100",
        uuid=uuid,
        visible=2,
    )


def meet(rank: int, world_size: int, port: int, uuid: str, timeout_s: float) -> Any:
    from slurmgen.ddp.launch.rendezvous import Rendezvous

    try:
        meeting = Rendezvous(
            identity(rank, world_size), "127.0.0.1", port, timeout_s=timeout_s, agent=False
        )
        return meeting, meeting.meet(seat(rank, uuid))
    except LaunchError as error:
        return error


def together(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def test_rank_0_learns_who_sits_where(port: int) -> None:
    (first, seats), (second, none) = together(
        [lambda: meet(0, 2, port, "GPU-a", 60), lambda: meet(1, 2, port, "GPU-b", 60)]
    )
    assert [s.uuid for s in seats] == ["GPU-a", "GPU-b"]
    assert none == []
    assert together([first.finish, second.finish]) == [None, None]


def test_the_first_failure_is_remembered(port: int) -> None:
    (first, _), (second, _) = together(
        [lambda: meet(0, 2, port, "GPU-a", 60), lambda: meet(1, 2, port, "GPU-b", 60)]
    )
    assert second.fail("rank 1") == "rank 1"
    assert second.fail("rank 0") == "rank 1"
    assert first.finish() == "rank 1"


def test_all_ranks_hear_of_a_shared_gpu(port: int) -> None:
    errors = together(
        [lambda: meet(0, 2, port, "GPU-a", 60), lambda: meet(1, 2, port, "GPU-a", 60)]
    )
    assert [error.what for error in errors] == ["ranks 0, 1 share one GPU, GPU-a on n1"] * 2


def test_all_ranks_hear_who_is_missing(port: int) -> None:
    errors = together([lambda: meet(0, 3, port, "GPU-a", 2), lambda: meet(1, 3, port, "GPU-b", 9)])
    missing = f"rank(s) 2 didn't arrive at 127.0.0.1:{port} within 2 s"
    assert [error.what for error in errors] == [missing] * 2
    assert [error.said for error in errors] == [False, True]


def test_the_same_rank_twice(port: int) -> None:
    answers = together(
        [
            lambda: meet(0, 2, port, "GPU-a", 60),
            lambda: meet(1, 2, port, "GPU-b", 60),
            lambda: meet(1, 2, port, "GPU-c", 60),
        ]
    )
    errors = [answer for answer in answers if isinstance(answer, LaunchError)]
    assert [error.what for error in errors] == [f"rank 1 arrived twice at 127.0.0.1:{port}"]


def test_a_store_that_names_no_job(port: int) -> None:
    from torch.distributed import TCPStore

    server = TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    assert server.port == port
    assert meet(1, 2, port, "GPU-a", 1).what == f"the store at 127.0.0.1:{port} names no job"


def test_nobody_there(port: int) -> None:
    assert meet(1, 2, port, "GPU-a", 0.3).what.startswith("rank 0 doesn't listen at 127.0.0.1")
