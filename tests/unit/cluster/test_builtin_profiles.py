"""The built-in profiles: each says where its facts are from, and fits the JSON Schema."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from slurmgen.cluster import generic
from slurmgen.cluster.checks import cited
from slurmgen.cluster.description import describe
from slurmgen.cluster.load import read_profile
from slurmgen.cluster.profile.schema import json_schema
from slurmgen.resources import configs_dir

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = json_schema()
PATHS = sorted((configs_dir() / "clusters").glob("*.yaml"))
SITES = [path for path in PATHS if path.stem != generic.NAME]
DAY = re.compile(r"20\d\d(-\d\d){0,2}")


def by_name(path: Path) -> str:
    return path.stem


def test_the_schema_is_one_of_2020_12() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


@pytest.mark.parametrize("path", PATHS, ids=by_name)
def test_a_profile_fits_the_schema(path: Path) -> None:
    """As an editor reads it: with numbers and truth values in place of text."""
    data = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    jsonschema.Draft202012Validator(SCHEMA).validate(data)


WRONG: list[dict[str, Any]] = [
    {"gpus": {"form": "gpu"}},
    {"node_types": [{"gpu": "a100"}]},
    {"partitions": [{"name": "p", "max_tyme": "1:00"}]},
    {"add": [{"when": {"min_nodes": 0}}]},
    {"status": "open"},
    {"sources": {"guide": {"date": "2026"}}},
]


@pytest.mark.parametrize("data", WRONG)
def test_the_schema_refuses(data: dict[str, Any]) -> None:
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(data)


@pytest.mark.parametrize("path", SITES, ids=by_name)
def test_every_fact_has_a_dated_source(path: Path) -> None:
    profile = read_profile(path)
    assert profile.title
    assert profile.site
    assert DAY.fullmatch(profile.read_on)
    assert profile.sources
    for source in profile.sources.values():
        assert source.date == "undated" or DAY.fullmatch(source.date)
    lacking = [place for place, names in cited(profile) if not names and not _says_nothing(place)]
    assert lacking == []
    used = {name for _, names in cited(profile) for name in names}
    assert used, "no block names a document"
    # What holds for every job and has no place for a source.
    assert not any((profile.env, profile.sbatch, profile.srun, profile.modules))


def _says_nothing(place: tuple[Any, ...]) -> bool:
    """A limit of a partition has the partition's source; the rest is a default."""
    return place[-1] == "status_source" or place[:1] == ("rendezvous",) or "limits" in place[1:]


@pytest.mark.parametrize("path", SITES, ids=by_name)
def test_what_is_verified_is_the_site_s_own(path: Path) -> None:
    profile = read_profile(path)
    own = [s for s in profile.sources.values() if s.kind != "third-party"]
    assert own or not profile.verified
    assert profile.verified or profile.verified_note
    if profile.status in ("closed", "ending"):
        assert DAY.fullmatch(profile.ends)
    if profile.status != "in service":
        assert profile.status_reason
        assert profile.status_source


@pytest.mark.parametrize("path", PATHS, ids=by_name)
def test_a_profile_in_words(path: Path) -> None:
    lines = list(describe(read_profile(path)))
    assert lines[0].startswith(f"{path.stem}: ")
    assert all(line == line.rstrip() and "\n" not in line for line in lines)
    profile = read_profile(path)
    text = "\n".join(lines)
    for name in [kind.name for kind in profile.node_types] + list(profile.required):
        assert name in text
    for source in profile.sources.values():
        assert source.where in text
