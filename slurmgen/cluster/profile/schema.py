"""The JSON Schema of a profile's file, for editors."""

from __future__ import annotations

from typing import Any

from slurmgen.cluster.profile.model import Profile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema of `NAME.yaml`, in which the name is the file's."""
    schema = Profile.model_json_schema()
    schema["required"] = [key for key in schema.get("required", ()) if key != "name"]
    return {"$schema": _DIALECT, **schema, "title": "A cluster profile of slurmgen"}
