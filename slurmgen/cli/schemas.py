"""The JSON Schemas that editors and other tools can have."""

from __future__ import annotations

import json
from typing import Any

KINDS = ("job", "cluster")


def schema(kind: str) -> dict[str, Any]:
    """The schema of a job file (`job`) or of a profile (`cluster`)."""
    if kind == "cluster":
        from slurmgen.cluster.profile.schema import json_schema
    else:
        from slurmgen.jobfile.schema import json_schema
    return json_schema()


def schema_text(kind: str) -> str:
    """The schema as the text of a file."""
    return json.dumps(schema(kind), indent=2, ensure_ascii=False) + "\n"
