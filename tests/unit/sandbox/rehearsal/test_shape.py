"""What a script asks for, and the sandbox that has it."""

from __future__ import annotations

import pytest
import yaml

from slurmgen.cluster.profile import Profile
from slurmgen.reading.script import BatchScript
from slurmgen.sandbox.rehearsal.shape import Rehearsed, rehearsed


def of(*directives: str) -> Rehearsed:
    lines = "".join(f"#SBATCH {text}\n" for text in directives)
    return rehearsed(BatchScript(f"#!/bin/bash\n{lines}srun python x.py\n").requests)


@pytest.mark.parametrize(
    ("directives", "nodes", "gpus", "kind"),
    [
        (["--nodes=2", "--gres=gpu:a100:4"], 2, 4, "a100"),
        (["--nodes=128", "--gpus-per-node=8"], 128, 8, ""),
        (["--ntasks=8", "--ntasks-per-node=4"], 2, 0, ""),
        (["--gpus=16", "--ntasks=16"], 2, 8, ""),
        (["--nodes=2", "--gpus=4"], 2, 4, ""),
        (["--ntasks=4", "--gres=gpu:2", "--gpus-per-task=1"], 2, 2, ""),
        ([], 1, 0, ""),
    ],
)
def test_nodes_and_gpus(directives: list[str], nodes: int, gpus: int, kind: str) -> None:
    shape = of(*directives).shape
    assert (shape.nodes, shape.gpus_per_node, shape.gpu_type) == (nodes, gpus, kind)


def test_cpus_memory_and_partitions() -> None:
    shape = of(
        "--ntasks-per-node=4", "--cpus-per-task=72", "--mem=1T", "--partition=booster,dev"
    ).shape
    assert (shape.cpus_per_node, shape.memory_mb) == (288, 1 << 20)
    assert shape.partitions == ("booster", "dev")


def test_what_only_the_site_has_is_not_asked_for() -> None:
    found = of(
        "--nodes=2",
        "--constraint=a100&ib",
        "--reservation=maintenance",
        "--nodelist=gpu[07-08]",
        "--exclude=gpu01",
        "--begin=22:00",
        "--gres=gpu:4,tmp:100G",
    )
    assert found.options == (
        "--constraint=",
        "--reservation=",
        "--begin=now",
        "--exclude=n3",
        "--nodelist=n1,n2",
        "--gres=gpu:4",
    )
    assert found.shape.nodes == 3
    assert "--nodelist=gpu[07-08]" in found.notes[0]


def test_a_variable_in_a_directive_is_left_for_sbatch_to_refuse() -> None:
    assert of("--dependency=afterok:$PREP").options == ()


def test_a_small_array_runs_whole_and_side_by_side() -> None:
    found = of("--array=0-3%2", "--nodes=2")
    assert (found.array_tasks, found.shape.nodes, found.options) == (4, 4, ())


def test_of_a_large_array_some_tasks_run() -> None:
    found = of("--array=1-999:2%4")
    assert found.array_tasks == 16
    assert found.options[0].startswith("--array=1,3,5,")
    assert found.options[0].endswith(",29,999%4")
    assert found.notes


LIKE = """
name: two
partitions:
  - {name: gpu, node_types: [a100], max_time: 1d, default: true}
  - {name: big, node_types: [h100]}
node_types:
  - {name: a100, gpu: a100, gpus_per_node: 4, count: 100, cpus: 64, memory: 512G, features: [ib]}
  - {name: h100, gpu: h100, gpus_per_node: 8, count: 50, cpus: 128, memory: 1T}
"""


def like(*directives: str) -> Rehearsed:
    lines = "".join(f"#SBATCH {text}\n" for text in directives)
    profile = Profile.model_validate(yaml.safe_load(LIKE))
    return rehearsed(BatchScript(f"#!/bin/bash\n{lines}srun python x.py\n").requests, profile)


@pytest.mark.parametrize(
    ("directives", "nodes", "options"),
    [
        (["--nodes=3"], [3, 1], ()),
        (["--nodes=3", "--partition=big"], [1, 3], ()),
        (["--nodes=128"], [100, 1], ()),
        (["--constraint=ib"], [1, 1], ()),
        (["--constraint=nvlink"], [1, 1], ("--constraint=",)),
        (["--partition=big", "--nodes=2", "--nodelist=g[5-6]"], [1, 2], ("--nodelist=n2,n3",)),
        (["--partition=big", "--nodes=2", "--exclude=g7"], [1, 3], ("--exclude=n4",)),
    ],
)
def test_nodes_of_a_cluster(
    directives: list[str], nodes: list[int], options: tuple[str, ...]
) -> None:
    found = like(*directives)
    assert [group.nodes for group in found.shape.node_groups] == nodes
    assert found.options == options
    assert [partition.max_minutes for partition in found.shape.partition_shapes] == [1440, None]
