"""GPUs that a job leaves to nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.cluster import waste
from slurmgen.cluster.ask import Ask
from slurmgen.cluster.profile import NodeType, Partition, Profile
from slurmgen.jobfile.job import JobSpec
from slurmgen.launchers import Layout

if TYPE_CHECKING:
    from slurmgen.errors import Refusal

NODE = NodeType(name="a100", gpu="a100", gpus_per_node=4, cpus=64, memory="512G")


def problems(job: dict[str, Any], *, whole_nodes: bool = False) -> list[tuple[Any, str, str]]:
    spec = JobSpec(command="true", **job)
    gpus = spec.gpus_per_node.number if spec.gpus_per_node else 0
    cpus = spec.cpus_per_task if isinstance(spec.cpus_per_task, int) else 1
    found: list[Refusal] = []
    ask = Ask(NODE, Layout(gpus or 1, gpus or 1, 1), None, gpus, cpus)
    waste.check(spec, ask, whole_nodes=whole_nodes, problems=found)
    return [(p.key, p.what, p.fix) for p in found]


@pytest.mark.parametrize(
    "job",
    [
        {"gpus_per_node": 1, "cpus_per_task": 16, "mem": "128G"},
        {"gpus_per_node": 4, "cpus_per_task": 16, "mem": "0", "exclusive": True},
        {"gpus_per_node": 2, "cpus_per_task": 4, "mem_per_gpu": "128G"},
        {"cpus_per_task": 64},
    ],
)
def test_a_share_is_fine(job: dict[str, Any]) -> None:
    assert problems(job) == []


def test_too_many_cpus() -> None:
    assert problems({"gpus_per_node": 1, "cpus_per_task": 40}) == [
        (
            "cpus_per_task",
            "40 of a node's 64 CPUs for 1 of 4 GPUs leaves 2 of the other 3 without a share",
            "write cpus_per_task: 16, or take more GPUs",
        )
    ]


def test_too_much_memory() -> None:
    ((key, what, fix),) = problems({"gpus_per_node": 2, "mem": "0"})
    assert (key, fix) == ("mem", "write mem: 262144M, or take more GPUs")
    assert what == (
        "524288M of a node's 524288M memory for 2 of 4 GPUs leaves 2 of the other 2 without a share"
    )


def test_whole_nodes() -> None:
    assert problems({"gpus_per_node": 1, "exclusive": True}) == [
        (
            "exclusive",
            "whole nodes for 1 of their 4 GPUs leave 3 to nobody",
            "write gpus_per_node: 4, or remove exclusive",
        )
    ]
    ((key, _, fix),) = problems({"gpus_per_node": 1}, whole_nodes=True)
    assert (key, fix) == ("gpus_per_node", "write gpus_per_node: 4")


def test_partitions_of_whole_nodes() -> None:
    shared, whole = Partition(name="shared"), Partition(name="whole", whole_nodes=True)
    profile = Profile(name="site", partitions=(shared, whole))
    given = {name: JobSpec(command="true", partition=name) for name in ("whole", "whole,shared")}
    assert waste.are_whole(given["whole"], profile)
    # It may start in the other one.
    assert not waste.are_whole(given["whole,shared"], profile)
    assert not waste.are_whole(JobSpec(command="true"), profile)
