"""What scontrol and sacctmgr of four versions print, and the profile it makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slurmgen.cluster.drift import differences
from slurmgen.cluster.live.profile import profile_data
from slurmgen.cluster.live.writing import profile_text
from slurmgen.cluster.profile import Profile
from slurmgen.jobfile.explain import validate
from slurmgen.jobfile.source import parse_yaml
from slurmgen.slurm.answers import facts, records
from slurmgen.slurm.answers.facts import Facts, Gpus
from slurmgen.slurm.answers.kinds import kinds
from slurmgen.slurm.answers.texts import Texts

SAMPLES = Path(__file__).with_name("samples")
VERSIONS = sorted(path.name for path in SAMPLES.iterdir())
every_version = pytest.mark.parametrize("version", VERSIONS)


def texts(version: str, **others: Any) -> Texts:
    """Of one cluster on each version, whose slurm.conf was the same."""
    names = ("config", "partitions", "nodes", "licenses", "reservations")
    said = {name: (SAMPLES / version / f"{name}.txt").read_text() for name in names}
    return Texts(**{**said, **others})


def detected(version: str, **others: Any) -> Profile:
    return Profile(**profile_data(facts.read(texts(version, **others))))


def test_there_is_a_sample_of_each_form() -> None:
    assert VERSIONS == ["20.11", "22.05", "24.11", "26.05"]


@every_version
def test_nodes(version: str) -> None:
    found = {node.name: node for node in facts.read(texts(version)).nodes}
    assert sorted(found) == ["c1", "c2", "h01", "h02", "h03", "mig1", "n1"]
    # Two CPUs and 15000 MiB of each are the system's.
    assert (found["h01"].cpus, found["h01"].memory, found["h01"].tmp) == (94, 500_000, 800_000)
    assert found["h01"].features == {"h100", "ib", "nvme"}
    assert found["h01"].gpus == (Gpus("h100", 8),)
    assert found["mig1"].gpus == (Gpus("a100_3g.20gb", 4), Gpus("a100", 2))
    assert found["c1"].gpus == ()
    assert found["n1"].arch == "x86_64"
    assert found["n1"].is_up
    assert not found["h01"].is_up


@every_version
def test_partitions(version: str) -> None:
    found = {p.name: p for p in facts.read(texts(version)).partitions}
    assert list(found) == ["gpu", "h100", "debug", "cpu", "mig", "secret"]
    assert found["gpu"].default
    assert found["gpu"].max_time is None
    assert found["h100"].nodes == ("h01", "h02", "h03")
    assert (found["h100"].max_time, found["h100"].default_time) == (2 * 86400, 1800)
    assert found["h100"].max_nodes == 2
    assert found["h100"].accounts == ("proj", "other")
    assert found["debug"].max_mem == 200_000
    assert found["debug"].max_cpus_per_node == 32
    assert found["cpu"].exclusive
    assert not found["gpu"].exclusive
    assert found["mig"].state == "DRAIN"
    assert found["mig"].cpus_per_gpu == 4
    assert found["secret"].hidden
    assert found["secret"].groups == ("nobodys",)


@every_version
def test_the_profile(version: str) -> None:
    profile = detected(version)
    assert profile.name == "sandbox"
    assert profile.slurm == version
    kinds = {kind.name: kind for kind in profile.node_types}
    assert list(kinds) == ["h100", "a100-2", "a100_3g.20gb", "a100-4", "cpu"]
    assert kinds["h100"].cpus_per_gpu == 11
    assert kinds["h100"].memory == "500000M"
    # The partition's own DefCpuPerGPU, not 64 CPUs over 6 GPUs.
    assert kinds["a100-2"].cpus_per_gpu == 4
    places = {place.name: place for place in profile.partitions}
    assert places["h100"].access == "for accounts proj, other"
    assert places["h100"].node_types == ("h100",)
    assert places["debug"].preemptible
    assert not places["h100"].preemptible
    assert places["cpu"].whole_nodes
    assert not places["h100"].whole_nodes
    assert profile.max_array_size == 2001
    assert profile.preemption is True
    assert profile.when_preempted is not None
    assert profile.when_preempted.requeue == "on request"
    assert profile.inventory.gres == ("gpu",)
    assert profile.inventory.licenses == ("ansys@flex", "matlab")
    assert profile.qos == ()


@every_version
def test_the_file_reads_back_as_the_profile(version: str) -> None:
    data = profile_data(facts.read(texts(version)))
    source = parse_yaml(profile_text(data), "sandbox.yaml")
    again: Profile = validate(Profile, {"name": "sandbox", **source.data}, source)
    assert again == Profile(**data)
    assert differences(again, Profile(**data)) == []


def test_what_is_missing_is_said() -> None:
    profile = detected("22.05", missing=(("accounts and QOS", "this Slurm keeps no accounts"),))
    noted = [note.text for note in profile.notes]
    assert "Not found out: accounts and QOS (this Slurm keeps no accounts)." in noted


ACCOUNTS = {
    "associations": "proj||normal,debug|normal||\nother||normal|normal||\n",
    "qos": """\
