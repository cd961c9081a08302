"""`requeue: {…}` on a real Slurm: what brings a job back, and what must not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.sandbox import Sandbox
from tests.slurm.interrupted import SHAPE, Job, Jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slurm, pytest.mark.matrix]

PROGRAM = Path(__file__).with_name("saves.py")
COMMAND = {"command": [sys.executable, str(PROGRAM)]}
LAUNCHERS: dict[str, dict[str, Any]] = {
    "srun": {"nodes": 2, "ntasks_per_node": 2},
    "plain": {"launcher": "plain"},
}
# What is done to a job once its program runs (JOB: its id), and more keys of its job file.
BACK: dict[str, tuple[str, dict[str, Any]]] = {
    "the signal": ("scancel --signal=USR1 JOB", {}),
    "USR2": ("scancel --signal=USR2 JOB", {"requeue": {"signal": "USR2"}}),
    "the signal to the batch shell": ("scancel --batch --signal=USR1 JOB", {}),
    "the signal to both": ("scancel --full --signal=USR1 JOB", {}),
    "TERM to the program": ("scancel --signal=TERM JOB", {}),
    "scontrol requeue": ("scontrol requeue JOB", {}),
    "the time limit": ("", {"time": "2m", "requeue": {"signal": "USR1@50"}}),
    "preemption": (
        "sbatch --partition=high --nodes=2 --gres=gpu:2 --mem=100M --output=/dev/null --wrap=true",
        {"partition": "low", "gpus_per_node": 1, "ntasks_per_node": None},
    ),
}
STAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "scancel": ("scancel JOB", {}),
    "scancel of a stopped job": ("scancel --signal=STOP JOB; sleep 1; scancel JOB", {}),
    "TERM to the batch shell": ("scancel --batch --signal=TERM JOB", {}),
    "TERM to both": ("scancel --full --signal=TERM JOB", {}),
    "another status": ("scancel --signal=USR1 JOB", {"env": {"STATUS": "3"}}),
}
ALONE: dict[str, tuple[str, dict[str, Any]]] = {
    # The last task's own id is that of the array.
    "array": ("scancel --signal=USR1 JOB_1; scancel JOB_0", {"array": "0-1"}),
    "idle": ("", {"env": {"AT_ONCE": "1", "RUNS": "99"}}),
    "busy": ("", {"env": {"AT_ONCE": "1", "PROGRESS": "1", "RUNS": "8"}}),
    "no restart left": (
        "",
        {"requeue": {"max_restarts": 2}, "env": {"AT_ONCE": "1", "RUNS": "99"}},
    ),
    "lost a node": (
        "",
        {"requeue": "on_node_fail", "command": 'test "$SLURMGEN_RESTART" != 0 || exit 69'},
    ),
    "lost a node, and may save": (
        "",
        {
            "requeue": {"on_node_fail": True},
            "command": 'test "$SLURMGEN_RESTART" != 0 || exit 69',
        },
    ),
    "lost a node, but did not ask": ("", {"command": "exit 69"}),
    "saved, but asked for nodes only": ("", {"requeue": "on_node_fail", "command": "exit 75"}),
    "cancelled beside nodes": (
        "scancel JOB",
        {
            "requeue": "on_node_fail",
            "command": "trap 'exit 69' TERM; echo ready; sleep 300 & wait",
        },
    ),
    "text with input": (
        "scancel --signal=TERM JOB",
        {"input": str(PROGRAM), "command": f"head -n 1\n{sys.executable} {PROGRAM}\necho no"},
    ),
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Job]]:
    folder = tmp_path_factory.mktemp("requeue")
    with Sandbox.up(name="requeue", shape=SHAPE, directory=folder / "sandbox") as sandbox:
        jobs = Jobs(sandbox, folder)
        for launcher, size in LAUNCHERS.items():
            for name, (once, more) in (BACK | STAYS).items():
                given = {**COMMAND, **size, **more}
                jobs.submit(f"{launcher}: {name}", once, given)
        for name, (once, more) in ALONE.items():
            jobs.submit(name, once, {**COMMAND, **LAUNCHERS["plain"], **more})
        jobs.do()
        jobs.wait()
        yield jobs.all


@pytest.mark.parametrize("case", BACK)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_it_comes_back(jobs: dict[str, Job], launcher: str, case: str) -> None:
    job = jobs[f"{launcher}: {case}"]
    assert job.ended() == ("COMPLETED", 1, "0:0"), job.log
    for rank in range(job.log.count("run 0 ready")):
        # In one log, the first run's lines not truncated by the second.
        assert job.log.index(f"rank {rank} run 0 ready") < job.log.index(f"rank {rank} saved")
        assert job.log.index(f"rank {rank} saved") < job.log.index(f"rank {rank} done")
    assert job.notes == []


@pytest.mark.parametrize("case", STAYS)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_it_stays_away(jobs: dict[str, Job], launcher: str, case: str) -> None:
    job = jobs[f"{launcher}: {case}"]
    state, restarts, exit_code = job.ended()
    assert restarts == 0, job.log
    if "scancel" in case:
        assert state == "CANCELLED"
    elif case == "TERM to both":
        # srun is a child of the batch shell, and kills the program when it gets TERM itself.
        assert (state, exit_code) in {("FAILED", "75:0"), ("FAILED", "137:0")}
    else:
        assert (state, exit_code) == ("FAILED", "3:0" if case == "another status" else "75:0")
    if case == "TERM to the batch shell":
        assert job.log.count("saved after SIGTERM") == job.log.count("ready")
        assert f"slurmgen: job {job.job_id} is not requeued: it was cancelled" in job.log


def test_a_task_of_an_array_comes_back_alone(jobs: dict[str, Job]) -> None:
    records = {record["ArrayTaskId"]: record for record in jobs["array"].records}
    assert (records["0"]["JobState"], records["0"]["Restarts"]) == ("CANCELLED", "0")
    assert (records["1"]["JobState"], records["1"]["Restarts"]) == ("COMPLETED", "1")


def test_it_ends_where_it_makes_no_progress(jobs: dict[str, Job]) -> None:
    job = jobs["idle"]
    assert job.ended() == ("FAILED", 4, "75:0")
    assert "is not requeued: five runs in a row made no progress" in job.log
    assert job.notes == [f"slurmgen-{job.job_id}.restarts"]


@pytest.mark.parametrize("case", ["lost a node", "lost a node, and may save"])
def test_it_comes_back_where_a_node_is_lost(jobs: dict[str, Job], case: str) -> None:
    job = jobs[case]
    assert job.ended() == ("COMPLETED", 1, "0:0"), job.log
    said = f"slurmgen: job {job.job_id} has lost a node and is requeued"
    # Slurm may end the batch shell before it says so.
    assert said in job.log or "DUE TO JOB REQUEUE" in job.log


def test_a_lost_node_alone_brings_nothing_back_unasked(jobs: dict[str, Job]) -> None:
    assert jobs["lost a node, but did not ask"].ended() == ("FAILED", 0, "69:0")
    assert jobs["saved, but asked for nodes only"].ended() == ("FAILED", 0, "75:0")
    state, restarts, _ = jobs["cancelled beside nodes"].ended()
    assert (state, restarts) == ("CANCELLED", 0)


def test_progress_is_what_the_program_writes(jobs: dict[str, Job]) -> None:
    assert jobs["busy"].ended() == ("COMPLETED", 7, "0:0"), jobs["busy"].log


def test_it_comes_back_as_often_as_it_may(jobs: dict[str, Job]) -> None:
    job = jobs["no restart left"]
    assert job.ended() == ("FAILED", 2, "75:0")
    assert "is not requeued: it has come back 2 time(s), which is max_restarts" in job.log


def test_a_command_text_is_told_and_reads_the_jobs_input(jobs: dict[str, Job]) -> None:
    job = jobs["text with input"]
    assert job.ended() == ("COMPLETED", 1, "0:0"), job.log
    assert job.log.count(PROGRAM.read_text().split("\n", 1)[0]) == 2
    assert job.log.count("\nno") == 1
