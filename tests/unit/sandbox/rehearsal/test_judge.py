"""What is said of records that are known to be right or wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.cluster.profile import Profile
from slurmgen.jobfile.job import JobSpec
from slurmgen.reading.script import BatchScript
from slurmgen.sandbox.rehearsal.judge import Case, judge
from slurmgen.sandbox.rehearsal.records import Note, Program
from slurmgen.sandbox.rehearsal.run import Job, Outcome
from slurmgen.script.plan import resolve
from slurmgen.slurm.live.sbatch import State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slurmgen.script.plan import JobPlan
    from slurmgen.slurm.request import Request

WELL = (State("COMPLETED", "None", "0:0"),)
BADLY = (State("FAILED", "NonZeroExitCode", "3:0"),)
ARGV = ("python", "train.py")


def ranks(change: Callable[[int], Mapping[str, str | None]] | None = None) -> list[Program]:
    """Four ranks on two nodes of two GPUs, in step 0 of job 7; `change` is given each rank."""
    found = []
    for rank in range(4):
        env: dict[str, str | None] = {
            "SLURMD_NODENAME": f"n{rank // 2 + 1}",
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": str(rank % 2),
            "SLURM_STEP_NUM_TASKS": "4",
            "CUDA_VISIBLE_DEVICES": "0,1",
            "RANK": str(rank),
            "LOCAL_RANK": str(rank % 2),
            "WORLD_SIZE": "4",
            "MASTER_ADDR": "n1",
            "MASTER_PORT": "12007",
            **(change(rank) if change else {}),
        }
        kept = {name: value for name, value in env.items() if value is not None}
        found.append(Program("python", "file", ARGV, kept, "/", "7", 0, "0", rank, True))
    return found


def job(**changes: Any) -> Job:
    both = frozenset({"0", "1"})
    plain = Job("7", WELL, {"7": {"n1": both, "n2": both}}, "", False, False, False, 1.0)
    return plain._replace(**changes)


def request(*directives: str) -> Request:
    return BatchScript("\n".join(["#!/bin/bash", *directives, ""])).requests[0]


def rules(
    programs: list[Program],
    *,
    notes: tuple[Note, ...] = (),
    plan: JobPlan | None = None,
    failing: Job | None = None,
    tasks: int = 4,
    **changes: Any,
) -> list[str]:
    outcome = Outcome("24.11.5", tuple(programs), notes, job(**changes), failing)
    return [fault.rule for fault in judge(Case(plan, tasks), outcome).faults]


def test_a_job_that_is_right() -> None:
    assert rules(ranks()) == []


WRONG: dict[str, tuple[str, Callable[[int], Mapping[str, str | None]]]] = {
    "all rank 0": ("rank-twice", lambda rank: {"RANK": "0"}),
    "no world size": ("rank-missing", lambda rank: {"WORLD_SIZE": None}),
    "a world size that is a list": ("rank-missing", lambda rank: {"WORLD_SIZE": "2(x2)"}),
    "one has no rank": ("rank-missing", lambda rank: {"RANK": None} if rank == 3 else {}),
    "a larger world": ("world-size-wrong", lambda rank: {"WORLD_SIZE": "8"}),
    "a world of nodes": ("world-size-wrong", lambda rank: {"WORLD_SIZE": "2"}),
    "two worlds": ("world-size-differs", lambda rank: {"WORLD_SIZE": str(4 + rank // 3)}),
    "ranks from 1": ("rank-wrong", lambda rank: {"RANK": str(rank + 1)}),
    "localhost": ("address-local", lambda rank: {"MASTER_ADDR": "localhost"}),
    "127.0.0.1": ("address-local", lambda rank: {"MASTER_ADDR": "127.0.0.1"}),
    "the node's own": ("address-differs", lambda rank: {"MASTER_ADDR": f"n{rank // 2 + 1}"}),
    "many addresses": ("address-wrong", lambda rank: {"MASTER_ADDR": "10.0.0.1 172.17.0.1"}),
    "another node": ("address-not-rank-0", lambda rank: {"MASTER_ADDR": "n2"}),
    "a port each": ("port-differs", lambda rank: {"MASTER_PORT": str(12000 + rank)}),
    "no port": ("port-wrong", lambda rank: {"MASTER_PORT": "66660"}),
    "a port that is not set": ("port-missing", lambda rank: {"MASTER_PORT": None}),
    "a port of anybody's": ("port-given-out", lambda rank: {"MASTER_PORT": "50000"}),
    "an address for an interface": (
        "interface-wrong",
        lambda _: {"GLOO_SOCKET_IFNAME": "10.0.0.5"},
    ),
    "the loopback": ("interface-local", lambda rank: {"NCCL_SOCKET_IFNAME": "lo"}),
    "one GPU for all": ("gpu-shared", lambda rank: {"CUDA_VISIBLE_DEVICES": "0"}),
    "a local rank too many": ("gpu-missing", lambda rank: {"LOCAL_RANK": str(rank % 2 + 1)}),
    "a GPU of HIP's that ROCR hides": (
        "gpu-masked-twice",
        lambda rank: {
            "CUDA_VISIBLE_DEVICES": str(rank % 2),
            "ROCR_VISIBLE_DEVICES": str(rank % 2),
            "HIP_VISIBLE_DEVICES": str(rank % 2),
        },
    ),
    "no GPU": ("gpu-hidden", lambda rank: {"CUDA_VISIBLE_DEVICES": None}),
}


@pytest.mark.parametrize("case", WRONG)
def test_ranks_that_are_wrong(case: str) -> None:
    rule, change = WRONG[case]
    found = rules(ranks(change))
    assert found[0] == rule
    assert len(found) <= 2, "one fault must not be told as many"


def test_the_sandbox_own_addresses_are_no_localhost() -> None:
    assert rules(ranks(lambda rank: {"MASTER_ADDR": "127.93.1.1"})) == []


def test_a_gpu_that_nobody_uses() -> None:
    assert rules(ranks()[::2], tasks=2) == ["world-size-wrong", "gpu-idle"]


def test_a_node_on_which_nothing_runs() -> None:
    alone = ranks(lambda rank: {"SLURM_STEP_NUM_TASKS": None, "RANK": None})[0]
    assert rules([alone._replace(step="batch")]) == ["node-idle"]


def test_one_process_of_a_job_of_several_tasks() -> None:
    alone = ranks(lambda rank: {"RANK": None, "CUDA_VISIBLE_DEVICES": "0"})[0]
    found = rules([alone._replace(step="batch")], gpus={"7": {"n1": frozenset({"0"})}})
    assert found == ["srun-missing"]


def test_a_job_that_fails_says_where() -> None:
    note = Note(
        "failed", "7", 0, "batch", "n1", 0, {"text": "3 srun python x.py"}, 12, "/x/slurm_script"
    )
    outcome = Outcome("24.11.5", tuple(ranks()), (note,), job(states=BADLY))
    (fault,) = judge(Case(None, 4), outcome).faults
    assert (fault.rule, fault.line) == ("job-failed", 12)
    assert fault.message == "the job ends with status 3 at `srun python x.py`"


def test_a_status_that_is_masked() -> None:
    assert rules(ranks(), failing=job(job_id="8")) == ["status-masked"]
    assert rules(ranks(), failing=job(job_id="8", states=BADLY)) == []


@pytest.mark.parametrize(
    ("version", "options", "words", "found"),
    [
        ("22.05.8", [], ["python", "x.py"], ["cpus-not-inherited"]),
        ("23.02.1", ["-l"], ["bash", "-c", "exec python x.py"], ["cpus-not-inherited"]),
        ("22.05.8", ["-c", "4"], ["python", "x.py"], []),
        ("22.05.8", ["--cpus-per-task=4"], ["torchrun", "x.py"], []),
        ("22.05.8", [], ["hostname", "-I"], []),
        ("24.11.5", [], ["python", "x.py"], []),
        ("21.08.8", [], ["python", "x.py"], []),
    ],
)
def test_cpus_that_srun_forgets(
    version: str, options: list[str], words: list[str], found: list[str]
) -> None:
    note = Note("step", "7", 0, "batch", "n1", 0, {"options": options, "words": words})
    outcome = Outcome(version, tuple(ranks()), (note,), job())
    verdict = judge(Case(None, 4, request("#SBATCH --cpus-per-task=4")), outcome)
    assert [fault.rule for fault in verdict.faults] == found


def test_a_program_that_is_left_behind() -> None:
    assert rules(ranks(), left=True) == ["left-behind"]


def test_a_job_that_sbatch_refuses() -> None:
    said = "sbatch: error: Invalid --time specification\n"
    verdict = judge(Case(None, None), Outcome("24.11.5", (), (), refused=said))
    assert verdict.faults[0].message == (
        "sbatch does not take the job: Invalid --time specification"
    )


def _with(name: str, value: int) -> Callable[[int], Mapping[str, str | None]]:
    return lambda rank: {name: str(value)}


# --- job files -----------------------------------------------------------------------------


def plan(**more: Any) -> JobPlan:
    given = {"nodes": 2, "gpus_per_node": 2, "time": "10m", "command": list(ARGV), **more}
    return resolve(JobSpec(**given), Profile(name="generic"))


def test_a_plan_that_is_kept() -> None:
    env = {"DATA": "${HOME}/data", "PATH": "/opt/x:${PATH}"}
    seen = {"HOME": "/home/me", "DATA": "/home/me/data", "PATH": "/opt/x:/usr/bin"}
    assert rules(ranks(lambda rank: seen), plan=plan(env=env)) == []


def test_an_environment_that_is_lost() -> None:
    found = rules(ranks(lambda rank: {"A": "b "}), plan=plan(env={"A": "b"}))
    assert found == ["env-wrong"]


def test_words_that_are_changed() -> None:
    assert rules(ranks(), plan=plan(command=["python", "train.py", "--lr"])) == ["argv-wrong"]


def test_ranks_that_sit_elsewhere() -> None:
    """As under `--distribution=cyclic`, which a plan knows of."""
    places = [("n1", "0"), ("n2", "0"), ("n1", "1"), ("n2", "1")]
    seen = ranks(lambda rank: {"SLURMD_NODENAME": places[rank][0], "LOCAL_RANK": places[rank][1]})
    assert rules(seen, plan=plan()) == ["seat-wrong"]
    assert rules(seen, plan=plan(sbatch={"distribution": "cyclic"})) == []


def test_modules_that_are_not_loaded_in_order() -> None:
    setup = {"modules": {"purge": True, "load": ["cuda/12.4", "nccl"]}}

    def notes(*texts: str) -> tuple[Note, ...]:
        return tuple(Note("module", "7", 0, "batch", "n1", 0, {"text": text}) for text in texts)

    in_order = notes("purge", "load cuda/12.4", "load nccl")
    assert rules(ranks(), notes=in_order, plan=plan(setup=setup)) == []
    swapped = notes("purge", "load nccl", "load cuda/12.4")
    assert rules(ranks(), notes=swapped, plan=plan(setup=setup)) == ["setup-wrong"]


@pytest.mark.parametrize(
    ("restarts", "found"), [((0,), ["not-requeued"]), ((0, 1), []), ((0, 1, 2), ["not-requeued"])]
)
def test_a_job_that_is_to_come_back(restarts: tuple[int, ...], found: list[str]) -> None:
    seen = [
        program._replace(restart=restart)
        for restart in restarts
        for program in ranks(_with("SLURMGEN_RESTART", restart))
    ]
    case = Case(plan(requeue={}), 4, signal="USR1", comes_back=True)
    verdict = judge(case, Outcome("24.11.5", tuple(seen), (), job()))
    assert [fault.rule for fault in verdict.faults] == found


def test_an_array_with_a_task_that_starts_nothing() -> None:
    seen = [
        program._replace(job=str(7 + task))
        for task in (0, 1)
        for program in ranks(
            lambda _: {"SLURM_ARRAY_TASK_ID": str(task), "MASTER_PORT": str(12000 + task)}  # noqa: B023
        )
    ]
    outcome = Outcome("24.11.5", tuple(seen), (), job())
    verdict = judge(Case(None, 4, array_tasks=3), outcome)
    assert [fault.rule for fault in verdict.faults] == ["array-task-missing"]


GIVEN_UP = (
    '/var/spool/job00007/slurm_script: line 6: 10000 + 0009: value too great for base ("0009")\n'
)
DIVIDED = '/var/spool/job00007/slurm_script: line 9: 8 / 0: division by 0 (error token is "0")\n'


@pytest.mark.parametrize(
    ("log", "found"),
    [(GIVEN_UP, ("number-octal", 6)), (DIVIDED, ("line-given-up", 9)), ("x: line 1: y\n", None)],
)
def test_a_line_that_bash_gives_up(log: str, found: tuple[str, int] | None) -> None:
    verdict = judge(Case(None, 4), Outcome("24.11.5", tuple(ranks()), (), job(log=log)))
    assert [(f.rule, f.line) for f in verdict.faults] == ([found] if found else [])


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("python train.py --fold $SLURM_ARRAY_TASK_ID", ["variable-unset"]),
        ('python train.py "data/${SLURM_ARRAY_TASK_ID}.npz"', ["variable-unset"]),
        ("python train.py $((SLURM_X + $SLURM_ARRAY_TASK_ID))", ["variable-unset"]),
        ("python train.py --fold ${SLURM_ARRAY_TASK_ID:-0}", []),
        ("srun bash -c 'python train.py $SLURM_ARRAY_TASK_ID'", []),
        ("echo $SLURM_ARRAY_TASK_ID", []),
    ],
)
def test_a_variable_that_slurm_has_not_set(command: str, found: list[str]) -> None:
    note = Note(
        "unset",
        *("7", 0, "batch", "n1", 0),
        {"text": f"SLURM_ARRAY_TASK_ID {command}"},
        *(5, "/var/spool/job00007/slurm_script"),
    )
    assert rules(ranks(), notes=(note,)) == found


@pytest.mark.parametrize(
    ("to_batch", "exit_code", "found"),
    [
        (False, "0:0", "signal-unheard"),
        (True, "0:0", "signal-unheard"),
        (True, "0:10", "signal-kills"),
        (False, "138:0", "signal-kills"),
    ],
)
def test_a_signal_that_nobody_gets(to_batch: bool, exit_code: str, found: str) -> None:
    asked = request("#SBATCH --ntasks=4", "#SBATCH --signal=USR1@90")
    case = Case(None, 4, asked, signal="USR1", to_batch=to_batch)
    states = (State("COMPLETED", "None", exit_code),)
    ended = job(heard=False, states=states)
    (fault,) = judge(case, Outcome("24.11.5", tuple(ranks()), (), ended)).faults
    assert (fault.rule, fault.line) == (found, 3)


def test_a_launcher_that_is_given_all_addresses() -> None:
    content = {"launcher": "torchrun", "address": "10.0.0.5 192.0.2.1 "}
    note = Note("launcher", "7", 0, "0", "n1", 0, content)
    assert rules(ranks(), notes=(note,)) == ["address-wrong"]


@pytest.mark.parametrize(
    ("directives", "port", "found"),
    [
        (["#SBATCH --gres=gpu:2"], "12007", ["port-fixed"]),
        (["#SBATCH --gres=gpu:2"], "12008", []),
        (["#SBATCH --gres=gpu:2", "#SBATCH --exclusive"], "12007", []),
        (["#SBATCH --gres=gpu:8"], "12007", []),
    ],
)
def test_a_port_that_is_the_same_in_another_job(
    directives: list[str], port: str, found: list[str]
) -> None:
    again = [program._replace(job="8") for program in ranks(lambda _: {"MASTER_PORT": port})]
    failing = job(job_id="8", states=BADLY)
    outcome = Outcome("24.11.5", (*ranks(), *again), (), job(), failing)
    faults = judge(Case(None, 4, request("#SBATCH --ntasks=4", *directives)), outcome).faults
    assert [fault.rule for fault in faults] == found
