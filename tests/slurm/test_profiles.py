"""What profiles make of a job, on a real Slurm: every form of the GPU request, and bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.cluster.profile import (
    Addition,
    Binding,
    Gpus,
    NodeType,
    PortRange,
    Profile,
    Rendezvous,
)
from tests.slurm.conftest import PROBE

if TYPE_CHECKING:
    from tests.slurm.conftest import Cluster, Ran

pytestmark = pytest.mark.slurm

KIND = NodeType(name="thin", gpu="a100", gpus_per_node=4)


def probe(cluster: Cluster, profile: dict[str, Any], **job: Any) -> Ran:
    site = Profile(**{"name": "site", "node_types": (KIND,), **profile})
    ran = cluster.run({"command": ["python3", str(PROBE)], **job}, profile=site)
    assert ran.status == 0, ran.log
    return ran


FORMS = ["gres", "gpus-per-node", "gpus", "gpus-per-task"]


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_every_rank_sees_all_gpus_of_its_node(cluster: Cluster, form: str, nodes: int) -> None:
    """Or NCCL would not reach its peers, and the local rank would be no index."""
    asked = Gpus(form=form, typed="always")
    ran = probe(cluster, {"gpus": asked}, nodes=nodes, gpus_per_node=4)
    assert len(ran.seen) == 4 * nodes
    assert {seen["env"]["CUDA_VISIBLE_DEVICES"] for seen in ran.seen} == {"0,1,2,3"}
    local = sorted(int(seen["env"]["LOCAL_RANK"]) for seen in ran.seen)
    assert local == sorted([0, 1, 2, 3] * nodes)


@pytest.mark.parametrize("form", FORMS)
def test_a_part_of_each_node(cluster: Cluster, form: str) -> None:
    ran = probe(cluster, {"gpus": Gpus(form=form)}, nodes=2, gpus_per_node=2)
    seen = [len(seen["env"]["CUDA_VISIBLE_DEVICES"].split(",")) for seen in ran.seen]
    assert seen == [2] * 4


def test_gpus_that_only_srun_asks_for(cluster: Cluster) -> None:
    asked = Gpus(form="none", step="gpus-per-node")
    ran = probe(cluster, {"gpus": asked}, nodes=2, gpus_per_node=4, exclusive="true")
    assert {seen["env"]["CUDA_VISIBLE_DEVICES"] for seen in ran.seen} == {"0,1,2,3"}


def test_what_a_profile_sets_arrives_in_the_ranks(cluster: Cluster) -> None:
    added = Addition(
        env={"FABRIC": "hsn0"},
        task_env={"CACHE": "/tmp/cache-${SLURM_LOCALID}"},
        sbatch={"nice": 5},
    )
    ran = probe(
        cluster,
        {
            "add": (added,),
            "binding": Binding(whole_nodes=["--cpu-bind=none"]),
            "rendezvous": Rendezvous(port=PortRange(first=10_000, count=1_000)),
        },
        nodes=2,
        gpus_per_node=4,
    )
    told = [seen["env"] for seen in ran.seen]
    assert {env["FABRIC"] for env in told} == {"hsn0"}
    assert {env["CACHE"] for env in told} == {f"/tmp/cache-{n}" for n in range(4)}
    assert all(10_000 <= int(env["MASTER_PORT"]) < 11_000 for env in told)
    assert {env["SLURM_CPU_BIND_TYPE"] for env in told} == {"none"}
