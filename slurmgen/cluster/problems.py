"""Adding a Problem to the list of those that a job has on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.errors import Problem, Refusal

if TYPE_CHECKING:
    from slurmgen.jobfile.source import KeyPath

UNAVAILABLE = "Slurm would say: Requested node configuration is not available"


def refuse(problems: list[Problem], key: str | KeyPath, what: str, why: str, fix: str) -> None:
    """Add a Problem about `key` of the job file."""
    problems.append(Problem(key, Refusal(what, why=why, fix=fix)))
