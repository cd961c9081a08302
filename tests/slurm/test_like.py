"""Sandboxes like public clusters: what their profiles render, allow and refuse, on a real Slurm."""

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
from slurmgen.errors import InvalidInput, Refusals
from slurmgen.jobfile.load import load_job
from slurmgen.sandbox import Sandbox
from slurmgen.sandbox.like import shape_like
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from slurmgen.slurm.answers import facts
from slurmgen.slurm.grammars.memory import parse_memory
from slurmgen.slurm.grammars.time import format_time, parse_time
from slurmgen.slurm.live import cluster as asked
from tests.edges import SAMPLE
from tests.slurm.conftest import ROOT, answer, run_check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slurmgen.cluster.profile import NodeType, Partition

pytestmark = pytest.mark.slurm

SITES = (
    "perlmutter",
    "frontier",
    "lumi",
    "juwels_booster",
    "vista",
    "trillium_gpu",
    "stampede3",
    "lonestar6",
    "roihu",
    "snellius",
)
NODES = 4
EXAMPLES: dict[str, dict[str, Any]] = yaml.safe_load(
    (ROOT / "tests" / "golden" / "sites" / "examples.yaml").read_text(encoding="utf-8")
)
JOBS = sorted((ROOT / "configs" / "jobs").glob("*.yaml"))
# What an account, a QOS and a partition are called in a job for the site.
WHO: dict[str, dict[str, Any]] = {
    name: {
        key: value
        for key, value in EXAMPLES.get(name, {}).get("job", {}).items()
        if key in ("account", "qos", "partition")
    }
    for name in SITES
}
WHO["juwels_booster"] = {"account": "proj", **WHO["juwels_booster"]}
WHO["stampede3"] = {"partition": "h100", **WHO["stampede3"]}
# Where a sandbox is not the cluster: it has fewer nodes, this machine's Slurm, a default
# partition, and limits of the kinds that slurm.conf has.
SMALLER = re.compile(
    r"how many there are|whether it is the default|Slurm's version|threads per core|local disk"
    r"|(most|least) [GC]PUs of a job|most of nodes times time|ConstrainDevices|can be preempted"
)

WIDER = re.compile(r"^partition .*, (time limit|most nodes of a job): ")
# Those that know their nodes.
EVERY = tuple(
    path.stem
    for path in sorted((ROOT / "configs" / "clusters").glob("*.yaml"))
    if load_profile(path.stem, ROOT).node_types
)
EVERYBODY: dict[str, dict[str, Any]] = yaml.safe_load(
    (ROOT / "tests" / "golden" / "sites" / "who.yaml").read_text(encoding="utf-8")
)


class Site(NamedTuple):
    name: str
    profile: Profile
    sandbox: Sandbox


def up(name: str, directory: Path) -> Iterator[Site]:
    profile = load_profile(name, ROOT)
    shape = shape_like(profile, NODES).shape
    with Sandbox.up(name="like", shape=shape, directory=directory) as sandbox:
        yield Site(name, profile, sandbox)


@pytest.fixture(scope="module", params=SITES)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    yield from up(request.param, tmp_path_factory.mktemp("like"))


@pytest.fixture(
    scope="module",
    params=[pytest.param(n, marks=pytest.mark.matrix) if n in SAMPLE else n for n in EVERY],
)
def any_site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    yield from up(request.param, tmp_path_factory.mktemp("like"))


def script_of(site: Site, text: str, **values: Any) -> str:
    """Rendered on the profile; raises Refusals."""
    overrides = [f"{key}={value}" for key, value in values.items()]
    loaded = load_job(text, "job.yaml", overrides=overrides, defaults=site.profile.defaults)
    return render(resolve(loaded.spec, site.profile, source="job.yaml"))


def test_every_example_that_renders_is_taken(any_site: Site) -> None:
    site, who = any_site, EVERYBODY.get(any_site.name, {})
    texts = {}
    for path in JOBS:
        text = path.read_text(encoding="utf-8")
        own = {key: v for key, v in who.items() if key != "gpus_per_node" or key in text}
        texts[path.stem] = (text, own)
    example = EXAMPLES.get(site.name, {"refused": ""})
    if "refused" not in example:
        job = {"command": ["python", "train.py"], **example["job"]}
        texts["the site's own"] = (yaml.safe_dump(job), {})
    answers = {}
    for name, (text, own) in texts.items():
        try:
            answers[name] = answer(site.sandbox, script_of(site, text, **own))
        except (Refusals, InvalidInput):
            continue
    assert bool(answers) == (site.profile.status != "closed")
    said = {name: text for name, text in answers.items() if text}
    if site.name == "wice":
        # It says --clusters, and a sandbox is the only Slurm it knows.
        assert all("for --cluster" in text for text in said.values())
        return
    assert said == {}


