"""What Slurm makes of the directives: nodes, tasks, GPUs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmgen.slurm.directives import read
from slurmgen.slurm.request import Request, requests


def request(options: str) -> Request:
    return requests(read(f"#!/bin/bash\n#SBATCH {options}\n"))[0]


@pytest.mark.parametrize(
    ("options", "nodes", "tasks", "per_node", "gpus"),
    [
        ("", 1, 1, 1, 0),
        ("--nodes=2", 2, 2, 1, 0),
        ("-N2 -n8", 2, 8, 4, 0),
        ("-N2 -n7", 2, 7, 4, 0),
        ("-N2 --ntasks-per-node=4 --gres=gpu:4", 2, 8, 4, 4),
        ("-N2 --tasks-per-node=4 --ntasks-per-node=3", 2, 6, 3, 0),
        ("-N2 -n1", 1, 1, 1, 0),
        ("-N4 -n2 --gpus-per-node=4", 2, 2, 1, 4),
        ("-N2 -n4 --ntasks-per-node=4", 2, 4, 2, 0),
        ("-n8 --ntasks-per-node=4", 2, 8, 4, 0),
        ("-n9 --ntasks-per-node=4", 3, 9, 3, 0),
        ("--ntasks-per-node=4", 1, 4, 4, 0),
        ("-n8", None, 8, None, 0),
        ("-n1", 1, 1, 1, 0),
        ("-N2-4", None, None, None, 0),
        ("-N2-2", 2, 2, 1, 0),
        ("-N2-4 --ntasks-per-node=4", None, None, 4, 0),
        ("-N1k", 1024, 1024, 1, 0),
        ("-w n[1-3]", 3, 3, 1, 0),
        ("-w n[1-3] -N3 -n6", 3, 6, 2, 0),
        ("--gpus=1", 1, 1, 1, 1),
        ("--gpus=4", None, None, None, None),
        ("-N1 --gpus=4", 1, 1, 1, 4),
        ("-N2 --gpus=4", 2, 2, 1, None),
        ("-N2 --gpus=2", 2, 2, 1, 1),
        ("--gpus=4 --gpus-per-node=2", 2, 2, 1, 2),
        ("--gpus=8 --gres=gpu:4", 2, 2, 1, 4),
        ("-N2 --gpus-per-task=1 --ntasks-per-node=4", 2, 8, 4, 4),
        ("-n4 --gpus-per-task=1 -N1", 1, 4, 4, 4),
        ("-n4 --gpus-per-task=1", None, 4, None, None),
        ("-n4 --gres=gpu:2 --gpus-per-task=1", 2, 4, 2, 2),
        ("-N1 --gpus=4 --gpus-per-task=2", 1, 2, 2, 4),
        ("-N2 --gpus-per-task=2", 2, 2, 1, 2),
        ("-N2 --gpus-per-node=4 --ntasks-per-gpu=1", 2, 8, 4, 4),
        ("-N1 --ntasks-per-gpu=2 --gpus=2", 1, 4, 4, 2),
        ("-N1 -n2 --tres-per-task=cpu:4,gres/gpu:1", 1, 2, 2, 2),
        ("--gres=gpu", 1, 1, 1, 1),
        ("--gres=gpu:a100", 1, 1, 1, 1),
        ("--gres=gpu:a100:2", 1, 1, 1, 2),
        ("--gres=gpu:a100:2,gpu:v100:1", 1, 1, 1, 3),
        ("--gres=nvme:1", 1, 1, 1, 0),
        ("--gres=gpu=2,nvme:1", 1, 1, 1, 2),
        ("--gres=gres/gpu:2", 1, 1, 1, 2),
        ("--gres=gpu:0", 1, 1, 1, 0),
        ("--gres=none", 1, 1, 1, 0),
        ("--gpus-per-socket=2 --sockets-per-node=2", 1, 1, 1, None),
        ("-N$NODES", None, None, None, 0),
        ("-N2 -n$TASKS", None, None, None, 0),
        ("-N2 --ntasks-per-node=$TASKS", 2, None, None, 0),
        ("-N2 --gres=gpu:$GPUS", 2, 2, 1, None),
        ("-N2 --gres=$GRES", 2, 2, 1, None),
        ("-N x", None, None, None, 0),
        ("--exclusive", 1, 1, 1, 0),
        ("-N=2", 2, 2, 1, 0),
        ("--ntasks-per-socket=2 -N2", 2, None, None, 0),
    ],
)
def test_what_slurm_makes_of_it(
    options: str, nodes: int | None, tasks: int | None, per_node: int | None, gpus: int | None
) -> None:
    asked = request(options)
    got = (asked.total_nodes, asked.total_tasks, asked.tasks_per_node, asked.node_gpus)
    assert got == (nodes, tasks, per_node, gpus)


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ("-N2-4", "nodes", (2, 4)),
        ("-N2", "nodes", (2, 2)),
        ("-N1,3,5", "nodes", (1, 5)),
        ("-N1-15:4", "nodes", (1, 15)),
        ("-Nx", "nodes", None),
        ("--gpus=a100:2", "gpu_type", "a100"),
        ("--gpus=a100:2", "gpus", 2),
        ("--gres=gpu:a100", "gpu_type", "a100"),
        ("--gres=gpu:1g.10gb:4", "gpu_type", "1g.10gb"),
        ("--gres=gpu:1g.10gb:4", "gpus_per_node", 4),
        ("--gres=gpu:1080ti:2", "gpu_type", "1080ti"),
        ("--gres=gpu:4", "gpu_type", None),
        ("--gres=gpu:a:1,gpu:b:1", "gpu_type", None),
        ("--time=1:00:00", "time", 3600),
        ("--time=UNLIMITED", "time", None),
        ("--time=soon", "time", None),
        ("--mem=4G", "mem", 4096),
        ("--mem=0", "mem", 0),
        ("--mem=$M", "mem", None),
        ("--mem-per-cpu=512", "mem_per_cpu", 512),
        ("--mem-per-gpu=1T", "mem_per_gpu", 1024 * 1024),
        ("-c8", "cpus_per_task", 8),
        ("-c 2²", "cpus_per_task", None),
        ("--cpus-per-gpu=4", "cpus_per_gpu", 4),
        ("--exclusive", "exclusive", True),
        ("--exclusive=user", "exclusive", False),
        ("-a 0-3", "array", "0-3"),
        ("--export=NONE", "export", "NONE"),
        ("--signal=B:USR1@60", "signal", "B:USR1@60"),
        ("-o a -e b", "output", "a"),
        ("-o a -e b", "error", "b"),
        ("-w n1", "nodelist", "n1"),
        ("--gpu-bind=none", "gpu_bind", "none"),
        ("", "array", None),
    ],
)
def test_values(options: str, name: str, value: Any) -> None:
    assert getattr(request(options), name) == value


def test_the_last_one_counts() -> None:
    asked = request("-n2 --ntasks=4")
    directive = asked.directive("ntasks")
    assert directive is not None
    assert (directive.value, directive.spelled) == ("4", "--ntasks")
    assert asked.ntasks == 4


@pytest.mark.parametrize(
    ("options", "given"), [("--requeue --no-requeue", False), ("--no-requeue --requeue", True)]
)
def test_flags_that_take_each_other_back(options: str, given: bool) -> None:
    assert request(options).gives("requeue") is given


def test_names_with_underscores() -> None:
    asked = request("--ntasks-per-node=2 --tasks-per-node=3")
    directive = asked.directive("ntasks_per_node")
    assert directive is not None
    assert directive.option == "tasks-per-node"
    assert asked.gives("tasks-per-node")
    assert not asked.gives("nodes", "ntasks")


def test_components() -> None:
    text = (
        "#SBATCH -N1 -n1 --mem=4G -J x -p a\n#SBATCH hetjob\n#SBATCH -N2 --gres=gpu:4\n"
        "#SBATCH hetjob\n#SBATCH -n3 -J y\n"
    )
    first, second, third = requests(read(text))
    assert (first.total_nodes, second.total_nodes, third.total_tasks) == (1, 2, 3)
    assert (second.node_gpus, third.node_gpus) == (4, 0)
    # Of the others sbatch keeps these for every component.
    assert (second.mem, second.value("job-name"), second.value("partition")) == (4096, "x", None)
    assert third.value("job-name") == "y"


def test_a_script_for_another_scheduler() -> None:
    asked = requests(read("#PBS -l nodes=2\n#SBATCH --time=5\n"))[0]
    assert (asked.total_nodes, asked.total_tasks, asked.node_gpus) == (None, None, None)
    assert asked.time == 300


_OPTIONS = ["-N", "-n", "--gres=", "--gpus=", "--gpus-per-task=", "--ntasks-per-node=", "--time="]
_VALUES = ["0", "1", "3", "gpu:2", "$X", "", "a100", "a:2", "2-4", "9999999999", "²", "x"]


@given(st.lists(st.tuples(st.sampled_from(_OPTIONS), st.sampled_from(_VALUES)), max_size=6))
def test_any_request(options: list[tuple[str, str]]) -> None:
    asked = request(" ".join(map("".join, options)))
    for name in ("total_nodes", "total_tasks", "tasks_per_node", "node_gpus", "time", "gpu_type"):
        getattr(asked, name)
    assert asked.total_nodes is None or asked.total_nodes >= 1
