"""Every limit of every public cluster, on a real Slurm that has as many nodes as the limit needs.

Most of its nodes are powered off, so that Slurm judges a job of a thousand nodes and this machine
runs none of them. tests/edges.py makes the jobs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest

from slurmgen.cli.commands.cluster import live_facts
from slurmgen.cluster.load import load_profile
from slurmgen.cluster.profile import When
from slurmgen.sandbox import Sandbox, accounting
from slurmgen.sandbox.like import shape_like
from slurmgen.slurm.grammars.time import parse_time
from tests.edges import (
    CLUSTERS,
    ROOT,
    SAMPLE,
    Edge,
    Limit,
    boundless,
    edge_of,
    limits_of,
    script_of,
)
from tests.slurm.conftest import answer, missing_for_accounting, run_check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slurmgen.cluster.profile import Profile

pytestmark = pytest.mark.slurm

# What a QOS alone can hold, beside every bound of a QOS.
_OF_ACCOUNTING = {"max_gpus", "min_gpus", "max_cpus", "max_node_time"}
PROFILES = {name: load_profile(name, ROOT) for name in CLUSTERS}
NAMES = [
    name
    for name, profile in PROFILES.items()
    if profile.node_types
    and profile.status != "closed"
    and limits_of(profile)
    # Its jobs say --clusters, and a sandbox is the only Slurm it knows.
    and name != "wice"
]


class Site(NamedTuple):
    profile: Profile
    edges: tuple[Edge, ...]
    sandbox: Sandbox
    accounting: bool


def why_not(edge: Edge, profile: Profile, *, accounting: bool) -> str:
    """Why Slurm's own configuration can't hold a limit; "" where it can."""
    limit = edge.limit
    if limit.bound == "min_time":
        return "Slurm knows no least time of a job: a site's own plugin refuses it"
    if limit.bound == "gpu_counts":
        return "Slurm knows no list of counts: a site's own plugin refuses the others"
    if limit.bound == "cpus_per_gpu":
        return "Slurm has a default for CPUs of a GPU, and no bound: a site's own plugin refuses it"
    if limit.bound == "gpus_per_node" and profile.gpus.form == "none":
        return "nothing in the script asks for GPUs: a job there has those of its nodes"
    if limit.place == "node type" and not _is_told_apart(limit.name, profile):
        return "nothing in the script says which nodes it is for"
    if profile.partitions and "partition" not in edge.inside and not _is_known_where(profile):
        return "the profile doesn't know where a job goes that names no partition"
    if limit.bound == "memory" and profile.memory == "ignored":
        return "the site ignores what a job says of memory, and so it isn't written"
    if limit.place == "cluster" and limit.when != When():
        return "Slurm knows no bound for a kind of nodes"
    if limit.when != When() and limit.value != _loosest(limit, profile):
        return "Slurm has one bound, whatever the size of the job: the loosest"
    if not accounting and _takes_accounting(limit):
        return "a QOS holds it, which takes accounting"
    if not accounting and limit.place == "partition" and profile.qos:
        return "a QOS lets more through, which takes accounting"
    return ""


def _is_told_apart(name: str, profile: Profile) -> bool:
    """Whether the script for a kind of nodes is none for another one."""
    told = [
        (kind.gpu if profile.gpus.typed != "never" else "", kind.select)
        for kind in profile.node_types
    ]
    own = next(i for i, kind in enumerate(profile.node_types) if kind.name == name)
    return told.count(told[own]) == 1


def _is_known_where(profile: Profile) -> bool:
    return any(place.default or place.unnamed is not None for place in profile.partitions) or any(
        kind.select.partition for kind in profile.node_types
    )


def _takes_accounting(limit: Limit) -> bool:
    return limit.place == "qos" or limit.bound in _OF_ACCOUNTING


def _loosest(limit: Limit, profile: Profile) -> object:
    place = next(one for one in (*profile.partitions, *profile.qos) if one.name == limit.name)
    alike = [getattr(other, limit.bound) for other in place.limits]
    if None in alike:
        # Under one of the conditions there is no such bound.
        return None
    return max(alike, key=lambda v: parse_time(v) or 0) if "time" in limit.bound else max(alike)


@pytest.fixture(
    scope="module",
    params=[pytest.param(n, marks=pytest.mark.matrix) if n in SAMPLE else n for n in NAMES],
)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    profile = PROFILES[request.param]
    found = [edge_of(limit, profile) for limit in limits_of(profile)]
    edges = tuple(edge for edge in found if edge is not None)
    keeps = any(_takes_accounting(edge.limit) for edge in edges) and not missing_for_accounting()
    most = max(edge.nodes for edge in edges)
    shape = shape_like(profile, 1, accounting=keeps, powered_off=most).shape
    if keeps:
        *first, last = shape.sacctmgr
        accounts = sorted({edge.inside["account"] for edge in edges})
        own = [f"add account {name}" for name in accounts]
        own += [f"add user {accounting.USER} account={name}" for name in accounts]
        new = [line for line in own if line not in first and not line.endswith(accounting.ACCOUNT)]
        shape = replace(shape, sacctmgr=(*first, *new, last))
    directory = tmp_path_factory.mktemp("limits")
    with Sandbox.up(name="l", shape=shape, directory=directory, accounting=keeps) as sandbox:
        yield Site(profile, edges, sandbox, keeps)


def test_slurm_and_check_draw_the_same_line(
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(site.sandbox.slurm_conf))
    monkeypatch.setenv("HOME", str(tmp_path))
    facts = live_facts()
    # The cluster stays as it is, and sacctmgr takes its time.
    monkeypatch.setattr("slurmgen.cli.commands.cluster.live_facts", lambda: facts)
    open_ended = boundless(site.profile)
    wrong = []
    for edge in site.edges:
        if why_not(edge, site.profile, accounting=site.accounting):
            continue
        script = script_of(site.profile, edge.inside)
        said = answer(site.sandbox, script)
        if said and edge.limit.place == "qos":
            # Slurm's test forgets that a QOS counts in place of the partition; sbatch doesn't.
            said = answer(site.sandbox, script, how="--hold")
        if said:
            wrong.append(f"{edge.limit}: inside: {said}")
        if not answer(site.sandbox, script_of(open_ended, edge.outside)):
            wrong.append(f"{edge.limit}: outside: taken")
        _, report = run_check(tmp_path, edge.inside, site.profile.name, capsys)
        if " error: " in report:
            wrong.append(f"{edge.limit}: check inside: {report}")
        status, report = run_check(tmp_path, edge.outside, site.profile.name, capsys)
        if status != 2:
            wrong.append(f"{edge.limit}: check outside: {report}")
        status, report = run_check(tmp_path, edge.outside, None, capsys)
        if status != 1 or "[live-cluster SG005]" not in report:
            wrong.append(f"{edge.limit}: live outside: {status} {report}")
    assert not wrong, "\n".join(wrong)
