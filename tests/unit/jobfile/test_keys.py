"""Every key of the job file, with its example, goes every way that a key can go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, BeforeValidator

from slurmgen.cli.schemas import schema
from slurmgen.cluster import generic
from slurmgen.errors import Refusals
from slurmgen.importer import import_script
from slurmgen.jobfile import readers
from slurmgen.jobfile.job import JobSpec
from slurmgen.jobfile.keys import (
    BLOCKS,
    COPIED,
    KEYS,
    NONE,
    OPTIONS,
    PROGRAMS,
    SETUP,
    Key,
    example,
    written,
)
from slurmgen.jobfile.load import load_job
from slurmgen.jobfile.model import Requeue
from slurmgen.jobfile.options import read_options
from slurmgen.jobfile.setup import Container, Modules, Setup
from slurmgen.jobfile.source import parse_yaml
from slurmgen.jobfile.without_pydantic import quick_job
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from slurmgen.slurm.options import catalog
from tests.property.test_without_pydantic import by_pydantic, plain
from tests.unit.jobfile.test_schema import JOB, errors

ROOT = Path(__file__).resolve().parents[3]
MODELS: dict[str, type[BaseModel]] = {
    model.__name__: model for model in (Requeue, Modules, Container, Setup)
}
# No script says them.
NOT_IN_A_SCRIPT = ("ddp", "args", "template", "vars")
# What a script says in their place means the same.
SAID_OTHERWISE = ("cpus_per_gpu", "setup")
every_key = pytest.mark.parametrize("name", KEYS)
every_option = pytest.mark.parametrize("name", OPTIONS)


def job(name: str, program: str = "command: python train.py") -> str:
    """The example of a key as a job file."""
    text = example(name)
    has_program = any(f"\n{key}:" in f"\n{text}" for key in PROGRAMS)
    return f"{text}\n" if has_program else f"{text}\n{program}\n"


def script_of(text: str) -> str:
    return render(resolve(load_job(text, "job.yaml").spec, generic.PROFILE, source="job.yaml"))


def below_the_header(script: str) -> list[str]:
    return script.splitlines()[3:]


def directives(script: str) -> list[str]:
    lines = script.splitlines()
    return [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")]


def options(script: str) -> list[str]:
    return [directive.removeprefix("--").partition("=")[0] for directive in directives(script)]


def given(text: str, name: str) -> Any:
    return plain(getattr(load_job(text, "job.yaml").spec, name))


@every_option
def test_it_is_a_directive_over_a_script_of_the_job_s_own(name: str) -> None:
    text = job(name, "script: 'true'")
    option = "gres" if name == "gpus_per_node" else OPTIONS[name]
    assert option in options(script_of(text))
    assert given(import_script(script_of(text), name="x").text, name) == given(text, name)


@pytest.mark.parametrize("name", [n for n, key in KEYS.items() if key.becomes == COPIED])
def test_it_is_a_directive(name: str) -> None:
    text = job(name)
    assert f"--{OPTIONS[name]}" in [d.partition("=")[0] for d in directives(script_of(text))]


@pytest.mark.parametrize("name", [n for n in KEYS if n not in NOT_IN_A_SCRIPT])
def test_an_import_gives_it_back(name: str) -> None:
    text = job(name)
    script = script_of(text)
    imported = import_script(script, name="x").text
    assert below_the_header(script_of(imported)) == below_the_header(script)
    if name not in SAID_OTHERWISE:
        assert given(imported, name) == given(text, name)


@every_key
def test_an_editor_takes_it(name: str) -> None:
    for value in KEYS[name].examples:
        assert errors(JOB, f"{written(name, value)}\n" + "command: x\n" * (name != "command")) == []
    shown = schema("job")["properties"][name]
    # What the launchers do, they say themselves.
    if name != "launcher":
        assert shown["description"] == KEYS[name].description
    assert len(shown["examples"]) == len(KEYS[name].examples)


@every_key
def test_it_is_read_as_pydantic_reads_it(name: str) -> None:
    for program in ("command: 'true'", "script: 'true'"):
        data = parse_yaml(job(name, program), "job.yaml").data
        quick = quick_job(data)
        assert (None if quick is None else plain(quick)) == by_pydantic(data)


def test_the_models_have_these_keys_in_this_order() -> None:
    assert list(JobSpec.model_fields) == list(KEYS)
    for name, keys in BLOCKS.items():
        assert list(MODELS[name].model_fields) == list(keys)


@pytest.mark.parametrize(
    ("model", "name", "key"),
    [(JobSpec, name, key) for name, key in KEYS.items()]
    + [(MODELS[block], name, key) for block, keys in BLOCKS.items() for name, key in keys.items()],
)
def test_a_model_reads_it_by_the_same_function(model: type[BaseModel], name: str, key: Key) -> None:
    found = [m.func for m in _metadata(model.model_fields[name]) if isinstance(m, BeforeValidator)]
    assert not found or key.kind.read in (*found, *BY_PYDANTIC)


# Where Pydantic's own types have the words for what is wrong, or a model of its own stands.
BY_PYDANTIC = (readers.nodes, SETUP["modules"].kind.read, SETUP["container"].kind.read)


def _metadata(field: Any) -> list[Any]:
    """What the annotation of a field says besides the type, `| None` or not."""
    found = list(field.metadata)
    for part in getattr(field.annotation, "__args__", ()):
        found += getattr(part, "__metadata__", ())
    return found


@every_option
def test_it_does_not_go_under_sbatch(name: str) -> None:
    with pytest.raises(Refusals) as caught:
        read_options({OPTIONS[name]: "1"}, OPTIONS)
    assert [p.fix for p in caught.value.problems] == [f"write {name} at the top of the job file"]


def test_directives_and_imported_keys_have_one_order() -> None:
    together = [n for n in OPTIONS if n not in ("cpus_per_gpu", "mem_per_cpu", "mem_per_gpu")]
    text = "".join(f"{name}: {KEYS[name].examples[0]}\n" for name in together)
    text = text.replace("ntasks_per_node: 4\n", "ntasks_per_node: 4\nsbatch: {nice: 10}\n")
    expected = [OPTIONS[name] for name in together if name not in ("gpus_per_node",)]
    script = script_of(text + "script: 'true'\n")
    assert options(script) == [*expected, "nice"]
    imported = list(yaml.safe_load(import_script(script, name="x").text))
    assert imported == sorted(imported, key=list(KEYS).index)
    assert set(together) <= set(imported)


@every_key
def test_the_reference_lists_it(name: str) -> None:
    page = (ROOT / "docs" / "reference" / "job-file.md").read_text(encoding="utf-8")
    assert f"\n### {name}\n" in page
    assert f"\n## {KEYS[name].group}\n" in page
    assert f"```yaml\n{example(name)}\n```" in page


def test_what_has_no_option_is_none_of_sbatch_s() -> None:
    assert [n for n, key in KEYS.items() if key.becomes == NONE and catalog.find(n)] == []
    assert [n for n, option in OPTIONS.items() if catalog.find(option) is None] == []
