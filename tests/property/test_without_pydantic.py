"""The spec read without Pydantic is the one that Pydantic gives, or is left to Pydantic."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from slurmgen.cluster import generic
from slurmgen.cluster.profile import Profile
from slurmgen.jobfile.job import JobSpec
from slurmgen.jobfile.source import parse_yaml
from slurmgen.jobfile.without_pydantic import quick_job
from slurmgen.resources import configs_dir
from tests.examples import examples

ROOT = Path(__file__).resolve().parents[2]
NO_YAML = ("syntax", "duplicate")
JOBS = [
    path
    for path in sorted([*ROOT.glob("configs/jobs/*.yaml"), *ROOT.glob("tests/golden/*/*.yaml")])
    if path.stem not in NO_YAML
]


def plain(value: object) -> Any:
    """A model or a namespace as a mapping, all the way down."""
    if isinstance(value, (BaseModel, SimpleNamespace)):
        return {key: plain(inner) for key, inner in vars(value).items()}
    return value


def by_pydantic(data: dict[str, Any]) -> Any:
    try:
        return plain(JobSpec.model_validate(data))
    except ValidationError:
        return None


@pytest.mark.parametrize("path", JOBS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files(path: Path) -> None:
    data = parse_yaml(path.read_text(), path.name).data
    quick = quick_job(data)
    assert (None if quick is None else plain(quick)) == by_pydantic(data)


WORDS = st.sampled_from(
    "4 a100:4 2 1 0 -1 1.5 true false none 90m 4:00:00 64G 1536M user n[1-2] n1 0-3%2 0-3 "
    "afterok:12 USR1@120 END,FAIL logs/%x-%j.out %A append now+2hours ALL NONE job torchrun "
    "spawn plain default srun c10d static x ${HOME}/x $(id) ~ -x a b:c gpu:4".split()
) | st.text(max_size=8)  # fmt: skip
VALUES = st.recursive(
    st.none() | WORDS | st.booleans() | st.integers(-2, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
MODULES = st.fixed_dictionaries({}, optional={"purge": VALUES, "use": VALUES, "load": VALUES})
CONTAINER = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("image", "runtime", "mounts", "gpu", "workdir"), VALUES)
)
SETUP = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("venv", "conda", "uv", "commands"), VALUES),
        "modules": MODULES | VALUES,
        "container": CONTAINER | VALUES,
    },
)
REQUEUE = st.fixed_dictionaries(
    {},
    optional={
        "signal": st.sampled_from(["USR1", "usr2@60", "SIGUSR1@0", "12@9", "B:USR1", "TERM@5"])
        | VALUES,
        "max_restarts": st.integers(-1, 10_002) | st.sampled_from(["3", "0", "007"]) | VALUES,
        "on_node_fail": st.booleans() | VALUES,
    },
)
DATA = st.fixed_dictionaries(
    {"command": st.just(["true"]) | VALUES},
    optional={
        **{name: VALUES for name in JobSpec.model_fields if name not in ("command", "setup")},
        "requeue": REQUEUE | st.just("on_node_fail") | VALUES,
        "setup": SETUP | VALUES,
    },
).map(lambda data: dict(list(data.items())[:6]))


@settings(deadline=None, max_examples=examples(600))
@given(DATA)
def test_any_data(data: dict[str, Any]) -> None:
    quick = quick_job(data)
    if quick is not None:
        assert plain(quick) == by_pydantic(data)


@pytest.mark.parametrize("key", JobSpec.model_fields)
def test_every_key_has_its_reader_and_its_default(key: str) -> None:
    quick = quick_job({"command": "true"})
    assert quick is not None
    spec = JobSpec(command="true")
    assert plain(getattr(quick, key)) == plain(getattr(spec, key))


def test_the_generic_profile_is_what_its_file_says() -> None:
    path = configs_dir() / "clusters" / "generic.yaml"
    data = parse_yaml(path.read_text(), path.name).data
    assert plain(generic.PROFILE) == plain(Profile(name="generic", **data))
