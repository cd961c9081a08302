"""partition: auto and qos: auto: what is chosen, why, and what is said where nothing fits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from slurmgen.cluster.load import load_profile
from slurmgen.cluster.profile import Partition, Profile
from slurmgen.cluster.trial_partitions import is_for_trials
from slurmgen.errors import Refusals
from slurmgen.jobfile.job import JobSpec
from slurmgen.jobfile.without_pydantic import quick_job
from slurmgen.script.plan import JobPlan, resolve

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
    levels = [{"name": "normal", "max_time": "24h", "default": True}, SITE["qos"][1]]
    job = {"gpus_per_node": 4, "partition": "gpu", "qos": "auto", "time": "2h"}
    plan = planned(job, qos=levels)
    assert option(plan, "qos") == "normal"
    assert plan.notes == ("qos: auto is normal, the default of site",)
    plan = planned({**job, "partition": "auto", "time": "30h"}, qos=levels)
    # A QOS's own limit counts in place of the partition's.
    assert (option(plan, "partition"), option(plan, "qos")) == ("gpu", "week")


WHOLE = {"name": "whole", "node_types": ["a100", "h100"], "whole_nodes": True, "max_nodes": 64}
SHARED = {"name": "shared", "node_types": ["a100", "h100"], "max_nodes": 2}


@pytest.mark.parametrize(
    ("job", "chosen", "note"),
    [
        ({"gpus_per_node": 4}, "whole", "the first that site's profile has for such a job"),
        ({"gpus_per_node": 1}, "shared", "for such a job; whole would give whole nodes"),
        ({"gpus_per_node": "a100:4"}, "whole", "the first that site's profile has"),
        ({"gpus_per_node": "h100:4"}, "shared", "for such a job; whole would give whole nodes"),
        ({"gpus_per_node": 1, "nodes": 3}, "whole", "(not shared: 3 nodes"),
    ],
)
def test_whole_nodes_are_for_those_who_use_them(
    job: dict[str, Any], chosen: str, note: str
) -> None:
    plan = planned({**job, "time": "1h", "partition": "auto"}, partitions=[WHOLE, SHARED])
    assert option(plan, "partition") == chosen
    assert note in plan.notes[0]


def test_two_of_eight_gpus_share_a_node_of_lumi() -> None:
    profile = load_profile("lumi", Path())
    job = {"gpus_per_node": 2, "account": "project_465000001", "time": "1h", "command": "true"}
    plan = resolve(JobSpec(**job, partition="auto"), profile)
    assert option(plan, "partition") == "small-g"


GPUTEST = {"name": "gputest", "node_types": ["a100"], "max_time": "00:15:00"}
GPU = {"name": "gpu", "node_types": ["a100"], "max_time": "24:00:00", "max_nodes": 2}


def test_what_is_for_trials_comes_last() -> None:
    """Though it is the first of the profile, and the site's own default."""
    job = {"gpus_per_node": 4, "time": "10m", "partition": "auto"}
    plan = planned(job, partitions=[{**GPUTEST, "default": True}, GPU])
    assert option(plan, "partition") == "gpu"
    (note,) = plan.notes
    assert note == (
        "partition: auto is gpu, the first that site's profile has for such a job; for trials, "
        "and only if nothing else is left: gputest"
    )
    plan = planned({**job, "nodes": 4}, partitions=[GPUTEST, GPU])
    assert option(plan, "partition") == "gputest"
    (note,) = plan.notes
    assert note == (
        "partition: auto is gputest; gputest is for trials, but nothing else takes such a job "
        "(not gpu: 4 nodes, and partition gpu allows 2)"
    )
    plan = planned({**job, "partition": "gputest"}, partitions=[GPUTEST, GPU])
    assert option(plan, "partition") == "gputest"


@pytest.mark.parametrize(
    ("name", "max_time", "is_trial"),
    [
        ("gputest", "24:00:00", True),
        ("gh-dev", None, True),
        ("develbooster", "02:00:00", True),
        ("boost_qos_dbg", "02:00:00", True),
        ("gpuA100x4-interactive", None, True),
        ("acc_debug", None, True),
        ("quick", "01:00:00", True),
        ("quick", "01:00:01", False),
        ("short", "04:00:00", False),
        ("device", None, False),
        ("regular", "UNLIMITED", False),
    ],
)
def test_what_is_for_trials(name: str, max_time: str | None, is_trial: bool) -> None:
    assert is_for_trials(Partition(name=name, max_time=max_time)) is is_trial


@pytest.mark.parametrize("name", ["roihu", "marenostrum5_acc", "leonardo", "lumi", "perlmutter"])
def test_no_cluster_trains_where_things_are_tried_out(name: str) -> None:
    profile = load_profile(name, Path())
    key = "qos" if profile.qos and name != "leonardo" else "partition"
    gpus = profile.node_types[0].gpus_per_node
    account = profile.account.example if profile.account is not None else "proj"
    who = {"account": account, "gpus_per_node": gpus, "time": "10m", key: "auto"}
    plan = resolve(JobSpec(command="true", **who), profile)
    (chosen,) = re.findall(rf"{key}: auto is ([^,]+),", plan.notes[0])
    places = (*profile.partitions, *profile.qos)
    assert [is_for_trials(place) for place in places if place.name == chosen] == [False]


def test_no_qos_where_none_is_the_default() -> None:
    levels = [{"name": "debug", "max_time": "30m"}, {"name": "week", "max_time": "7-0"}]
    job = {"gpus_per_node": 4, "qos": "auto", "partition": "gpu"}
    plan = planned({**job, "time": "20m"}, qos=levels)
    assert option(plan, "qos") is None
    assert plan.notes[0].startswith("qos: auto is none, ")
    assert option(planned({**job, "time": "2-0"}, qos=levels), "qos") == "week"
    needed = {"qos": "the site says so"}
    assert option(planned({**job, "time": "20m"}, qos=levels, required=needed), "qos") == "week"


def test_a_closed_cluster_is_all_that_is_said() -> None:
    with pytest.raises(Refusals) as caught:
        planned({"partition": "auto", "gpus_per_node": 4}, status="closed", ends="2026-07-31")
    (problem,) = caught.value.problems
    assert problem.what == "site is closed since 2026-07-31"


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
            "h100; those that need access, or are stopped for other jobs, are never chosen: secret",
            "write time: 1-00:00:00, or qos: week, or name the partition yourself",
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
    with pytest.raises(Refusals) as caught:
        planned(job)
    (problem,) = caught.value.problems
    assert problem.key == "partition"
    assert problem.what == what
    assert why in problem.why
    assert fix in problem.fix


def test_a_profile_without_partitions() -> None:
    with pytest.raises(Refusals) as caught:
        planned({"partition": "auto"}, partitions=[])
    (problem,) = caught.value.problems
    assert problem.what == ("partition: auto, and the profile site has no partition for such a job")
    with pytest.raises(Refusals) as caught:
        planned({"partition": "auto"}, partitions=[{"name": "secret", "access": "for friends"}])
    assert caught.value.problems[0].fix == "write partition: secret"


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
    with pytest.raises(Refusals) as caught:
        planned({"gpus_per_node": 4, "partition": "cpu"})
    assert caught.value.problems[0].what == "partition cpu has no nodes with GPUs"
