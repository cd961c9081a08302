"""Kinds of values that only profiles have, as types for Pydantic's models.

A YAML file may say one name where a list is meant, and a number where text is: what is
read takes both, and the JSON Schema says so to editors.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from slurmgen.jobfile import fields, readers

_SCALAR: dict[str, Any] = {"type": ["string", "number", "boolean"]}
_ONE_OR_MORE = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
)

Names = Annotated[tuple[str, ...], BeforeValidator(readers.words), _ONE_OR_MORE]
Words = Annotated[fields.Words, _ONE_OR_MORE]
Paths = Annotated[fields.Paths, _ONE_OR_MORE]
Environment = Annotated[
    fields.Environment,
    WithJsonSchema({"type": "object", "additionalProperties": _SCALAR}),
]
OtherOptions = Annotated[
    fields.OtherOptions,
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
        }
    ),
]
Scalars = Annotated[
    dict[str, fields.Word],
    WithJsonSchema({"type": "object", "additionalProperties": _SCALAR}),
]
# A day as documents show it: 2026-08-21, 2026-08 or 2026; or that they show none.
Day = Annotated[str, BeforeValidator(readers.word)]
