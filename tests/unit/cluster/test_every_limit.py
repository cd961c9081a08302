"""Every limit of every built-in profile: one job just inside it, and one just outside."""

from __future__ import annotations

import pytest

from slurmgen.cluster.load import load_profile
from tests.edges import CLUSTERS, ROOT, edge_of, limits_of, refusals

# Limits that no job comes up to, and why.
_TOO_MANY = "no partition lets a job have so many nodes"
_NO_MEMORY = "a job there may not say how much memory it wants"
_BY_TIME = "the site chooses the partition by the job's time, and has longer ones"
UNREACHED = {
    "archer2_gpu": {"node type mi210 count": _TOO_MANY},
    "csd3_ampere": {"node type a100 count": _TOO_MANY},
    "engaging": {
        "node type h200 count": _TOO_MANY,
        "node type l40s count": _TOO_MANY,
        "node type h200 gpus_per_node": "no partition lets a job have more than 4 GPUs",
    },
    "expanse": {"node type v100 count": _TOO_MANY},
    "frontera": {"node type rtx count": _TOO_MANY},
    "horizon": {"node type gb count": _TOO_MANY},
    "iris_ulhpc": {
        "node type v100-16 count": _TOO_MANY,
        "node type v100-32 count": _TOO_MANY,
    },
    "kestrel": {
        "partition gpu-h100s max_time": _BY_TIME,
        "partition gpu-h100 max_time": _BY_TIME,
    },
    "leonardo": {"node type a100 count": _TOO_MANY},
    "lonestar6": {
        "node type a100 count": _TOO_MANY,
        "node type a100 memory": _NO_MEMORY,
        "node type h100 count": _TOO_MANY,
        "node type h100 memory": _NO_MEMORY,
    },
    "marenostrum5_acc": {"node type h100 count": _TOO_MANY},
    "roihu": {"node type gh200 count": _TOO_MANY, "node type l40 count": _TOO_MANY},
    "sofia": {"node type h200 memory": _NO_MEMORY},
    "stampede3": {"node type h100 count": _TOO_MANY, "node type pvc count": _TOO_MANY},
    "trillium_gpu": {"node type h100 count": _TOO_MANY},
    "vista": {"node type gh count": _TOO_MANY, "node type gh memory": _NO_MEMORY},
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_job_on_each_side(name: str) -> None:
    profile = load_profile(name, ROOT)
    limits = limits_of(profile)
    if profile.status == "closed":
        # Whatever its limits were.
        (said,) = refusals(profile, {"command": "true"})
        assert said.startswith(f"{name} is closed since ")
        return
    # edge_of() has asked the profile about both jobs.
    missing = [str(limit) for limit in limits if edge_of(limit, profile) is None]
    assert sorted(missing) == sorted(UNREACHED.get(name, {}))


def test_there_are_many() -> None:
    assert sum(len(limits_of(load_profile(name, ROOT))) for name in CLUSTERS) >= 570
