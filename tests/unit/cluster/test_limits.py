"""What a profile knows is said before any queue does: which key, what, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.cluster.profile import Gpus, Inventory, NodeType, Partition, Profile
from slurmgen.errors import Refusals
from slurmgen.jobfile.job import JobSpec
from slurmgen.jobfile.load import load_job
from slurmgen.script.plan import resolve

if TYPE_CHECKING:
    from slurmgen.errors import Refusal
    from slurmgen.script.plan import JobPlan

A100 = NodeType(
    name="thin",
    gpu="a100",
    gpus_per_node=4,
    cpus=64,
    memory="512G",
    tmp="100G",
    threads_per_core=2,
    cpus_per_gpu=8,
    mem_per_gpu="100G",
    count=10,
    features=("a100", "nvlink"),
)
H100 = NodeType(name="fat", gpu="h100", gpus_per_node=8, features=("h100",))
CPU = NodeType(name="cpu", cpus=128, memory="256G", features=("milan",))
SITE: dict[str, Any] = {
    "name": "site",
    "node_types": (A100, H100, CPU),
    "partitions": (
        Partition(name="gpu", node_types=("thin", "fat"), max_time="1-0", max_nodes=8),
        Partition(name="cpu", node_types=("cpu",)),
        Partition(name="big", min_nodes=4),
        Partition(name="hidden", unnamed="it is chosen by the site"),
    ),
    "max_array_size": 1001,
    "preemption": False,
    "inventory": Inventory(
        nodes=("n1", "n2", "n3"),
        licenses=("matlab",),
        reservations=("maint",),
        gres=("gpu", "nvme"),
    ),
    "required": {"account": "hours are billed to a project"},
    "forbidden": {"exclusive": "nodes are shared"},
}


def plan(job: dict[str, Any], **profile: Any) -> JobPlan:
    spec = JobSpec(command="true", **{"account": "me", **job})
    return resolve(spec, Profile(**{**SITE, **profile}))


def problems(job: dict[str, Any], **profile: Any) -> list[Refusal]:
    with pytest.raises(Refusals) as caught:
        plan(job, **profile)
    return caught.value.problems


THIN = {"gpus_per_node": "a100:4"}
WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    ({"account": None}, "account", "site needs account", "add account:"),
    ({"exclusive": "true"}, "exclusive", "site refuses --exclusive", "remove exclusive"),
    ({"gpus_per_node": "v100:2"}, "gpus_per_node", 'no GPU of type "v100"', "a100, h100"),
    ({"gpus_per_node": "a100:5"}, "gpus_per_node", "5 GPUs per node", "gpus_per_node: 4"),
    (
        {"gpus_per_node": "a100:5", "launcher": "plain"},
        "gpus_per_node",
        "5 GPUs per node",
        "gpus_per_node: 4",
    ),
    # Nine shares of eight CPUs are too many too, which is no second mistake of the job's.
    ({"gpus_per_node": "a100:9"}, "gpus_per_node", "9 GPUs per node", "gpus_per_node: 4"),
    ({**THIN, "cpus_per_task": 17}, "cpus_per_task", "68 CPUs per node", "at most 16 CPUs"),
    ({**THIN, "cpus_per_gpu": 17}, "cpus_per_gpu", "68 CPUs per node", "at most 16 CPUs"),
    ({**THIN, "nodes": 11, "partition": "big"}, "nodes", "there are 10 of thin", "nodes: 10"),
    ({**THIN, "mem": "513G"}, "mem", "513G per node", "mem: 512G"),
    ({**THIN, "mem_per_cpu": "20G"}, "mem_per_cpu", "for each of 32 CPUs", "16384M"),
    ({**THIN, "mem_per_gpu": "129G"}, "mem_per_gpu", "for each of 4 GPUs", "131072M"),
    ({**THIN, "sbatch": {"tmp": "101G"}}, "sbatch.tmp", "tmp: 101G", "write tmp: 100G"),
    (
        {**THIN, "sbatch": {"threads-per-core": "4"}},
        "sbatch.threads-per-core",
        "threads-per-core",
        "core: 2",
    ),
    ({**THIN, "sbatch": {"mincpus": "65"}}, "sbatch.mincpus", "mincpus: 65", "write mincpus: 64"),
    ({"partition": "gup"}, "partition", 'no partition "gup"', "known: big, cpu, gpu, hidden"),
    ({"partition": "hidden"}, "partition", "must not be named", "remove partition"),
    ({"partition": "gpu", "time": "25h"}, "time", "is over the 1-00:00:00", "time: 1-00:00:00"),
    ({"partition": "gpu", "time": "0"}, "time", "UNLIMITED is over", "time: 1-00:00:00"),
    ({"partition": "gpu", "nodes": 9}, "nodes", "allows 8", "nodes: 8"),
    ({"partition": "big", "nodes": 3}, "nodes", "starts at 4", "nodes: 4"),
    ({"array": "0-1001"}, "array", "index 1001, and site allows at most 1000", "smaller"),
    ({"reservation": "mine"}, "reservation", 'no reservation "mine"', "remove reservation"),
    ({"licenses": "matlab:2,ansys"}, "licenses", 'no license "ansys"', "known: matlab"),
    ({"sbatch": {"resources": "ansys"}}, "sbatch.resources", 'no license "ansys"', "known: matlab"),
    ({"gres": "nvme:1,fpga:1"}, "gres", 'no resource "fpga"', "known: gpu, nvme"),
    ({"constraint": "a100&nvlnk"}, "constraint", 'the feature "nvlnk"', "known: a100"),
    ({"sbatch": {"prefer": "rack1"}}, "sbatch.prefer", 'the feature "rack1"', "known: a100"),
    ({"nodelist": "n4"}, "nodelist", 'no node "n4"', "sinfo"),
    ({"exclude": "n[1-2]", "nodes": 2}, "exclude", "1 are left", "nodes: 1"),
]


def keys(found: list[Refusal]) -> list[str]:
    """The key of each problem as a file has it, `sbatch.hint` for an option."""
    return [p.key if isinstance(p.key, str) else ".".join(map(str, p.key)) for p in found]


@pytest.mark.parametrize(("job", "key", "message", "fix"), WRONG)
def test_refused(job: dict[str, Any], key: str, message: str, fix: str) -> None:
    found = problems(job)
    assert keys(found) == [key], [p.what for p in found]
    assert message in found[0].what
    assert fix in found[0].fix
    assert found[0].why


@pytest.mark.parametrize(
    "job",
    [
        {},
        {**THIN, "cpus_per_task": 16, "mem": "512G", "time": "1-0", "partition": "gpu", "nodes": 8},
        {"gpus_per_node": "h100:8", "mem": "4000G"},
        {**THIN, "cpus_per_task": "default", "mem_per_cpu": "128G"},
        {**THIN, "mem_per_gpu": "128G", "array": "0-1000%10"},
        {"constraint": "(a100|h100)&nvlink*2", "nodes": 2},
        {"nodelist": "n[1-2]", "nodes": 2, "reservation": "maint", "licenses": "matlab:3"},
        {**THIN, "sbatch": {"tmp": "100G", "threads-per-core": "2", "mincpus": "64"}},
    ],
)
def test_fine(job: dict[str, Any]) -> None:
    assert plan(job)


@pytest.mark.parametrize("job", [job for job, *_ in WRONG if "gpus_per_node" not in job])
def test_an_absent_fact_is_never_checked(job: dict[str, Any]) -> None:
    assert resolve(JobSpec(command="true", **job), Profile(name="generic"))


@pytest.mark.parametrize(
    ("job", "version", "key"),
    [
        ({"exclusive": "topo"}, "23.11", "exclusive"),
        ({"exclusive": "topo"}, "24.05.2", None),
        ({"licenses": "matlab|matlab:2"}, "24.11", "licenses"),
        ({"licenses": "matlab|matlab:2"}, "25.05", None),
        ({"begin": "elevenses"}, "22.05.8", "begin"),
        ({"begin": "teatime"}, "22.05.8", None),
        ({"signal": "R:USR1@60"}, "24.11", "signal"),
        ({"signal": "R:USR1@60"}, "22.05", None),
        ({"sbatch": {"segment": "1"}}, "22.05", "sbatch.segment"),
        ({"sbatch": {"segment": "1"}}, None, None),
        ({"sbatch": {"mysite": {"value": "x", "plugin": True}}}, "22.05", None),
        ({**THIN, "sbatch": {"gpu-bind": "none"}}, "20.11", "sbatch.gpu-bind"),
        ({**THIN, "sbatch": {"gpu-bind": "none"}}, "22.05", None),
    ],
)
def test_the_version_counts_where_it_is_known(
    job: dict[str, Any], version: str | None, key: str | None
) -> None:
    about: dict[str, Any] = {"slurm": version, "forbidden": {}}
    if key is None:
        assert plan(job, **about)
    else:
        assert keys(problems(job, **about)) == [key]


def test_the_signal_without_preemption_says_what_is_left() -> None:
    trap = {"commands": ["trap 'touch stop' USR1"]}
    (problem,) = problems({"signal": "RB:USR1@60", "setup": trap}, slurm="26.05")
    assert problem.fix == "write B:USR1@60"


def test_gpu_counts_and_types_of_a_site() -> None:
    only = Gpus(counts=(4, 8), typed="always")
    (problem,) = problems({"gpus_per_node": "a100:3"}, gpus=only)
    assert problem.fix == "write gpus_per_node: 4"
    (problem,) = problems({"gpus_per_node": "4"}, gpus=only)
    assert problem.fix == "write gpus_per_node: TYPE:4 with one of a100, h100"


# Kinds that `select` chooses, in a partition with limits of its own.
SELECTED: dict[str, Any] = {
    "node_types": (
        NodeType(name="thin", gpu="a100", gpus_per_node=4, select={"partition": "gpu"}),
        CPU,
    ),
    "partitions": (
        Partition(name="gpu", max_time="1-0", min_nodes=2, max_nodes=8),
        Partition(name="batch"),
    ),
}


@pytest.mark.parametrize(
    ("job", "key", "message"),
    [
        ({"time": "25h", "nodes": 2}, "time", "over the 1-00:00:00 of partition gpu"),
        ({"nodes": 9}, "nodes", "partition gpu allows 8"),
        ({"nodes": 1}, "nodes", "partition gpu starts at 2"),
    ],
)
def test_the_limits_of_the_partition_that_select_writes(
    job: dict[str, Any], key: str, message: str
) -> None:
    (problem,) = problems({"gpus_per_node": "4", **job}, **SELECTED)
    assert problem.key == key
    assert message in problem.what


def test_the_job_s_own_partition_comes_before_select() -> None:
    found = plan({"gpus_per_node": "4", "nodes": 9, "partition": "batch"}, **SELECTED)
    assert ("partition", "batch", ("partition",)) in found.directives


def of_text(text: str, profile: Profile) -> JobPlan:
    """The plan of a job file, to which the profile's defaults belong."""
    spec = load_job(text, "job.yaml", defaults=profile.defaults).spec
    return resolve(spec, profile)


