"""`slurmgen schema`: valid JSON Schema that takes every valid job file, and few others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from slurmgen.cli.schemas import KINDS, schema
from slurmgen.jobfile.job import JobSpec
from slurmgen.jobfile.keys import OPTIONS
from slurmgen.jobfile.source import parse_yaml

ROOT = Path(__file__).resolve().parents[3]
JOBS = sorted([*ROOT.glob("configs/jobs/*.yaml"), *ROOT.glob("tests/golden/jobs/*.yaml")])
JOB = Draft202012Validator(schema("job"))


def as_an_editor_sees_it(value: Any) -> Any:
    """Numbers and truth values by the core schema of YAML 1.2, which editors go by."""
    if isinstance(value, dict):
        return {key: as_an_editor_sees_it(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_an_editor_sees_it(inner) for inner in value]
    if value in ("true", "false"):
        return value == "true"
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+", value):
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?", value):
        return float(value)
    return value


def errors(validator: Draft202012Validator, text: str) -> list[str]:
    data = as_an_editor_sees_it(parse_yaml(text, "job.yaml").data)
    return [error.message for error in validator.iter_errors(data)]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_json_schema(kind: str) -> None:
    Draft202012Validator.check_schema(schema(kind))


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_every_job_file_is_valid(path: Path) -> None:
    assert errors(JOB, path.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "time: 90", "time: 4:00:00", "time: 2d12h", "time: 1-12", "time: UNLIMITED", "time: -1",
        'nodes: "4"', "gpus_per_node: a100:4", "gpus_per_node: 4", "mem: 200G", "mem: 0",
        "mem: 4gb",
        "cpus_per_task: default", "cpus_per_task: 8", "array: 0-7%2", "array: [1, 3, 5-7]",
        "array: 5",
        "account:", "exclusive: true", "exclusive: user", "requeue: true", "requeue: {}",
        "requeue: {signal: USR2@60, max_restarts: 3}", "partition: [a, b]",
        "setup: {modules: cuda}", "setup: {modules: {load: [a], purge: true}}",
        "setup: {container: a.sif}", "setup: {container: {image: a.sif, gpu: none}}",
        "env: {A: 1, B: x, C: true}", "sbatch: {hint: nomultithread, cpu_freq: high}",
        "sbatch: {site-thing: {value: 1, plugin: true}}", "sbatch: {contiguous: true}",
        "vars: {a: 1, b: [x, true]}", "open_mode: append",
    ],
)  # fmt: skip
def test_what_slurmgen_takes_an_editor_takes(line: str) -> None:
    text = f"command: python train.py\n{line}\n"
    JobSpec(**parse_yaml(text, "job.yaml").data)
    assert errors(JOB, text) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes: 2\n", "is not valid under any of the given schemas"),
        ("command: x\ngpus_per_nod: 4\n", "'gpus_per_nod' was unexpected"),
        ("command: x\ntime: 1.5h\n", "'1.5h' does not match"),
        ("command: x\nmem: 4.5G\n", "'4.5G' does not match"),
        ("command: x\nnodes: 0\n", "0 is less than the minimum of 1"),
        ("command: x\ncpus_per_gpu: many\n", "'many' does not match"),
        ("command: x\nlauncher: mpirun\n", "'mpirun' is not one of"),
        ("command: x\nsetup: {venv: ~/env}\n", "'~/env' does not match"),
        ("command: x\nsetup: {modul: a}\n", "'modul' was unexpected"),
        ("command: x\nenv: [A]\n", "is not of type 'object'"),
        ("command: x\nenv: {A-B: 1}\n", "'A-B' does not match"),
        ("command: x\nsbatch: {hind: x}\n", "'x' is not of type 'object'"),
        ("command: x\nsbatch: {nodes: 3}\n", "3 is not of type 'object'"),
        ("command: []\n", "is not valid under any"),
        ("script: x\nrequeue: {max_restart: 3}\n", "is not valid under any"),
    ],
)
def test_what_is_wrong_an_editor_sees(text: str, message: str) -> None:
    found = errors(JOB, text)
    assert len(found) == 1
    assert message in found[0]


def test_every_key_says_what_it_is() -> None:
    for kind in KINDS:
        assert kind in ("job", "cluster")
    properties = schema("job")["properties"]
    assert set(properties) == set(JobSpec.model_fields)
    assert [name for name, found in properties.items() if not found.get("description")] == []
    assert properties["launcher"]["enum"] == ["srun", "torchrun", "spawn", "plain"]
    assert properties["launcher"]["default"] == "srun"
    assert "4:00:00" in properties["time"]["examples"]


def test_options_of_sbatch_are_completed_but_not_those_with_a_key() -> None:
    offered = set(schema("job")["properties"]["sbatch"]["properties"])
    assert {"hint", "gpu-bind", "nice"} <= offered
    assert not set(OPTIONS.values()) & offered
    assert not {"help", "wrap", "gpus"} & offered
