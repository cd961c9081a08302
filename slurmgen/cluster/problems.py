"""Adding a Refusal to the list of those that a job has on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.errors import Refusal

if TYPE_CHECKING:
    from slurmgen.diagnostics import KeyPath

UNAVAILABLE = "Slurm would say: Requested node configuration is not available"


def refuse(problems: list[Refusal], key: str | KeyPath, what: str, why: str, fix: str) -> None:
    """Add a Refusal about `key` of the job file."""
    problems.append(Refusal(what, why=why, fix=fix, key=key))