def test_the_limits_of_a_default_partition() -> None:
    site = Profile(
        name="site",
        partitions=(Partition(name="short", max_time="1:00:00"),),
        defaults={"partition": "short"},
    )
    directives = of_text("command: 'true'\ntime: 1h", site).directives
    assert ("partition", "short", ("partition",)) in directives
    with pytest.raises(Refusals) as caught:
        of_text("command: 'true'\ntime: 2h", site)
    (problem,) = caught.value.problems
    assert problem.key == "time"
    assert "over the 01:00:00 of partition short" in problem.what


def test_a_default_that_leads_away_from_the_nodes() -> None:
    site = Profile(name="site", defaults={"partition": "batch"}, **SELECTED)
    with pytest.raises(Refusals) as caught:
        of_text("command: 'true'\ngpus_per_node: 4\nnodes: 2", site)
    (problem,) = caught.value.problems
    assert problem.key == "partition"
    assert problem.fix == "write partition: gpu"
    # Without GPUs the default is right.
    assert of_text("command: 'true'", site)


def test_a_partition_that_alone_gives_the_gpus_gives_all_of_a_node() -> None:
    whole = Gpus(form="none")
    gh = {"gpus": whole, "node_types": (NodeType(name="gh", gpu="gh200", gpus_per_node=4),)}
    (problem,) = problems({"gpus_per_node": "2"}, **gh, partitions=())
    assert problem.key == "gpus_per_node"
    assert problem.what == "site gives 4 GPUs of a node, not 2"
    assert problem.fix == "write gpus_per_node: 4"
    assert len(problems({"gpus_per_node": "5"}, **gh, partitions=())) == 1
    found = plan({"gpus_per_node": "4"}, **gh, partitions=())
    assert not {"gres", "gpus-per-node"} & {d.option for d in found.directives}
    # Which of two kinds is not known: one of their counts.
    assert len(problems({"gpus_per_node": "2"}, gpus=whole)) == 1
    assert plan({"gpus_per_node": "8"}, gpus=whole)


def test_every_problem_is_said_at_once() -> None:
    found = problems({"partition": "gpu", "time": "2-0", "nodes": 9, "array": "1-2000"})
    assert {problem.key for problem in found} == {"time", "nodes", "array"}


def test_a_closed_cluster_takes_no_job() -> None:
    (problem,) = problems({}, status="closed", status_reason="it was switched off")
    assert problem.why == "it was switched off"
