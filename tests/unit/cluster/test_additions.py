"""What a job gets from a profile: options, words of srun, variables, modules, and how they meet."""

from __future__ import annotations

from typing import Any

import pytest

from slurmgen.cluster.advice import of_job, of_profile
from slurmgen.cluster.profile import (
    Addition,
    Binding,
    Container,
    Gpus,
    Launch,
    NodeType,
    Partition,
    PortRange,
    Preemption,
    Profile,
    Rendezvous,
    Source,
    When,
)
from slurmgen.errors import Refusals
from slurmgen.jobfile.job import JobSpec
from slurmgen.script.plan import JobPlan, resolve
from slurmgen.script.render import render

KIND = NodeType(name="mi250x", gpu="mi250x", vendor="amd", gpus_per_node=8, cpus=56, cpus_per_gpu=7)


def plan(job: dict[str, Any], **profile: Any) -> JobPlan:
    about = {"name": "site", "node_types": (KIND,), **profile}
    spec = JobSpec(**{"command": ["true"], "gpus_per_node": "8", **job})
    return resolve(spec, Profile(**about))


def written(found: JobPlan) -> dict[str, str | None]:
    return {directive.option: directive.value for directive in found.directives}


def test_additions_under_a_condition() -> None:
    more = (
        Addition(
            when=When(min_nodes=2),
            sbatch={"network": "disable_rdzv_get"},
            srun="--label",
            env={"NCCL_CROSS_NIC": 1},
            modules="fabric",
            module_use="/opt/site",
        ),
        Addition(env={"NCCL_CROSS_NIC": 2, "SITE": "yes"}),
    )
    alone = plan({}, add=more)
    assert alone.env == (("NCCL_CROSS_NIC", "2"), ("SITE", "yes"))
    assert "network" not in written(alone)
    both = plan({"nodes": 2, "env": {"SITE": "no"}, "setup": {"modules": ["mine"]}}, add=more)
    assert written(both)["network"] == "disable_rdzv_get"
    assert dict(both.env) == {"NCCL_CROSS_NIC": "2", "SITE": "no"}
    assert both.srun == ("--label",)
    assert (both.module_use, both.modules) == (("/opt/site",), ("fabric", "mine"))


def test_the_job_s_own_option_comes_before_an_added_one() -> None:
    more = (Addition(sbatch={"hint": "nomultithread"}),)
    found = plan({"sbatch": {"hint": "multithread"}}, add=more)
    assert [d.value for d in found.directives if d.option == "hint"] == ["multithread"]


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "spawn"])
def test_variables_of_each_task(launcher: str) -> None:
    more = (Addition(task_env={"CACHE": "/tmp/${SLURM_LOCALID}"}),)
    text = render(plan({"launcher": launcher}, add=more))
    task = text[text.index("\ntask() {") : text.index("\n}\n")]
    assert '\n  export CACHE=/tmp/"${SLURM_LOCALID}"\n' in task
    assert text.count("CACHE=") == 1


def test_variables_of_a_task_where_there_is_none() -> None:
    more = (Addition(task_env={"CACHE": "/tmp/x", "OTHER": "1"}),)
    text = render(plan({"launcher": "plain", "env": {"OTHER": "2"}}, add=more))
    assert "\nexport CACHE=/tmp/x\n" in text
    assert "\nexport OTHER=2\n" in text


WHOLE, SHARED = ("--cpu-bind=mask_cpu:0xfe",), ("--cpu-bind=cores",)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({}, WHOLE),
        ({"gpus_per_node": "4"}, SHARED),
        # The mask has the share's cores: with fewer it would name some that are not the job's.
        ({"cpus_per_task": 4}, ()),
        # One task starts all ranks of a node.
        ({"launcher": "torchrun"}, ()),
        ({"launcher": "plain"}, ()),
        ({"gpus_per_node": None, "ntasks": 8}, ()),
    ],
)
def test_binding(job: dict[str, Any], words: tuple[str, ...]) -> None:
    binding = Binding(whole_nodes=WHOLE, shared_nodes=SHARED)
    assert plan(job, binding=binding).srun == words


FORMS: list[tuple[str, dict[str, Any], str, str]] = [
    ("gres", {}, "gres", "gpu:8"),
    ("gpus-per-node", {}, "gpus-per-node", "8"),
    ("gpus", {}, "gpus", "8"),
    # Slurm may spread a sum unevenly over the nodes.
    ("gpus", {"nodes": 2}, "gpus-per-node", "8"),
    ("gpus-per-task", {}, "gpus-per-task", "1"),
    ("gpus-per-task", {"launcher": "torchrun"}, "gpus-per-task", "8"),
    ("gpus", {"gpus_per_node": "mi250x:8"}, "gpus", "mi250x:8"),
    ("gpus-per-task", {"gpus_per_node": "mi250x:8"}, "gpus-per-task", "mi250x:1"),
]


@pytest.mark.parametrize(("form", "job", "option", "value"), FORMS)
def test_the_form_of_the_request(form: str, job: dict[str, Any], option: str, value: str) -> None:
    found = written(plan(job, gpus=Gpus(form=form)))
    assert found[option] == value
    assert len({"gres", "gpus", "gpus-per-node", "gpus-per-task"} & set(found)) == 1


def test_gpus_that_srun_asks_for() -> None:
    found = plan({}, gpus=Gpus(form="none", step="gpus-per-node"))
    assert not {"gres", "gpus-per-node"} & set(written(found))
    assert " --gpus-per-node=8 " in render(found)
    without = plan({"gpus_per_node": None}, gpus=Gpus(form="none", step="gpus-per-node"))
    assert "--gpus-per-node" not in render(without)


