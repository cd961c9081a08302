"""JSON Schema of a job file, from its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slurmgen.jobfile.source import parse_yaml

if TYPE_CHECKING:
    from slurmgen.jobfile.keys import Key

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
DIGITS = r"^\s*\d+\s*$"


def json_schema() -> dict[str, Any]:
    """The schema of `job.yaml`.

    What it refuses is wrong; what depends on several keys, on a cluster or on a grammar
    without a pattern is left to `slurmgen lint`.
    """
    from slurmgen.jobfile.job import JobSpec
    from slurmgen.jobfile.keys import BLOCKS, KEYS, PROGRAMS

    found: dict[str, Any] = _tidy(JobSpec.model_json_schema())
    _add_examples(found["properties"], KEYS)
    for name, keys in BLOCKS.items():
        _add_examples(found["$defs"][name]["properties"], keys)
    head = {
        "$schema": _DIALECT,
        "title": "slurmgen job file",
        "description": "One job of slurmgen: what Slurm is asked for, and what is started.",
    }
    found["anyOf"] = [{"required": [key]} for key in PROGRAMS]
    return {**head, **{k: v for k, v in found.items() if k not in head}}


def _add_examples(properties: dict[str, Any], keys: Mapping[str, Key]) -> None:
    for name, shape in properties.items():
        if keys[name].examples:
            shape["examples"] = [_value(example) for example in keys[name].examples]


def _value(example: str) -> Any:
    from slurmgen.jobfile.keys import written

    return parse_yaml(written("value", example), "an example").data["value"]


def _tidy(node: Any) -> Any:
    """Without what an editor has no use for: titles made of keys, null as a default."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidy = {
        key: {name: _tidy(inner) for name, inner in value.items()}
        if key in ("properties", "$defs")
        else _tidy(value)
        for key, value in node.items()
        if not (key == "title" or (key == "default" and value in (None, {}, [])))
    }
    if tidy.get("type") == "integer":
        # A number between quotes is one too.
        tidy |= {"type": ["integer", "string"], "pattern": DIGITS}
    return _with_empty(tidy)


def _with_empty(node: dict[str, Any]) -> dict[str, Any]:
    """`key:` without a value is its default: one more type, in place of one more branch."""
    branches = node.get("anyOf", [])
    others = [branch for branch in branches if branch != {"type": "null"}]
    if len(others) == len(branches):
        return node
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    if len(others) == 1 and "enum" in others[0]:
        merged = {**others[0], "enum": [*others[0]["enum"], None]}
        merged.pop("type", None)
        return {**merged, **rest}
    if len(others) == 1 and "type" in others[0]:
        kinds = others[0]["type"]
        kinds = kinds if isinstance(kinds, list) else [kinds]
        return {**others[0], "type": [*kinds, "null"], **rest}
    if len(others) == 1 and "anyOf" in others[0]:
        others = [*others[0]["anyOf"]]
    return {"anyOf": [*others, {"type": "null"}], **rest}
