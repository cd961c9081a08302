from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slurmgen.ddp.failure import LaunchError
from slurmgen.ddp.launch.identity import in_step, parse_tasks_per_node, resolve_identity

if TYPE_CHECKING:
    from collections.abc import Callable

    Recorded = Callable[[str], dict[str, str]]

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "job-7",
    "TORCHELASTIC_RESTART_COUNT": "1",
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "GROUP_RANK": "1",
    "GROUP_WORLD_SIZE": "2",
}
SPAWN = {
    "SLURMGEN_LAUNCHER": "spawn",
    "MASTER_ADDR": "n1",
    "MASTER_PORT": "12345",
    "WORLD_SIZE": "8",
    "LOCAL_WORLD_SIZE": "4",
    "NODE_RANK": "1",
}


@pytest.mark.parametrize(
    ("text", "counts"),
    [("4(x2),3", [4, 4, 3]), ("7,1", [7, 1]), ("1", [1]), ("2(x3)", [2, 2, 2])],
)
def test_tasks_per_node(text: str, counts: list[int]) -> None:
    assert parse_tasks_per_node(text) == counts


@pytest.mark.parametrize("text", ["", "4(x)", "x2", "4,,3", "4(x2", "-1"])
def test_tasks_per_node_refuses_what_slurm_never_writes(text: str) -> None:
    with pytest.raises(ValueError):
        parse_tasks_per_node(text)


def test_a_step_names_the_rank(recorded: Recorded) -> None:
    identity = resolve_identity(recorded("stepenv.5"))
    assert identity.source == "slurm"
    assert identity.exports() == {
        "RANK": "5",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "4",
        "NODE_RANK": "1",
        "GROUP_RANK": "1",
    }
    assert (identity.nnodes, identity.node, identity.ignored) == (2, "n2", ())


def test_all_ranks_of_a_step_name_the_same_job(recorded: Recorded) -> None:
    first, other = (resolve_identity(recorded(f"stepenv.{rank}")) for rank in (0, 5))
    job = recorded("batchenv")["SLURM_JOB_ID"]
    assert first.job == other.job == f"cluster test job {job} step 0 restart 0"
    requeued = resolve_identity({**recorded("stepenv.0"), "SLURM_RESTART_COUNT": "1"})
    assert requeued.job != first.job


def test_uneven_and_cyclic_steps(recorded: Recorded) -> None:
    env = {
        **recorded("stepenv.5"),
        "SLURM_STEP_NUM_TASKS": "7",
        "SLURM_STEP_TASKS_PER_NODE": "4,3",
        "SLURM_NTASKS_PER_NODE": "4",
        "SLURM_GTIDS": "1,3,5",
        "SLURM_LOCALID": "2",
    }
    assert resolve_identity(env).local_world_size == 3
    del env["SLURM_GTIDS"]
    assert resolve_identity(env).local_world_size == 3


def test_a_step_without_any_task_count_is_refused(recorded: Recorded) -> None:
    env = recorded("stepenv.5")
    del env["SLURM_GTIDS"], env["SLURM_STEP_TASKS_PER_NODE"]
    with pytest.raises(LaunchError, match="SLURM_STEP_TASKS_PER_NODE"):
        resolve_identity(env)


@pytest.mark.parametrize("launcher", [{}, {"SLURMGEN_LAUNCHER": "srun"}])
def test_a_batch_shell_is_no_rank(recorded: Recorded, launcher: dict[str, str]) -> None:
    env = {**recorded("batchenv"), **launcher}
    assert env["SLURM_PROCID"] == "0"
    assert not in_step(env)
    with pytest.raises(LaunchError, match="not started by srun, in a job of 8 tasks"):
        resolve_identity(env)


def test_what_contradicts_the_step_is_ignored_and_told(recorded: Recorded) -> None:
    exported = {"RANK": "0", "WORLD_SIZE": "8", "LOCAL_RANK": "0", "SLURMGEN_LAUNCHER": "srun"}
    identity = resolve_identity({**recorded("stepenv.5"), **exported})
    assert (identity.rank, identity.local_rank) == (5, 1)
    assert identity.ignored == ("RANK=0", "LOCAL_RANK=0")


def test_torchrun_wins_over_the_step_of_its_agent(recorded: Recorded) -> None:
    identity = resolve_identity({**recorded("stepenv.0"), **TORCHRUN})
    assert (identity.source, identity.rank, identity.local_rank) == ("torchrun", 3, 1)
    assert (identity.nnodes, identity.node_rank) == (2, 1)
    assert identity.job == f"torchrun job-7 in {resolve_identity(recorded('stepenv.0')).job}"
    assert identity.attempt == 1
    assert resolve_identity(TORCHRUN).job == "torchrun job-7"


def test_torchrun_leftovers_in_a_rank_per_task_step(recorded: Recorded) -> None:
    env = {**recorded("stepenv.5"), **TORCHRUN, "SLURMGEN_LAUNCHER": "srun"}
    assert resolve_identity({**env, "SLURMGEN_WORLD_SIZE": "8"}).source == "slurm"
    assert resolve_identity({**env, "SLURMGEN_WORLD_SIZE": "4"}).source == "torchrun"


def task_per_node(env: dict[str, str], nodes: int = 2) -> dict[str, str]:
    return {**env, **SPAWN, "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": str(nodes)}


def test_spawn_parent_and_child(recorded: Recorded) -> None:
    env = task_per_node(recorded("stepenv.5"))
    parent = resolve_identity(env, parent_pid=41)
    assert (parent.children, parent.rank, parent.nnodes) == (True, 4, 2)
    placed = {**env, "RANK": "6", "LOCAL_RANK": "2", "SLURMGEN_SPAWN_PARENT": "41"}
    child = resolve_identity(placed, parent_pid=41)
    assert (child.children, child.rank, child.local_rank) == (False, 6, 2)
    # Handed on by a rank that submitted this job.
    assert resolve_identity(placed, parent_pid=42).children


def test_spawn_wants_one_task_per_node(recorded: Recorded) -> None:
    with pytest.raises(LaunchError, match="one per node"):
        resolve_identity(task_per_node(recorded("stepenv.5"), nodes=1))
    with pytest.raises(LaunchError, match="not started by srun"):
        resolve_identity({**recorded("batchenv"), **SPAWN})


def test_plain_is_one_process_whatever_is_left_over(recorded: Recorded) -> None:
    plain = {"SLURMGEN_LAUNCHER": "plain", "RANK": "3", "WORLD_SIZE": "4"}
    for env in ({}, recorded("batchenv")):
        identity = resolve_identity({**env, **plain})
        assert (identity.source, identity.rank, identity.world_size) == ("single", 0, 1)
    with pytest.raises(LaunchError, match="srun started 8 of it"):
        resolve_identity({**recorded("stepenv.0"), **plain})


def test_without_any_launcher() -> None:
    assert resolve_identity({}).world_size == 1
    identity = resolve_identity({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"})
    assert (identity.source, identity.rank, identity.world_size) == ("env", 1, 2)
    with pytest.raises(LaunchError, match="LOCAL_RANK"):
        resolve_identity({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"})


def test_a_rank_that_is_no_number_is_refused(recorded: Recorded) -> None:
    with pytest.raises(LaunchError, match="SLURM_PROCID='x' is not a number"):
        resolve_identity({**recorded("stepenv.0"), "SLURM_PROCID": "x"})
