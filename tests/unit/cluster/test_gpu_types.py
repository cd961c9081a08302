"""How the GPUs of a job are asked for: the type that is written, and the nodes it chooses."""

from __future__ import annotations

from typing import Any

import pytest

from slurmgen.cluster.profile import Gpus, NodeType, Partition, Profile
from slurmgen.errors import Refusals
from slurmgen.jobfile.job import JobSpec
from slurmgen.script.plan import JobPlan, resolve

A100 = NodeType(name="thin", gpu="a100", gpus_per_node=4)
H100 = NodeType(name="fat", gpu="h100", gpus_per_node=8)
SMALL = NodeType(name="a100-40", gpu="a100", gpus_per_node=4, select={"constraint": "gpu40"})
LARGE = NodeType(
    name="a100-80", gpu="a100", gpus_per_node=4, cpus_per_gpu=16, select={"constraint": "gpu80"}
)
BARE = NodeType(name="node", gpus_per_node=4)
CPU = NodeType(name="cpu", cpus=64)


def plan(
    gpus: str, kinds: tuple[NodeType, ...], typed: str, form: str = "gres", **job: Any
) -> JobPlan:
    profile = Profile(
        name="site",
        gpus=Gpus(form=form, typed=typed),
        node_types=kinds,
        partitions=(Partition(name="gpu", node_types=("thin",)),) if A100 in kinds else (),
    )
    return resolve(JobSpec(command="true", gpus_per_node=gpus, **job), profile)


def written(found: JobPlan) -> str | None:
    """What the directive that asks for GPUs says."""
    options = {d.option: d.value for d in found.directives}
    return options.get("gres", options.get("gpus-per-node"))


@pytest.mark.parametrize("form", ["gres", "gpus-per-node"])
@pytest.mark.parametrize(
    ("gpus", "kinds", "typed", "value"),
    [
        # The job gives none: that of the only nodes it can get, where one must be written.
        ("4", (A100,), "always", "a100:4"),
        ("4", (A100, CPU), "always", "a100:4"),
        ("4", (A100,), "optional", "4"),
        ("4", (A100,), "never", "4"),
        # The job gives one, whether or not the profile tells which nodes these are.
        ("a100:4", (A100, H100), "always", "a100:4"),
        ("a100:4", (SMALL, LARGE), "always", "a100:4"),
        ("a100:4", (), "always", "a100:4"),
        ("a100:4", (BARE,), "always", "a100:4"),
        ("a100:4", (BARE, H100), "optional", "a100:4"),
        ("a100:4", (A100,), "optional", "a100:4"),
        ("a100:4", (A100,), "never", "4"),
        # A kind's own name becomes the type as Slurm spells it.
        ("thin:4", (A100, H100), "always", "a100:4"),
        ("thin:4", (A100, H100), "optional", "a100:4"),
        ("thin:4", (A100, H100), "never", "4"),
        ("a100-80:4", (SMALL, LARGE), "optional", "a100:4"),
    ],
)
def test_the_type_that_is_written(
    gpus: str, kinds: tuple[NodeType, ...], typed: str, value: str, form: str
) -> None:
    expected = f"gpu:{value}" if form == "gres" else value
    assert written(plan(gpus, kinds, typed, form)) == expected


def test_a_kind_s_name_chooses_it_with_its_select() -> None:
    found = plan("a100-80:4", (SMALL, LARGE), "always")
    assert ("constraint", "gpu80", ("constraint",)) in found.directives
    assert found.gpu_type == "a100"
    assert found.cpus_per_task == 16


def test_a_type_of_two_kinds_chooses_neither() -> None:
    found = plan("a100:4", (SMALL, LARGE), "always")
    assert not [d for d in found.directives if d.option == "constraint"]
    found = plan("a100:4", (SMALL, LARGE), "always", constraint="gpu80")
    assert found.cpus_per_task == 16


def test_a_partition_tells_the_type() -> None:
    assert written(plan("4", (A100, H100), "always", partition="gpu")) == "gpu:a100:4"


@pytest.mark.parametrize(
    ("gpus", "kinds", "fix"),
    [
        ("4", (A100, H100), "write gpus_per_node: TYPE:4 with one of a100, h100"),
        ("4", (SMALL, LARGE), "write gpus_per_node: TYPE:4 with one of a100"),
        ("4", (), "write gpus_per_node: TYPE:4"),
        ("4", (BARE,), "write gpus_per_node: TYPE:4"),
        ("v100:4", (A100, H100), "known types: a100, h100 (upper and lower case differ)"),
        ("cpu:4", (A100, CPU), "known types: a100 (upper and lower case differ)"),
        ("a100:4", (CPU,), "remove gpus_per_node, or choose another partition"),
    ],
)
def test_refused(gpus: str, kinds: tuple[NodeType, ...], fix: str) -> None:
    with pytest.raises(Refusals) as caught:
        plan(gpus, kinds, "always")
    assert caught.value.problems[0].key == "gpus_per_node"
    assert caught.value.problems[0].fix == fix


def test_the_known_types_are_those_of_the_partition() -> None:
    with pytest.raises(Refusals) as caught:
        plan("h100:8", (A100, H100), "optional", partition="gpu")
    (problem,) = caught.value.problems
    assert problem.what == 'partition gpu has no GPU of type "h100"'
    assert problem.fix == "known types: a100 (upper and lower case differ)"