def test_detect_gives_the_shape_back(any_site: Site) -> None:
    profile = any_site.profile
    found = facts.read(asked.ask(any_site.sandbox.environment(), getpass.getuser()))
    lines = differences(profile, Profile(**profile_data(found)))
    # Without accounting a partition lets through what one of the QOS does.
    wider = WIDER if profile.qos else re.compile("$^")
    assert [x for x in lines if not SMALLER.search(x) and not wider.search(x)] == []


class Edge(NamedTuple):
    """A job just inside a limit, the key and the value that take it outside, and that option."""

    job: dict[str, Any]
    key: str
    outside: Any
    option: str


def edges(site: Site) -> Iterator[Edge]:
    """Of every limit of the profile that slurm.conf can hold, and that a job can reach here."""
    profile = site.profile
    kinds = {kind.name: kind for kind in profile.node_types}
    for place in profile.partitions:
        if place.min_nodes or place.limits or place.gpu_counts:
            continue
        default = site.sandbox.shape.partition_shapes[0].name
        if place.unnamed is not None and place.name != default:
            continue
        held = [kinds[name] for name in place.node_types] or list(kinds.values())
        if len(held) == 1 and held[0].gpus_per_node:
            yield from edges_of(site, place, held[0])
    if not profile.partitions and len(kinds) == 1:
        yield from edges_of(site, None, profile.node_types[0])


def edges_of(site: Site, place: Partition | None, kind: NodeType) -> Iterator[Edge]:
    job: dict[str, Any] = {
        **WHO[site.name],
        "command": "true",
        "time": "20m",
        "gpus_per_node": kind.gpus_per_node,
        "launcher": "torchrun",
    }
    if place is not None:
        if place.unnamed is None:
            job["partition"] = place.name
        seconds = None if place.max_time is None else parse_time(place.max_time)
        if seconds is not None:
            outside = format_time(seconds + 60)
            yield Edge({**job, "time": place.max_time}, "time", outside, f"--time={outside}")
        if place.max_nodes is not None and place.max_nodes <= NODES:
            more = place.max_nodes + 1
            yield Edge({**job, "nodes": place.max_nodes}, "nodes", more, f"--nodes={more}")
    if site.profile.gpus.form != "none":
        more = kind.gpus_per_node + 1
        form = site.profile.gpus.form.replace("gres", "gres=gpu:").rstrip("=")
        option = f"--{form}{more}" if "gres" in form else f"--gpus-per-node={more}"
        yield Edge(job, "gpus_per_node", more, option)
    if kind.cpus is not None:
        more = kind.cpus + 1
        yield Edge(
            {**job, "cpus_per_task": kind.cpus}, "cpus_per_task", more, f"--cpus-per-task={more}"
        )
    if kind.memory is not None and site.profile.memory == "explicit":
        most = parse_memory(kind.memory)
        yield Edge({**job, "mem": f"{most}M"}, "mem", f"{most + 1}M", f"--mem={most + 1}M")


def test_check_and_slurm_draw_the_same_line(
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(site.sandbox.slurm_conf))
    monkeypatch.setenv("HOME", str(tmp_path))
    seen = set()
    for edge in edges(site):
        inside = yaml.safe_dump(edge.job)
        try:
            script = script_of(site, inside)
        except Refusals:
            # A rule that no Slurm has, such as a product of nodes and time, comes first.
            continue
        seen.add(edge.key)
        assert answer(site.sandbox, script) == "", edge
        _, said = run_check(tmp_path, edge.job, site.name, capsys)
        assert " error: " not in said, edge
        assert answer(site.sandbox, script, edge.option) != "", edge
        outside = {**edge.job, edge.key: edge.outside}
        # By the profile alone, then by what the cluster itself says.
        status, said = run_check(tmp_path, outside, site.name, capsys)
        assert status == 2, edge
        status, said = run_check(tmp_path, outside, None, capsys)
        assert status == 1, edge
        assert "[live-cluster SG005]" in said, edge
    if site.name != "perlmutter":
        assert len(seen) >= 2
