"""Every launcher on a real Slurm with a real torch: who runs where, and whether they meet."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.script.placement import seats
from tests.slurm.conftest import PROBE, ROOT
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from slurmgen.script.plan import JobPlan
    from tests.slurm.conftest import Cluster, Ran

pytestmark = pytest.mark.slurm

ENV_SCRIPT = str(ROOT / "examples" / "env_ddp" / "train.py")
RANK_LINE = re.compile(r"rank (\d+) of (\d+) on (\S+) local (\d+) sum (\d+)")

SHAPES: dict[str, dict[str, Any]] = {
    "srun 2x4": {"nodes": 2, "gpus_per_node": "a100:4"},
    "srun 2x3 of 4": {"nodes": 2, "gpus_per_node": 3},
    "srun 5 on 2": {"nodes": 2, "ntasks": 5},
    "torchrun static 2x4": {"nodes": 2, "gpus_per_node": 4, "launcher": "torchrun"},
    "torchrun c10d 2x4": {
        "nodes": 2,
        "gpus_per_node": 4,
        "launcher": "torchrun",
        "rdzv": "c10d",
    },
    "torchrun 1x3 of 4": {"gpus_per_node": 3, "launcher": "torchrun"},
}


def expected_seats(plan: JobPlan) -> set[tuple[int, str, int]]:
    return {(seat.rank, f"n{seat.node + 1}", seat.local_rank) for seat in seats(plan)}


def ranks(ran: Ran) -> list[tuple[int, int, str, int, int]]:
    return [
        (int(rank), int(world), host, int(local), int(total))
        for rank, world, host, local, total in RANK_LINE.findall(ran.log)
    ]


def assert_all_met(ran: Ran, *, node_order: bool = True) -> None:
    """Every rank once, every (node, local rank) once, and the right sum everywhere."""
    found, world = ranks(ran), ran.plan.world_size
    assert ran.status == 0, ran.log
    assert sorted(rank for rank, *_ in found) == list(range(world)), ran.log
    assert {size for _, size, *_ in found} == {world}
    assert {total for *_, total in found} == {world * (world + 1) // 2}
    placed = {(rank, host, local) for rank, _, host, local, _ in found}
    if node_order:
        assert placed == expected_seats(ran.plan)
    else:
        assert len({(host, local) for _, host, local in placed}) == world


@pytest.mark.torch
@pytest.mark.parametrize("shape", SHAPES)
def test_a_plain_env_script_meets(cluster: Cluster, shape: str) -> None:
    ran = cluster.run({**SHAPES[shape], "command": ["python", ENV_SCRIPT]})
    assert_all_met(ran, node_order="c10d" not in shape)


@pytest.mark.torch
@pytest.mark.parametrize(
    "launcher",
    # The other two are those of examples.
    ["srun", pytest.param("torchrun", marks=pytest.mark.matrix), "spawn"],
)
def test_the_bundled_entrypoint_meets(cluster: Cluster, launcher: str) -> None:
    job = {"nodes": 2, "gpus_per_node": 4, "launcher": launcher, "ddp": ENV_SCRIPT}
    ran = cluster.run(job)
    assert_all_met(ran)


@pytest.mark.torch
def test_two_jobs_at_once_on_the_same_nodes_do_not_meet(cluster: Cluster) -> None:
    job = {"nodes": 2, "gpus_per_node": 2, "mem": "1G", "command": ["python", ENV_SCRIPT]}
    first, second = cluster.start(job), cluster.start(job)
    for ran in (cluster.finish(first), cluster.finish(second)):
        assert_all_met(ran)


TWO_STEPS = """\
{% extends "slurmgen/job.sbatch.j2" %}
{% block launch %}
{
{{ super() }}} &
{
{{ super() }}} &
wait %1
wait %2
{% endblock %}
"""


@pytest.mark.torch
def test_two_steps_of_one_job_do_not_meet(cluster: Cluster, tmp_path: Path) -> None:
    from slurmgen.jobfile.job import JobSpec
    from slurmgen.script.plan import resolve
    from slurmgen.script.render import render
    from tests.slurm.conftest import GENERIC

    (tmp_path / "job.sbatch.j2").write_text(TWO_STEPS)
    job = {"nodes": 2, "gpus_per_node": 2, "command": ["python", ENV_SCRIPT]}
    spec = JobSpec(**job, time="10m", output="PROBE_FOLDER_HERE/log")
    script = render(resolve(spec, GENERIC), templates=tmp_path).replace(
        "srun --nodes=2", "srun --overlap --nodes=2"
    )
    ran = cluster.run(job, script=script)
    assert ran.status == 0, ran.log
    found = ranks(ran)
    assert sorted(rank for rank, *_ in found) == [0, 0, 1, 1, 2, 2, 3, 3], ran.log
    assert {total for *_, total in found} == {10}


def probe(cluster: Cluster, **job: Any) -> Ran:
    ran = cluster.run({"command": ["python", str(PROBE)], **job})
    assert ran.status == 0, ran.log
    return ran


@pytest.mark.matrix
def test_what_each_task_is_told(cluster: Cluster) -> None:
    ran = probe(cluster, nodes=2, gpus_per_node="a100:4", cpus_per_task=3)
    assert len(ran.seen) == 8
    told = [seen["env"] for seen in ran.seen]
    placed = {(int(e["RANK"]), e["SLURMD_NODENAME"], int(e["LOCAL_RANK"])) for e in told}
    assert placed == expected_seats(ran.plan)
    for env in told:
        assert env["WORLD_SIZE"] == "8"
        assert env["LOCAL_WORLD_SIZE"] == "4"
        assert env["NODE_RANK"] == env["SLURM_NODEID"]
        assert env["OMP_NUM_THREADS"] == "3"
        # All GPUs of the node stay visible: NCCL reaches its peers only then.
        assert env["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"
        assert 12_000 <= int(env["MASTER_PORT"]) < 29_000
    assert len({(e["MASTER_ADDR"], e["MASTER_PORT"]) for e in told}) == 1


@pytest.mark.matrix
def test_local_world_size_of_uneven_nodes(cluster: Cluster) -> None:
    ran = probe(cluster, nodes=2, ntasks=5)
    sizes = sorted((s["env"]["SLURMD_NODENAME"], s["env"]["LOCAL_WORLD_SIZE"]) for s in ran.seen)
    assert sizes == [("n1", "3")] * 3 + [("n2", "2")] * 2
    assert "Warning" not in ran.log


@pytest.mark.matrix
def test_spawn_is_told_its_share_but_no_rank(cluster: Cluster) -> None:
    ran = probe(cluster, nodes=2, gpus_per_node=4, launcher="spawn")
    told = [seen["env"] for seen in ran.seen]
    assert sorted(env["NODE_RANK"] for env in told) == ["0", "1"]
    for env in told:
        assert (env["WORLD_SIZE"], env["LOCAL_WORLD_SIZE"]) == ("8", "4")
        assert "RANK" not in env
        assert "LOCAL_RANK" not in env


@pytest.mark.matrix
def test_plain_is_one_process_that_sees_every_gpu(cluster: Cluster) -> None:
    ran = probe(cluster, gpus_per_node=4, cpus_per_task=8, launcher="plain")
    (seen,) = ran.seen
    assert seen["env"]["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"
    assert not {"RANK", "WORLD_SIZE", "MASTER_ADDR"} & set(seen["env"])


@pytest.mark.matrix
def test_one_task_is_rank_0_of_1(cluster: Cluster) -> None:
    (seen,) = probe(cluster, gpus_per_node=1).seen
    assert (seen["env"]["RANK"], seen["env"]["WORLD_SIZE"]) == ("0", "1")


@pytest.mark.matrix
def test_a_node_whose_name_is_not_known(cluster: Cluster) -> None:
    """Its address is taken, as Slurm has it."""
    ran = probe(cluster, nodes=2, setup={"commands": ["getent() { return 2; }"]})
    node = cluster.sandbox.run(["scontrol", "-o", "show", "node", "n1"]).stdout
    address = node.split("NodeAddr=")[1].split()[0]
    assert {seen["env"]["MASTER_ADDR"] for seen in ran.seen} == {address}


@pytest.mark.matrix
def test_the_environment_arrives_under_export_none(cluster: Cluster) -> None:
    """Slurm passes SLURM_EXPORT_ENV=NONE on to srun, which then starts without PATH."""
    path = cluster.sandbox.environment()["PATH"]
    ran = probe(
        cluster,
        export="NONE",
        env={"GREETING": "hello", "PATH": f"{Path(PROBE).parent}:{path}"},
        command=["python3", str(PROBE)],
    )
    assert {seen["env"]["GREETING"] for seen in ran.seen} == {"hello"}


@pytest.mark.matrix
def test_array_tasks_have_ports_of_their_own(cluster: Cluster) -> None:
    ran = probe(cluster, array="0-3", ntasks_per_node=2)
    ports: dict[str, set[str]] = {}
    for seen in ran.seen:
        env = seen["env"]
        ports.setdefault(env["SLURM_ARRAY_TASK_ID"], set()).add(env["MASTER_PORT"])
    assert len(ran.seen) == 8
    assert sorted(len(found) for found in ports.values()) == [1, 1, 1, 1]
    assert len(set.union(*ports.values())) == 4


DYING: dict[str, dict[str, Any]] = {
    "srun": {"ntasks_per_node": 2},
    "torchrun": {"gpus_per_node": 2, "launcher": "torchrun"},
}


@pytest.mark.matrix
@pytest.mark.parametrize("launcher", ["srun", pytest.param("torchrun", marks=pytest.mark.torch)])
def test_a_dying_rank_ends_the_job_with_an_error(cluster: Cluster, launcher: str) -> None:
    command = 'if [ "$RANK" = 3 ]; then exit 7; fi; sleep 300'
    ran = cluster.run({"nodes": 2, "command": command, **DYING[launcher]})
    assert ran.status != 0
    task = "task 3: Exited with exit code 7" if launcher == "srun" else "task 1: Exited"
    assert task in ran.log


def test_a_failing_set_up_line_ends_the_job_before_the_program(cluster: Cluster) -> None:
    ran = cluster.run(
        {"setup": {"commands": ["echo before", "false", "echo after"]}, "command": "echo started"}
    )
    assert ran.status == 1
    assert ran.log.split() == ["before"]


# What a person may have typed before submitting from inside the allocation.
OUTER = [
    "--gpus-per-node=1",
    "--gpus-per-task=1 -n2",
    "-n4 -m cyclic",
    "--mem=1G",
    "--hint=nomultithread",
]


@pytest.mark.matrix
@pytest.mark.parametrize("outer", OUTER)
def test_a_job_submitted_from_inside_another_is_not_changed_by_it(
    cluster: Cluster, outer: str
) -> None:
    """By sbatch itself: the script has to stand alone."""
    job = {
        "nodes": 2,
        "gpus_per_node": "a100:2",
        "mem_per_cpu": "100M",
        "command": ["python", str(PROBE)],
    }
    ran = cluster.run(job, inside=["salloc", "--quiet", "-N1", *outer.split()])
    assert ran.status == 0, ran.log
    told = [seen["env"] for seen in ran.seen]
    placed = {(int(e["RANK"]), e["SLURMD_NODENAME"], int(e["LOCAL_RANK"])) for e in told}
    assert placed == expected_seats(ran.plan)
    assert {len(env["CUDA_VISIBLE_DEVICES"].split(",")) for env in told} == {2}


@pytest.mark.matrix
def test_bash_is_found_where_the_job_gets_no_environment(cluster: Cluster) -> None:
    ran = cluster.run({"nodes": 2, "export": "NIL", "command": "echo met $RANK"})
    assert ran.status == 0, ran.log
    assert sorted(ran.log.split()) == ["0", "1", "met", "met"]


def test_the_first_line_that_fails_ends_the_task(cluster: Cluster) -> None:
    """Or a rank that died would look as if it had finished, and the others wait for it."""
    ran = cluster.run({"ntasks_per_node": 2, "command": "echo before\nfalse | true\necho after"})
    assert ran.status != 0
    assert "before" in ran.log
    assert "after" not in ran.log


CATCHES = """\
import pathlib, signal, sys, time
def save(*_):
    time.sleep(1)
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGUSR1, save)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.matrix
def test_the_jobs_signal_reaches_the_program_and_not_the_bash_around_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    program = tmp_path / "catches.py"
    program.write_text(CATCHES)
    job = {"nodes": 2, "signal": "USR1@60", "command": f"python {program}\necho went on"}
    started = cluster.start(job)
    log = started[2] / "log"
    until(lambda: log.exists() and log.read_text().count("ready") == 2)
    (job_id,) = cluster.sandbox.run(["squeue", "-h", "-o", "%i"]).stdout.split()
    cluster.sandbox.run(["scancel", "--signal=USR1", job_id])
    ran = cluster.finish(started)
    assert ran.status == 0, ran.log
    assert ran.log.count("saved") == 2
    assert ran.log.count("went on") == 2


def until(met: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < end
        time.sleep(0.1)
