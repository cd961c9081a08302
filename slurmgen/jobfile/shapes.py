"""What each kind of value looks like in JSON Schema, for editors.

A job file's values are text that each field reads by its own grammar, and YAML tells an editor
that `90` is a number and `true` a truth value. So a shape allows whatever could be valid; a
pattern is given only where it takes everything that the grammar takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

Shape = dict[str, Any]

SCALAR: Shape = {"type": ["string", "number", "boolean"]}
TEXT_OR_LIST: Shape = {"anyOf": [SCALAR, {"type": "array", "items": SCALAR}]}
PATH: Shape = {"type": ["string", "number"], "pattern": "^[^~-]"}
PATHS: Shape = {"anyOf": [PATH, {"type": "array", "items": PATH}]}


def _any_case(word: str) -> str:
    return "".join(f"[{letter.upper()}{letter.lower()}]" for letter in word)


TIME: Shape = {
    "type": ["string", "integer"],
    "pattern": r"^\s*(\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}|-1|(\d+[dhmsDHMS])+|"
    rf"{_any_case('infinite')}|{_any_case('unlimited')})\s*$",
}
MEMORY: Shape = {"type": ["string", "integer"], "pattern": r"^\s*\d+([kmgtKMGT][bB]?)?\s*$"}
NUMBER: Shape = {"type": ["string", "integer"], "pattern": r"^\s*\d+\s*$", "minimum": 1}
NODES: Shape = {"type": ["string", "integer"], "minimum": 1}
GPUS: Shape = {"type": ["string", "integer"], "minimum": 0}
RANGES: Shape = {
    "anyOf": [
        {"type": ["string", "integer"]},
        {"type": "array", "items": {"type": ["string", "integer"]}},
    ]
}
EXCLUSIVE: Shape = {"enum": [True, False, "user", "mcs", "topo", "true", "false"]}
OPEN_MODE: Shape = {"type": "string", "pattern": "^[aAtT]"}
ENVIRONMENT: Shape = {
    "type": "object",
    "additionalProperties": SCALAR,
    "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
}
VARIABLES: Shape = {
    "type": "object",
    "additionalProperties": TEXT_OR_LIST,
    "propertyNames": {"pattern": "^[A-Za-z][A-Za-z0-9_]*$"},
}
SCRIPT: Shape = {"type": "string", "minLength": 1}
COMMAND: Shape = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "items": SCALAR, "minItems": 1},
    ]
}


class OrShort:
    """A model, or the short form that a validator before it takes."""

    def __init__(self, short: Shape) -> None:
        self.short = short

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [handler(core_schema), self.short]}


class SbatchOptions:
    """The options of sbatch by name; any other is a site plugin's, and says so."""

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        from slurmgen.jobfile.keys import OPTIONS
        from slurmgen.slurm.options import catalog
        from slurmgen.slurm.options.values import decided_by, is_for_a_script

        names = [
            name
            for name in catalog.options()
            if is_for_a_script(name) and decided_by(name, OPTIONS) is None
        ]
        value = {"type": ["string", "number", "boolean", "null"]}
        plugin = {
            "type": "object",
            "description": "an option of a site's plugin",
            "properties": {"value": SCALAR, "plugin": {"const": True}},
            "required": ["plugin"],
            "additionalProperties": False,
        }
        with_underscores = "|".join(name.replace("-", "[-_]") for name in names)
        return {
            "type": "object",
            "properties": {
                name: {**value, "description": f"sbatch --{name}{_versions(name)}"}
                for name in names
            },
            "patternProperties": {f"^({with_underscores})$": value},
            "additionalProperties": plugin,
        }


def _versions(name: str) -> str:
    from slurmgen.slurm.options import catalog

    option = catalog.find(name)
    if option is None or (option.since is None and option.until is None):
        return ""
    since = f"from Slurm {option.since}" if option.since else ""
    until = f"up to Slurm {option.until}" if option.until else ""
    return f", {' '.join(filter(None, [since, until]))}"
