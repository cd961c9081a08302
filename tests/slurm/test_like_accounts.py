"""Sandboxes like public clusters, with accounting: what their QOS let through and refuse."""

from __future__ import annotations

import getpass
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from slurmgen.cluster.drift import differences
from slurmgen.cluster.live.profile import profile_data
from slurmgen.cluster.load import load_profile
from slurmgen.cluster.profile import Profile
from slurmgen.errors import Refusals
from slurmgen.jobfile.load import load_job
from slurmgen.sandbox import Sandbox, accounting
from slurmgen.sandbox.like import shape_like
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from slurmgen.slurm.answers import facts
from slurmgen.slurm.grammars.time import format_time, parse_time
from slurmgen.slurm.live import cluster as asked
from tests.slurm.conftest import ROOT, answer, run_check, skip_without_accounting
from tests.slurm.test_like import SMALLER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slurmgen.cluster.profile.limits import Selectable

pytestmark = pytest.mark.slurm

# Which limits each has that a QOS alone can hold.
SITES = {
    "perlmutter": {"max_time", "max_nodes"},
    "jean_zay": {"max_time", "max_gpus"},
    "clariden": {"max_node_time"},
    "roihu": {"max_gpus", "min_gpus"},
    "archer2_gpu": {"max_time", "max_nodes", "max_gpus"},
    "marenostrum5_acc": {"max_time", "max_cpus"},
}
NODES = 5
_NO_BOUNDS: dict[str, Any] = {
    "min_time": None,
    "max_time": None,
    "min_nodes": None,
    "max_nodes": None,
    "min_gpus": None,
    "max_gpus": None,
    "max_cpus": None,
    "max_node_time": None,
    "gpu_counts": (),
    "limits": (),
}


class Site(NamedTuple):
    name: str
    profile: Profile
    sandbox: Sandbox

    @property
    def account(self) -> str:
        own = self.profile.account
        return own.example if own is not None and own.example else accounting.ACCOUNT


@pytest.fixture(
    scope="module",
    params=[
        # On every version, one with limits of three kinds.
        pytest.param(name, marks=pytest.mark.matrix if name == "archer2_gpu" else ())
        for name in SITES
    ],
)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    skip_without_accounting()
    profile = load_profile(request.param, ROOT)
    directory = tmp_path_factory.mktemp("like")
    shape = shape_like(profile, NODES, accounting=True).shape
    with Sandbox.up(name="q", shape=shape, directory=directory, accounting=True) as sandbox:
        yield Site(request.param, profile, sandbox)


class Edge(NamedTuple):
    """A job just inside a bound of a place, and one just outside."""

    place: str
    bound: str
    inside: dict[str, Any]
    outside: dict[str, Any]


def edges(site: Site) -> Iterator[Edge]:
    for key in ("qos", "partition"):
        for place in site.profile.qos if key == "qos" else site.profile.partitions:
            kinds = [k for k in site.profile.node_types if k.name in place.node_types]
            kind = (kinds or site.profile.node_types)[0]
            job = {
                "command": "true",
                "launcher": "torchrun",
                "account": site.account,
                "time": "10m",
                "gpus_per_node": kind.gpus_per_node or 4,
                **({"exclusive": "true"} if "exclusive" in site.profile.required else {}),
                key: place.name,
            }
            if key == "qos" and "partition" in site.profile.required:
                job["partition"] = site.sandbox.shape.partition_shapes[0].name
            for bound in sorted(SITES[site.name]):
                for inside, outside in pairs(place, bound, job):
                    yield Edge(place.name, bound, {**job, **inside}, {**job, **outside})


def pairs(
    place: Selectable, bound: str, job: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """What a job inside and one outside have otherwise; none where so many nodes are not there."""
    limit, gpus = getattr(place, bound), job["gpus_per_node"]
    if limit is None:
        return
    if bound in ("max_time", "max_node_time"):
        seconds = parse_time(limit)
        assert seconds is not None
        for nodes in (1,) if bound == "max_time" else (1, 2):
            most = seconds // (nodes if bound == "max_node_time" else 1)
            inside = {"nodes": nodes, "time": format_time(most)}
            yield inside, {**inside, "time": format_time(most + 60)}
    elif bound == "max_nodes" and limit < NODES:
        yield {"nodes": limit}, {"nodes": limit + 1}
    elif bound == "max_gpus" and limit < gpus:
        yield {"gpus_per_node": limit}, {"gpus_per_node": limit + 1}
    elif bound == "max_gpus" and limit // gpus < NODES:
        yield {"nodes": limit // gpus}, {"nodes": limit // gpus + 1}
    elif bound == "max_cpus" and limit < 80:
        half = {"gpus_per_node": gpus // 2}
        yield {**half, "cpus_per_task": limit}, {**half, "cpus_per_task": limit + 1}
    elif bound == "min_gpus" and limit <= gpus:
        yield {"gpus_per_node": limit}, {"gpus_per_node": limit - 1}


def script_of(profile: Profile, job: dict[str, Any]) -> str:
    """Rendered on the profile; raises Refusals."""
    loaded = load_job(yaml.safe_dump(job), "job.yaml", defaults=profile.defaults)
    return render(resolve(loaded.spec, profile, source="job.yaml"))


def test_check_and_slurm_draw_the_same_line(
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(site.sandbox.slurm_conf))
    monkeypatch.setenv("HOME", str(tmp_path))
    profile = site.profile
    boundless = profile.model_copy(
        update={
            "limits": (),
            "qos": tuple(q.model_copy(update=_NO_BOUNDS) for q in profile.qos),
            "partitions": tuple(p.model_copy(update=_NO_BOUNDS) for p in profile.partitions),
        }
    )
    seen = set()
    for edge in edges(site):
        try:
            script = script_of(profile, edge.inside)
        except Refusals:
            # Another limit comes first.
            continue
        seen.add(edge.bound)
        assert answer(site.sandbox, script) == "", edge
        _, said = run_check(tmp_path, edge.inside, site.name, capsys)
        assert " error: " not in said, edge
        assert answer(site.sandbox, script_of(boundless, edge.outside)) != "", edge
        # By the profile alone, then by what the cluster itself says.
        status, said = run_check(tmp_path, edge.outside, site.name, capsys)
        assert status == 2, edge
        assert edge.place in said, edge
        status, said = run_check(tmp_path, edge.outside, None, capsys)
        assert status == 1, edge
        assert "[live-cluster SG005]" in said, edge
    assert seen == SITES[site.name]


def test_detect_gives_the_limits_back(site: Site) -> None:
    found = facts.read(asked.ask(site.sandbox.environment(), getpass.getuser()))
    live = Profile(**profile_data(found))
    lines = differences(site.profile, live)
    without = SMALLER.pattern.replace("|(most|least) [GC]PUs of a job|most of nodes times time", "")
    assert [line for line in lines if not re.search(without, line)] == []
    assert {q.name for q in site.profile.qos} <= {q.name for q in live.qos}
