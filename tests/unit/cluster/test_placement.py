"""Which rank sits where, what it costs, and that neither takes long however large a job is."""

from __future__ import annotations

from itertools import chain, cycle
from typing import Any

import pytest

from slurmgen.cli.commands.plan import format_table
from slurmgen.cluster.profile import Profile
from slurmgen.jobfile.job import JobSpec
from slurmgen.script.cost import cost_lines
from slurmgen.script.picture import draw
from slurmgen.script.placement import seats, seats_on
from slurmgen.script.plan import JobPlan, resolve

GENERIC = Profile(name="generic")
CYCLIC: dict[str, Any] = {"sbatch": {"distribution": "cyclic"}}


def plan(profile: Profile = GENERIC, **job: Any) -> JobPlan:
    return resolve(JobSpec(command="true", **job), profile)


def ranks(found: JobPlan) -> list[list[int]]:
    """The ranks of each node, in the order of their local ranks."""
    nodes: list[list[int]] = [[] for _ in range(found.nodes)]
    for seat in seats(found):
        assert seat.local_rank == len(nodes[seat.node])
        nodes[seat.node].append(seat.rank)
    return nodes


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"nodes": 2, "gpus_per_node": "2"}, [[0, 1], [2, 3]]),
        ({"nodes": 2, "gpus_per_node": "2", "launcher": "torchrun"}, [[0, 1], [2, 3]]),
        ({"nodes": 2, "ntasks": 5}, [[0, 1, 2], [3, 4]]),
        ({"nodes": 3, "ntasks": 5}, [[0, 1], [2, 3], [4]]),
        ({"nodes": 2, "gpus_per_node": "2", **CYCLIC}, [[0, 2], [1, 3]]),
        ({"nodes": 3, "ntasks": 8, **CYCLIC}, [[0, 3, 6], [1, 4, 7], [2, 5]]),
        # The task of a node starts its ranks itself, whatever the order of tasks.
        (
            {"nodes": 2, "gpus_per_node": "2", "launcher": "torchrun", **CYCLIC},
            [[0, 1], [2, 3]],
        ),
        ({"gpus_per_node": "2", "launcher": "plain"}, [[0]]),
    ],
)
def test_ranks_on_nodes(job: dict[str, Any], expected: list[list[int]]) -> None:
    assert ranks(plan(**job)) == expected


@pytest.mark.parametrize("nodes", range(1, 6))
@pytest.mark.parametrize("tasks", range(5, 14))
def test_any_number_of_tasks(nodes: int, tasks: int) -> None:
    block = plan(nodes=nodes, ntasks=tasks)
    here = ranks(block)
    assert list(chain(*here)) == list(range(tasks))
    assert max(map(len, here)) - min(map(len, here)) <= 1
    first = 0
    for node, there in enumerate(here):
        assert seats_on(block, node) == range(first, first + len(there))
        first += len(there)
    # Dealt out one by one, as long as a node has room.
    dealt: list[list[int]] = [[] for _ in range(nodes)]
    turns = cycle(range(nodes))
    for rank in range(tasks):
        dealt[next(turns)].append(rank)
    assert ranks(plan(nodes=nodes, ntasks=tasks, **CYCLIC)) == dealt


def test_a_profile_s_distribution_counts_as_the_job_s_own() -> None:
    site = Profile(name="site", sbatch={"distribution": "cyclic"})
    found = plan(site, nodes=2, gpus_per_node="2")
    assert ("distribution", "cyclic", ("sbatch", "distribution")) in found.directives
    assert ranks(found) == [[0, 2], [1, 3]]
    # The job's own comes before it.
    own = plan(site, nodes=2, gpus_per_node="2", sbatch={"distribution": "block"})
    assert ranks(own) == [[0, 1], [2, 3]]


LARGE = plan(nodes=65_000, gpus_per_node="a100:8", cpus_per_task=8, time="1h")


def test_the_table_of_a_large_job_holds_its_ends() -> None:
    lines = format_table(LARGE).splitlines()
    assert len(lines) == 2 + 1 + 64 + 1 + 1 + 2
    assert lines[3].split() == ["0", "0", "0", "0", "a100", "8"]
    assert lines[35] == "… 519936 more …"
    assert lines[36].split() == ["519968", "64996", "0", "0", "a100", "8"]
    assert lines[67].split() == ["519999", "64999", "7", "7", "a100", "8"]
    assert lines[-1] == "costs  at most 520,000.0 GPU-hours: 520000 x 1.00 h"


def test_the_picture_of_a_large_job_holds_its_first_nodes() -> None:
    picture = draw(LARGE)
    assert picture.count('class="node"') == 16
    assert picture.count('class="cell"') == 16 * 8
    assert ">and 64984 more nodes with the same ranks per node<" in picture


def test_cpus_that_are_left_to_the_site() -> None:
    found = plan(gpus_per_node=2, cpus_per_task="default")
    assert "default CPUs" in draw(found)
    assert format_table(found).splitlines()[3].split() == ["0", "0", "0", "0", "default"]


def test_the_picture_of_a_node_with_many_ranks() -> None:
    picture = draw(plan(nodes=3, ntasks=16_000_000))
    assert picture.count('class="cpu"') == 3 * 127
    # 5,333,334 on the first node and 5,333,333 on the others.
    assert picture.count(">5333207 more<") == 1
    assert picture.count(">5333206 more<") == 2


def test_nodes_left_out_may_have_a_rank_less() -> None:
    assert ">and 1 more nodes<" in draw(plan(nodes=17, ntasks=33))


@pytest.mark.parametrize(
    ("job", "lines"),
    [
        (
            {"nodes": 2, "gpus_per_node": "a100:4", "cpus_per_task": 8, "time": "90m"},
            [
                "takes  2 nodes, 8 GPUs (a100), 64 CPUs",
                "costs  at most 12.0 GPU-hours: 8 x 1.50 h",
            ],
        ),
        (
            {"ntasks": 4, "mem": "8G", "time": "2h", "array": "0-9"},
            [
                "takes  1 node, 4 CPUs, 8G per node",
                "costs  at most 8.0 CPU-hours: 4 x 2.00 h, times 10 array tasks = 80.0 CPU-hours",
            ],
        ),
        (
            {"gpus_per_node": "1", "cpus_per_task": "default", "time": "2h"},
            [
                "takes  1 node, 1 GPU, CPUs by default",
                "costs  at most 2.0 GPU-hours: 1 x 2.00 h",
            ],
        ),
        (
            {"cpus_per_task": "default", "time": "2h"},
            [
                "takes  1 node, CPUs by default",
                "costs  unknown: how many CPUs a task gets is left to the site",
            ],
        ),
        (
            {"gpus_per_node": "1"},
            [
                "takes  1 node, 1 GPU, 1 CPUs",
                "costs  unknown: no time limit is given, so the partition's counts",
            ],
        ),
    ],
)
def test_what_a_job_costs(job: dict[str, Any], lines: list[str]) -> None:
    assert cost_lines(plan(**job)) == lines
