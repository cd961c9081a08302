"""slurmgen/jobfile/given.py, from the JSON Schema: the keys of a job as Python may give them."""

from __future__ import annotations

import textwrap
from typing import Any

from slurmgen.cli.schemas import schema

_PREFACE = '''\
"""The keys of a job as Python may give them, for editors and type checkers; at no run time.

From `slurmgen/jobfile/keys.py` and the JSON Schema; written by `make docs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

Scalar = str | float | bool
'''
_KINDS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_TITLES = {
    "Keys": "What `Job(…)` takes",
    "RequeueKeys": "`requeue`",
    "SetupKeys": "`setup`",
    "ModulesKeys": "`modules` of `setup`",
    "ContainerKeys": "`container` of `setup`",
}
# Of a line of a docstring.
_MOST = 90


def module() -> str:
    """The whole module."""
    found = schema("job")
    blocks = {f"{name}Keys": shape["properties"] for name, shape in found["$defs"].items()}
    parts = [_PREFACE]
    for name, properties in {**blocks, "Keys": found["properties"]}.items():
        parts.append(f"\n\nclass {name}(TypedDict, total=False):\n")
        parts.append(f'    """{_TITLES[name]}."""\n')
        for key, shape in properties.items():
            parts.append(f"\n    {key}: {' | '.join(_types(shape))}\n")
            if "description" in shape:
                parts.append(_documented(shape["description"]))
    return "".join(parts)


def _documented(text: str) -> str:
    """A docstring below the key."""
    if len(text) > _MOST:
        lines = textwrap.wrap(text, width=_MOST, break_long_words=False, break_on_hyphens=False)
        text = "\n    ".join([*lines, ""])
    return f'    """{text}"""\n'


def _types(shape: dict[str, Any]) -> list[str]:
    """The types of a shape, each once."""
    found: list[str] = []
    for branch in shape.get("anyOf") or shape.get("oneOf") or [shape]:
        found += [one for one in _of(branch) if one not in found]
    if {"str", "float", "bool"} <= set(found):
        found = ["Scalar", *(one for one in found if one not in ("str", "int", "float", "bool"))]
    return [one for one in found if one != "None"] + ["None"] * ("None" in found)


def _of(shape: dict[str, Any]) -> list[str]:
    if "anyOf" in shape or "oneOf" in shape:
        return _types(shape)
    if "$ref" in shape:
        return [f"{shape['$ref'].rpartition('/')[2]}Keys"]
    if "const" in shape or "enum" in shape:
        values = shape.get("enum", [shape.get("const")])
        words = [repr(value).replace("'", '"') for value in values if value is not None]
        return [f"Literal[{', '.join(words)}]", *(["None"] if None in values else [])]
    kinds = shape.get("type", [])
    found = []
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "array":
            found.append(f"Sequence[{' | '.join(_types(shape['items']))}]")
        elif kind == "object":
            inner = shape.get("additionalProperties")
            values = _types(inner) if isinstance(inner, dict) and "properties" not in inner else []
            found.append(f"Mapping[str, {' | '.join(values) or 'object'}]")
        else:
            found.append(_KINDS[kind])
    return found
