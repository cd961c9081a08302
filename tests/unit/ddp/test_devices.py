from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.ddp.failure import LaunchError
from slurmgen.ddp.launch.devices import Seat, check_seats, choose_index, given_gpus, say_table

if TYPE_CHECKING:
    from collections.abc import Callable


def seat(rank: int, **changes: Any) -> Seat:
    place: dict[str, Any] = {
        "rank": rank,
        "node": f"n{rank // 2 + 1}",
        "machine": f"n{rank // 2 + 1}",
        "local_rank": rank % 2,
        "device": f"cuda:{rank % 2}",
        "gpu": "NVIDIA H100",
        "uuid": f"GPU-{rank}",
        "visible": 2,
    }
    return Seat(**{**place, **changes})


@pytest.mark.parametrize(
    ("visible", "local_rank", "local_world_size", "index"),
    [
        (4, 3, 4, 3),  # --gres=gpu:4: every task sees all
        (1, 3, 4, 0),  # --gpus-per-task=1: each sees its own, as index 0
        (1, 0, 1, 0),
        (8, 1, 2, 1),
        (0, 3, 4, None),
    ],
)
def test_the_device_of_a_rank(
    visible: int, local_rank: int, local_world_size: int, index: int | None
) -> None:
    assert choose_index(visible, local_rank, local_world_size) == index


def test_fewer_gpus_than_ranks() -> None:
    with pytest.raises(LaunchError, match=r"4 ranks on .*, but each sees 2 GPUs"):
        choose_index(2, 0, 4)


def test_two_ranks_on_one_gpu() -> None:
    check_seats([seat(0), seat(1), seat(2), seat(3)])
    with pytest.raises(LaunchError, match="ranks 0, 1 share one GPU, GPU-0 on n1"):
        check_seats([seat(0), seat(1, uuid="GPU-0"), seat(2)])


def test_a_rank_without_gpu_among_others() -> None:
    bare = seat(2, device="cpu", gpu="", uuid="")
    check_seats([bare])
    with pytest.raises(LaunchError, match="rank 2 on n2 has no GPU"):
        check_seats([seat(0), seat(1), bare])


def test_a_seat_survives_the_store() -> None:
    odd = seat(1, ignored=("RANK=0",))
    assert Seat.parse(odd.dump()) == odd


def test_table(said: Callable[[], list[str]]) -> None:
    say_table([seat(0, visible=4), seat(1, visible=4, ignored=("RANK=0",))], "nccl")
    assert said() == [
        "2 rank(s) on 1 node(s), backend nccl",
        "rank  host  local  device  gpu          uuid",
        "0     n1    0      cuda:0  NVIDIA H100  GPU-0",
        "1     n1    1      cuda:1  NVIDIA H100  GPU-1",
        (
            "warning: RANK=0 on rank 1 contradicts Slurm's step variables, which are"
            " used (1 of 2 ranks); don't export it in the batch script"
        ),
        "warning: 4 GPUs on n1 but 2 rank(s): 2 GPU(s) stay idle",
    ]


@pytest.mark.parametrize(
    ("env", "given"),
    [
        ({"CUDA_VISIBLE_DEVICES": "2,3", "SLURM_STEP_GPUS": "0,1"}, "2,3"),
        ({"SLURM_STEP_GPUS": "0,1"}, "0,1"),
        ({"CUDA_VISIBLE_DEVICES": "", "SLURM_STEP_GPUS": "0,1"}, ""),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, ""),
        ({}, ""),
    ],
)
def test_given_gpus(env: dict[str, str], given: str) -> None:
    assert given_gpus(env) == given
