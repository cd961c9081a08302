"""A Refusal of what a job asks of a cluster, and adding it to the list of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.errors import Refusal

if TYPE_CHECKING:
    from slurmgen.diagnostics import KeyPath

UNAVAILABLE = "Slurm would say: Requested node configuration is not available"


def refusal(key: str | KeyPath, what: str, why: str, fix: str) -> Refusal:
    """A Refusal about `key` of the job file."""
    return Refusal(what, why=why, fix=fix, key=key)


def refuse(problems: list[Refusal], key: str | KeyPath, what: str, why: str, fix: str) -> None:
    """Add a Refusal about `key` of the job file."""
    problems.append(refusal(key, what, why, fix))