normal|2-00:00:00|||||||||
debug|00:30:00|node=2,gres/gpu:a100=3|gres/gpu=8|node=30|gres/gpu=4|gres/gpu=1|1|5||
secret|||||||||normal|
""",
    "user": "me|proj\n",
}


def test_accounts_and_qos() -> None:
    found = facts.read(texts("22.05", **ACCOUNTS))
    assert found.default_account == "proj"
    assert [a.account for a in found.associations or ()] == ["proj", "other"]
    profile = Profile(**profile_data(found))
    # Not `secret`, which none of the user's accounts may use.
    assert [qos.name for qos in profile.qos] == ["normal", "debug"]
    normal, debug = profile.qos
    assert normal.default
    assert not normal.replaces
    assert normal.max_time == "2-00:00:00"
    # Of what a job, a user and all of them may have, the least.
    assert (debug.max_nodes, debug.max_gpus, debug.max_time) == (2, 4, "00:30:00")
    assert (debug.min_gpus, debug.max_node_time) == (1, "00:30:00")
    (typed,) = debug.limits
    assert (typed.when.node_type, typed.max_gpus) == (("a100-2", "a100-4"), 3)
    assert debug.note == "1 running jobs a user at most; 5 submitted jobs a user at most"
    assert profile.account is not None
    assert profile.account.example == "proj"


def test_the_qos_of_a_partition_limits_its_jobs() -> None:
    partitions = "PartitionName=gpu\n   QoS=debug MaxNodes=8 MaxTime=00:20:00 Nodes=n1 State=UP\n"
    found = facts.read(texts("22.05", **ACCOUNTS, partitions=partitions))
    (gpu,) = Profile(**profile_data(found)).partitions
    assert (gpu.max_nodes, gpu.max_gpus, gpu.min_gpus) == (2, 4, 1)
    assert (gpu.max_time, gpu.max_node_time) == ("00:20:00", "00:30:00")
    assert gpu.limits[0].max_gpus == 3


def test_values_with_blanks_and_words_that_look_like_keys() -> None:
    text = "NodeName=n1 State=IDLE\n   OS=Linux 5.10 #1 SMP \n   Comment=as State=DOWN said\n"
    (record,) = records.records(text)
    assert record["OS"] == "Linux 5.10 #1 SMP"
    assert record["State"] == "IDLE"
    assert record["Comment"] == "as"


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu:4", [(None, 4)]),
        ("gpu:h100:8(S:0-1)", [("h100", 8)]),
        ("gpu:a100:2(S:0,1),gpu:a100:2(S:2),nic:4,shard:8", [("a100", 4)]),
        ("gpu:0", []),
        ("(null)", []),
        ("craynetwork:4", []),
    ],
)
def test_gpus_of_a_node(gres: str, gpus: list[tuple[str | None, int]]) -> None:
    assert list(facts._gpus(gres)) == gpus


@pytest.mark.parametrize(
    ("state", "is_up"),
    [
        ("IDLE", True),
        ("MIXED+PLANNED", True),
        ("ALLOCATED+CLOUD", True),
        ("IDLE*", False),
        ("IDLE+DRAIN", False),
        ("DOWN*+NOT_RESPONDING", False),
        ("MIXED+MAINTENANCE+RESERVED", True),
    ],
)
def test_a_node_that_takes_jobs(state: str, is_up: bool) -> None:
    record = f"NodeName=n1 CPUTot=4\n State={state} ThreadsPerCore=1\n"
    (node,) = facts.read(Texts("", "", record)).nodes
    assert node.is_up is is_up


def node(name: str, **others: Any) -> str:
    said = {"CPUTot": 8, "RealMemory": 1000, "Gres": "gpu:a100:4", **others}
    return f"NodeName={name} " + " ".join(f"{key}={value}" for key, value in said.items())


def read_nodes(*lines: str) -> Facts:
    return facts.read(Texts("ClusterName=c", "", "\n\n".join(lines)))


def test_nodes_of_nearly_the_same_memory_are_of_one_kind() -> None:
    found = kinds(
        read_nodes(node("a"), node("b", RealMemory=1015), node("c", RealMemory=2000)).nodes
    )
    assert [(kind.name, kind.memory, kind.nodes) for kind in found] == [
        ("a100-4-8c-2g", 2000, ("c",)),
        ("a100-4-8c-1g", 1015, ("a", "b")),
    ]


def test_a_feature_tells_kinds_apart_and_many_do_not() -> None:
    two = kinds(
        read_nodes(
            node("a", AvailableFeatures="gpu"), node("b", AvailableFeatures="gpu,hbm80g")
        ).nodes
    )
    assert {kind.name: kind.nodes for kind in two} == {
        "a100-4-8c-1g": ("a",),
        "a100-4-8c-1g-hbm80g": ("b",),
    }
    racks = [node(f"n{i}", AvailableFeatures=f"gpu,rack{i}") for i in range(9)]
    (one,) = kinds(read_nodes(*racks).nodes)
    assert len(one.features) == 10


SITE: dict[str, Any] = {
    "slurm": "24.11",
    "node_types": [
        {"name": "thin", "gpu": "a100", "gpus_per_node": 4, "cpus": 64, "memory": "512G"}
    ],
    "partitions": [{"name": "gpu", "default": True, "max_time": "24:00:00", "max_nodes": 8}],
    "max_array_size": 1001,
}


def drifted(**live: Any) -> list[str]:
    return differences(Profile(name="site", **SITE), Profile(name="live", **{**SITE, **live}))


@pytest.mark.parametrize(
    ("live", "line"),
    [
        ({}, None),
        ({"slurm": "24.11.5"}, None),
        ({"slurm": "25.05"}, "Slurm's version: 25.05 on the cluster, 24.11 in the profile"),
        ({"max_array_size": 500}, "MaxArraySize: 500 on the cluster, 1001 in the profile"),
        (
            {"partitions": [{"name": "gpu", "default": True, "max_time": "1-0", "max_nodes": 8}]},
            None,
        ),
        (
            {"partitions": [{"name": "gpu", "default": True, "max_time": "12h", "max_nodes": 8}]},
            "partition gpu, time limit: 12:00:00 on the cluster, 1-00:00:00 in the profile",
        ),
        (
            {"partitions": [{"name": "gpu", "default": True, "max_time": "24h"}]},
            "partition gpu, most nodes of a job: none on the cluster, 8 in the profile",
        ),
        (
            {"partitions": [*SITE["partitions"], {"name": "new"}]},
            "partition new is on the cluster, and not in the profile",
        ),
        (
            {"node_types": [{**SITE["node_types"][0], "name": "a100", "memory": "500G"}]},
            "node type thin, memory for jobs: 500G on the cluster, 512G in the profile",
        ),
        (
            {"node_types": [{**SITE["node_types"][0], "gpus_per_node": 8}]},
            "node type thin, GPUs: 8 on the cluster, 4 in the profile",
        ),
        (
            {
                "node_types": [
                    *SITE["node_types"],
                    {"name": "h100", "gpu": "h100", "gpus_per_node": 8},
                ]
            },
            "node type h100 (8 x h100) is on the cluster, and not in the profile",
        ),
    ],
)
def test_a_difference_in_words(live: dict[str, Any], line: str | None) -> None:
    assert drifted(**live) == ([] if line is None else [line])


def test_a_type_of_gpu_that_is_gone() -> None:
    assert drifted(node_types=[{"name": "b", "gpu": "b200", "gpus_per_node": 8}]) == [
        "node type thin: no node of the cluster has GPUs of type a100",
        "node type b (8 x b200) is on the cluster, and not in the profile",
    ]
