"""slurmgen schema: JSON Schema for editors and other tools."""

from __future__ import annotations

from slurmgen.cli import report
from slurmgen.cli.schemas import KINDS, schema_text
from slurmgen.errors import EXIT_OK, UsageError


def run(kind: str) -> int:
    """Print the schema of a job file or of a cluster profile."""
    if kind not in KINDS:
        raise UsageError(f'there is no schema "{kind[:60]}"', fix=f"write {' or '.join(KINDS)}")
    report.out(schema_text(kind))
    return EXIT_OK
