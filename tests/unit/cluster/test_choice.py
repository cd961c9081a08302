"""partition: auto and qos: auto: what is chosen, why, and what is said where nothing fits."""

from __future__ import annotations

from typing import Any

import pytest

from slurmgen.cluster.profile import Profile
from slurmgen.plan import JobPlan, PlanError, resolve
from slurmgen.spec.job import JobSpec
from slurmgen.spec.quick import quick_job

SITE: dict[str, Any] = {
    "name": "site",
    "node_types": [
        {"name": "h100", "gpu": "h100", "gpus_per_node": 8, "cpus": 96},
        {"name": "a100", "gpu": "a100", "gpus_per_node": 4, "cpus": 64},
        {"name": "cpu", "cpus": 64},
    ],
    "partitions": [
        {"name": "secret", "access": "for friends"},
        {"name": "long", "node_types": ["a100"], "max_time": "7-0", "max_nodes": 2},
        {"name": "gpu", "node_types": ["a100"], "max_time": "24:00:00", "default": True},
        {"name": "h100", "node_types": ["h100"], "max_time": "24:00:00"},
        {"name": "scavenge", "preemptible": True},
        {"name": "cpu", "node_types": ["cpu"], "max_time": "24:00:00"},
    ],
    "qos": [{"name": "normal", "max_time": "24h"}, {"name": "week", "max_time": "7-0"}],
}


def planned(job: dict[str, Any], **profile: Any) -> JobPlan:
    program = {} if "script" in job else {"command": "true"}
    spec = JobSpec(**program, **job)
    return resolve(spec, Profile(**{**SITE, **profile}))


def option(plan: JobPlan, name: str) -> str | None:
    return next((d.value for d in plan.directives if d.option == name), None)


@pytest.mark.parametrize(
    ("job", "chosen"),
    [
        ({"gpus_per_node": 4, "time": "2h"}, "gpu"),
        ({"gpus_per_node": 4, "time": "48h"}, "long"),
        ({"gpus_per_node": "h100:8", "time": "2h"}, "h100"),
        ({"gpus_per_node": 8, "time": "2h"}, "h100"),
        ({"time": "2h"}, "cpu"),
    ],
)
def test_what_is_chosen(job: dict[str, Any], chosen: str) -> None:
    plan = planned({**job, "partition": "auto"})
    assert option(plan, "partition") == chosen
    assert plan.notes[0].startswith(f"partition: auto is {chosen}, ")


def test_the_reason() -> None:
    assert planned({"gpus_per_node": 4, "partition": "auto"}).notes == (
        "partition: auto is gpu, the default of site",
    )
    (note,) = planned({"gpus_per_node": 4, "partition": "auto", "time": "48h"}).notes
    assert note == (
        "partition: auto is long, the first that site's profile has for such a job (not gpu: "
        "time 2-00:00:00 is over the 1-00:00:00 of partition gpu)"
    )
    assert planned({"gpus_per_node": 4, "partition": "gpu"}).notes == ()


def test_a_qos_and_both() -> None:
    plan = planned({"gpus_per_node": 4, "partition": "gpu", "qos": "auto", "time": "2h"})
    assert option(plan, "qos") == "normal"
    plan = planned({"gpus_per_node": 4, "partition": "auto", "qos": "auto", "time": "30h"})
    # A QOS's own limit counts in place of the partition's.
    assert (option(plan, "partition"), option(plan, "qos")) == ("gpu", "week")


def test_a_partition_that_must_not_be_named() -> None:
    plan = planned(
        {"gpus_per_node": 4, "partition": "auto"},
        partitions=[{"name": "compute", "unnamed": "the site says so"}],
    )
    assert option(plan, "partition") is None
    assert plan.notes[0].startswith("partition: auto is compute")


@pytest.mark.parametrize(
    ("job", "what", "why", "fix"),
    [
        (
            {"gpus_per_node": "h100:8", "time": "30h", "partition": "auto"},
            "partition: auto, and no partition of site takes the job",
            "h100: time 1-06:00:00 is over the 1-00:00:00 of partition h100",
            "write time: 1-00:00:00",
        ),
        (
            {"gpus_per_node": 4, "partition": "auto", "script": "srun true"},
            "partition: auto beside script",
            "what the script starts is not known",
            "write the partition",
        ),
    ],
)
def test_nothing_to_choose(job: dict[str, Any], what: str, why: str, fix: str) -> None:
    with pytest.raises(PlanError) as caught:
        planned(job)
    (problem,) = caught.value.problems
    assert problem.key == "partition"
    assert problem.refusal.what == what
    assert why in problem.refusal.why
    assert fix in problem.refusal.fix


def test_a_profile_without_partitions() -> None:
    with pytest.raises(PlanError) as caught:
        planned({"partition": "auto"}, partitions=[])
    (problem,) = caught.value.problems
    assert problem.refusal.what == (
        "partition: auto, and the profile site has no partition for such a job"
    )
    with pytest.raises(PlanError) as caught:
        planned({"partition": "auto"}, partitions=[{"name": "secret", "access": "for friends"}])
    assert caught.value.problems[0].refusal.fix == "write partition: secret"


def test_both_readers_choose_the_same() -> None:
    job = {"command": "true", "gpus_per_node": "4", "time": "48h", "partition": "auto"}
    quick = quick_job(job)
    assert quick is not None
    profile = Profile(**SITE)
    one, other = resolve(quick, profile), resolve(JobSpec(**job), profile)
    assert one.directives == other.directives
    assert one.notes == other.notes
    # The job file still says what it says.
    assert quick.partition == "auto"


def test_a_partition_without_gpus_is_said() -> None:
    with pytest.raises(PlanError) as caught:
        planned({"gpus_per_node": 4, "partition": "cpu"})
    assert caught.value.problems[0].refusal.what == "partition cpu has no nodes with GPUs"
