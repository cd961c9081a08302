"""Limits as rules over the job: by node count, as products, of a partition, a QOS, a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.cluster.profile import Limit, NodeType, Partition, Profile, Qos, Source, When
from slurmgen.errors import Refusals
from slurmgen.jobfile.job import JobSpec
from slurmgen.script.plan import resolve

if TYPE_CHECKING:
    from slurmgen.errors import Refusal

NODES = (NodeType(name="thin", gpu="a100", gpus_per_node=4, cpus=64), NodeType(name="cpu", cpus=64))
BATCH = Partition(
    name="batch",
    default=True,
    limits=(
        Limit(when=When(max_nodes=91), max_time="2:00:00", why="small jobs are short"),
        Limit(when=When(min_nodes=92), max_time="6:00:00"),
    ),
    source="guide",
)
LONG = Partition(name="long", max_time="24:00:00", max_nodes=64)
DEBUG = Partition(name="debug", max_node_time="1:30:00", max_nodes=4)
SITE: dict[str, Any] = {
    "name": "site",
    "sources": {"guide": Source(where="https://example.org/guide", date="2026-08-21")},
    "node_types": NODES,
    "partitions": (BATCH, LONG, DEBUG),
}


def problems(job: dict[str, Any], **profile: Any) -> list[Refusal]:
    spec = JobSpec(command="true", **job)
    try:
        resolve(spec, Profile(**{**SITE, **profile}))
    except Refusals as error:
        return error.problems
    return []


def test_time_by_node_count() -> None:
    (problem,) = problems({"nodes": 91, "time": "3h", "partition": "batch"})
    assert problem.key == "time"
    assert (
        problem.what == "time 03:00:00 is over the 02:00:00 of partition batch for up to 91 nodes"
    )
    assert problem.why == "small jobs are short (https://example.org/guide, 2026-08-21)"
    assert problem.fix == "write time: 02:00:00"
    assert not problems({"nodes": 92, "time": "6h", "partition": "batch"})
    (problem,) = problems({"nodes": 92, "time": "7h", "partition": "batch"})
    assert "for 92 nodes or more" in problem.what


def test_the_partition_that_would_take_the_job_is_named() -> None:
    (problem,) = problems({"nodes": 4, "time": "3h", "partition": "batch"})
    assert problem.fix == "write time: 02:00:00, or partition: long"


@pytest.mark.parametrize(
    "other", [{"access": "on request"}, {"preemptible": True}, {"unnamed": "no"}, {"max_gpus": 4}]
)
def test_no_partition_is_named_that_may_not_take_it(other: dict[str, Any]) -> None:
    elsewhere = Partition(**{"name": "long", **other})
    job = {"nodes": 4, "gpus_per_node": "a100:4", "time": "3h", "partition": "batch"}
    (problem,) = problems(job, partitions=(BATCH, elsewhere))
    assert problem.fix == "write time: 02:00:00"


def test_a_job_that_names_none_has_the_limits_of_the_default() -> None:
    (problem,) = problems({"nodes": 4, "time": "3h"})
    assert "partition batch" in problem.what
    (problem,) = problems(
        {"time": "1h"}, partitions=(), qos=(Qos(name="debug", max_time="30", default=True),)
    )
    assert "QOS debug" in problem.what


@pytest.mark.parametrize(
    ("nodes", "time", "fix"),
    [
        (1, "91", "write time: 01:30:00"),
        (2, "46", "write time: 00:45:00, or write nodes: 1"),
        (4, "23", "write time: 00:22:00, or write nodes: 3"),
    ],
)
def test_node_minutes(nodes: int, time: str, fix: str) -> None:
    (problem,) = problems({"nodes": nodes, "time": time, "partition": "debug"}, partitions=(DEBUG,))
    assert problem.key == "time"
    assert "01:30:00" in problem.what
    assert problem.fix == fix


def test_node_minutes_that_are_enough() -> None:
    for nodes, time in ((1, "90"), (2, "45"), (4, "22")):
        assert not problems({"nodes": nodes, "time": time, "partition": "debug"})


BOUNDS: list[tuple[dict[str, Any], dict[str, Any], str, str, str]] = [
    (
        {"min_time": "1:00:00"},
        {"time": "59"},
        "time",
        "under the 01:00:00",
        "time: 01:00:00 or more",
    ),
    ({"min_nodes": 2}, {}, "nodes", "1 node(s), and QOS q starts at 2", "nodes: 2"),
    ({"max_gpus": 4}, {"nodes": 2}, "nodes", "8 GPUs in the job", "nodes: 1"),
    ({"max_gpus": 2}, {}, "gpus_per_node", "4 GPUs in the job", "write gpus_per_node: 2"),
    ({"max_gpus": 2}, {"nodes": 4}, "gpus_per_node", "16 GPUs", "nodes: 1 and gpus_per_node: 2"),
    ({"max_gpus": 0}, {}, "gpus_per_node", "has none", "remove gpus_per_node"),
    ({"min_gpus": 8}, {}, "gpus_per_node", "starts at 8", "gpus_per_node: 8"),
    ({"max_cpus": 8}, {"cpus_per_task": 4, "nodes": 2}, "cpus_per_task", "32 CPUs", "8 CPUs"),
    ({"max_cpus": 16}, {"cpus_per_task": 4, "nodes": 2}, "nodes", "32 CPUs", "nodes: 1"),
    ({"max_mem": "48G"}, {"mem": "64G"}, "mem", "allows 48G", "write mem: 48G"),
    ({"max_mem": "48G"}, {"mem_per_gpu": "16G"}, "mem_per_gpu", "allows 48G", "12288M"),
    ({"gpu_counts": (1, 2)}, {}, "gpus_per_node", "allows 1 or 2", "gpus_per_node: 2"),
]


@pytest.mark.parametrize(("bounds", "job", "key", "what", "fix"), BOUNDS)
def test_each_bound(
    bounds: dict[str, Any], job: dict[str, Any], key: str, what: str, fix: str
) -> None:
    asked = {"gpus_per_node": "a100:4", "qos": "q", **job}
    (problem,) = problems(asked, partitions=(), qos=(Qos(name="q", **bounds),))
    assert problem.key == key
    assert what in problem.what
    assert problem.fix.endswith(fix)
    assert problem.why


def test_a_qos_replaces_the_bounds_that_it_gives() -> None:
    where: dict[str, Any] = {
        "partitions": (Partition(name="gpu", max_time="1-0", max_nodes=64),),
        "qos": (Qos(name="longer", max_time="4-0", max_nodes=3), Qos(name="same")),
    }
    job = {"partition": "gpu", "time": "3-0", "nodes": 3}
    assert not problems({**job, "qos": "longer"}, **where)
    assert problems({**job, "qos": "same"}, **where)
    (problem,) = problems({**job, "qos": "longer", "nodes": 4}, **where)
    assert "QOS longer allows 3" in problem.what
    (problem,) = problems(job, **where)
    assert problem.fix == "write time: 1-00:00:00, or qos: longer"


def test_the_tightest_of_several_is_told_once() -> None:
    limits = (Limit(max_time="21-0"), Limit(max_time="7-0", when=When(node_type="thin")))
    job = {"gpus_per_node": "a100:4", "time": "22-0"}
    (problem,) = problems(job, partitions=(), limits=limits)
    assert "7-00:00:00 of site for thin nodes" in problem.what


CONDITIONS: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({}, {}, True),
    ({"min_nodes": 2}, {}, False),
    ({"min_nodes": 2}, {"nodes": 2}, True),
    ({"max_gpus": 7}, {"nodes": 2}, False),
    ({"min_gpus": 8}, {"nodes": 2}, True),
    ({"node_type": "thin"}, {}, True),
    ({"node_type": "cpu"}, {}, False),
    ({"partition": ["long", "debug"]}, {"partition": "long"}, True),
    ({"partition": "long"}, {"partition": "batch,long"}, True),
    ({"partition": "long"}, {}, False),
    ({"launcher": "torchrun"}, {"launcher": "torchrun"}, True),
    ({"launcher": ["torchrun", "spawn"]}, {}, False),
    ({"whole_nodes": True}, {}, True),
    ({"whole_nodes": True}, {"gpus_per_node": "a100:2"}, False),
    ({"whole_nodes": False}, {"gpus_per_node": "a100:2"}, True),
    ({"container": True}, {"setup": {"container": "x.sif"}}, True),
    ({"container": True}, {}, False),
    ({"container": False, "whole_nodes": True}, {}, True),
]


@pytest.mark.parametrize(("when", "job", "counts"), CONDITIONS)
def test_a_rule_counts_where_its_condition_holds(
    when: dict[str, Any], job: dict[str, Any], counts: bool
) -> None:
    asked = {"gpus_per_node": "a100:4", **job}
    rule = {"qos": {"why": "the site says so", "when": when}}
    partitions = tuple(Partition(name=name) for name in ("batch", "long", "debug"))
    found = problems(asked, partitions=partitions, required=rule)
    assert [problem.key for problem in found] == (["qos"] if counts else [])


def test_the_reason_for_a_rule_has_its_source() -> None:
    rule = {"why": "nodes are shared", "source": "guide", "when": {"min_gpus": 1}}
    job = {"gpus_per_node": "a100:4", "exclusive": "true"}
    (problem,) = problems(job, forbidden={"exclusive": rule}, partitions=())
    assert problem.why == "nodes are shared (https://example.org/guide, 2026-08-21)"
    assert not problems({"exclusive": "true"}, forbidden={"exclusive": rule}, partitions=())


SHARES: list[tuple[str, dict[str, Any], bool]] = [
    ("exact", {"cpus_per_task": 24}, True),
    ("exact", {"cpus_per_task": 12}, False),
    ("exact", {"cpus_per_gpu": 25}, False),
    ("exact", {}, True),
    ("maximum", {"cpus_per_task": 12}, True),
    ("maximum", {"cpus_per_task": 25}, False),
    ("recommended", {"cpus_per_task": 25}, True),
    ("exact", {"cpus_per_task": "default"}, True),
]


@pytest.mark.parametrize(("rule", "job", "fine"), SHARES)
def test_cpus_for_a_gpu(rule: str, job: dict[str, Any], fine: bool) -> None:
    kind = NodeType(name="n", gpu="h200", gpus_per_node=8, cpus_per_gpu=24, cpus_rule=rule)
    found = problems({"gpus_per_node": "2", **job}, node_types=(kind,), partitions=())
    assert (not found) is fine
    if found:
        assert "a GPU" in found[0].what
        assert found[0].fix.endswith(": 24")


def test_an_account_that_is_none_for_the_gpus() -> None:
    kinds = (
        NodeType(name="v", gpu="v100", gpus_per_node=4, account="*@v100"),
        NodeType(name="h", gpu="h100", gpus_per_node=4, account="*@h100"),
    )
    about: dict[str, Any] = {"node_types": kinds, "partitions": ()}
    assert not problems({"gpus_per_node": "h100:4", "account": "abc@h100"}, **about)
    (problem,) = problems({"gpus_per_node": "h100:4", "account": "abc@v100"}, **about)
    assert problem.key == "account"
    assert problem.fix == "write an account like *@h100"
    assert not problems({"account": "abc@cpu"}, **about)


def test_a_closed_cluster_says_that_and_nothing_else() -> None:
    (problem,) = problems(
        {"time": "99-0", "partition": "none"},
        status="closed",
        ends="2026-08-31",
        status_reason="it was shut down",
        status_source="guide",
    )
    assert problem.what == "site is closed since 2026-08-31"
    assert problem.why == "it was shut down (https://example.org/guide, 2026-08-21)"
    with pytest.raises(Refusals):
        resolve(JobSpec(script="srun hostname\n"), Profile(name="site", status="closed"))


def test_a_partition_that_the_profile_does_not_have() -> None:
    assert problems({"partition": "other"})
    assert not problems({"partition": "other"}, other_partitions=True)