def test_a_whole_node_s_cpus_are_shared_among_its_gpus() -> None:
    kind = NodeType(name="n", gpus_per_node=3, cpus=128)
    found = plan({"gpus_per_node": "3"}, node_types=(kind,), gpus=Gpus(form="none"))
    assert found.cpus_per_task == 42


def test_what_a_job_gets_that_leaves_the_nodes_open() -> None:
    kinds = tuple(
        NodeType(name=f"a100-{size}", gpu="a100", gpus_per_node=4, default=size == 40,
                 select={"constraint": f"gpu{size}"})
        for size in (40, 80)
    )  # fmt: skip
    assert written(plan({"gpus_per_node": "4"}, node_types=kinds))["constraint"] == "gpu40"
    chosen = plan({"gpus_per_node": "4", "constraint": "gpu80"}, node_types=kinds)
    assert written(chosen)["constraint"] == "gpu80"
    assert written(plan({"gpus_per_node": "a100-80:4"}, node_types=kinds))["constraint"] == "gpu80"


def test_the_port_range_of_a_site() -> None:
    meeting = Rendezvous(port=PortRange(first=10000, count=10000))
    text = render(plan({"nodes": 2}, rendezvous=meeting))
    assert "MASTER_PORT=$((10000 + (SLURM_JOB_ID + 4001 * SLURM_STEP_ID) % 10000))" in text


@pytest.mark.parametrize(
    ("vendor", "container", "flag"),
    [
        ("nvidia", Container(runtime="apptainer"), "apptainer exec --nv x.sif"),
        ("amd", Container(runtime="singularity"), "singularity exec --rocm x.sif"),
        ("intel", Container(runtime="apptainer"), "apptainer exec x.sif"),
        ("amd", Container(runtime="apptainer", gpu="none"), "apptainer exec x.sif"),
        ("nvidia", Container(runtime="apptainer", gpu="rocm"), "apptainer exec --rocm x.sif"),
    ],
)
def test_how_a_container_gets_the_gpus(vendor: str, container: Container, flag: str) -> None:
    kinds = tuple(NodeType(name=name, vendor=vendor, gpus_per_node=8) for name in "ab")
    found = plan({"setup": {"container": "x.sif"}}, node_types=kinds, container=container)
    assert flag in render(found)
    # Which devices are a job's, Slurm says: no list of them stands in a script.
    assert "VISIBLE_DEVICES" not in render(found)
    assert "ZE_AFFINITY_MASK" not in render(found)


def test_a_runtime_that_nothing_is_rendered_for() -> None:
    with pytest.raises(Refusals) as caught:
        plan({"setup": {"container": "x.sif"}}, container="shifter")
    (problem,) = caught.value.problems
    assert problem.key == ("setup", "container")
    assert "runs containers by shifter" in problem.what
    own = {"container": {"image": "x.sif", "runtime": "apptainer"}}
    assert plan({"setup": own}, container="shifter").container == "apptainer"


def test_modules_from_none() -> None:
    text = render(plan({}, module_purge=True, modules="slurm"))
    assert text.index("\nmodule purge\n") < text.index("\nmodule load slurm\n")


def test_a_memory_option_that_is_ignored_is_left_out() -> None:
    assert not {"mem", "mem-per-gpu"} & set(written(plan({"mem": "64G"}, memory="ignored")))
    with pytest.raises(Refusals):
        plan({"mem": "64G"}, memory="omit")


def doubts(job: dict[str, Any], **profile: Any) -> str:
    spec = JobSpec(command="true", **job)
    site = Profile(
        **{"name": "site", "sources": {"guide": Source(where="guide.md", date="2026")}, **profile}
    )
    made = resolve(spec, site)
    restarts = made.requeue.max_restarts if made.requeue is not None else None
    return "\n".join([*of_profile(site), *of_job(spec, site, made.directives, restarts)])


@pytest.mark.parametrize(
    ("job", "profile", "said"),
    [
        ({}, {}, ""),
        ({}, {"verified": False, "verified_note": "one script"}, "is not verified by the site's"),
        ({}, {"status": "ending", "ends": "2026-12-31"}, "site is ending on 2026-12-31"),
        (
            {"launcher": "torchrun"},
            {"launch": Launch(avoid={"torchrun": "it is slow"}, source="guide")},
            "advises against launcher torchrun: it is slow (guide.md, 2026)",
        ),
        ({}, {"launch": Launch(avoid={"torchrun": "it is slow"})}, ""),
        ({}, {"launch": Launch(command="ibrun")}, "starts its tasks by srun, site by ibrun"),
        ({"mem": "1G"}, {"memory": "ignored"}, "ignores memory options"),
        ({"partition": "x"}, {"other_partitions": True}, "knows no limits of partition x"),
        (
            {"partition": "p"},
            {
                "partitions": (Partition(name="p", preemptible=True),),
                "when_preempted": Preemption(why="without notice", source="guide"),
            },
            "are stopped for others (without notice (guide.md, 2026)); requeue: {} makes",
        ),
        (
            {"partition": "p", "requeue": {}},
            {"partitions": (Partition(name="p", preemptible=True),)},
            "",
        ),
        (
            {"partition": "p"},
            {"partitions": (Partition(name="p", access="on request"),)},
            "p on site: on request",
        ),
        ({"requeue": {}}, {"when_preempted": Preemption(max_restarts=5)}, "5 times, not 20"),
    ],
)
def test_what_is_said_of_a_job_that_is_rendered(
    job: dict[str, Any], profile: dict[str, Any], said: str
) -> None:
    found = doubts(job, **profile)
    assert said in found if said else found == ""
