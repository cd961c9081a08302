"""A job's spec with other values."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slurmgen.jobfile.job import JobSpec


def replaced(spec: JobSpec, **values: Any) -> JobSpec:
    """A copy of either reader's spec in which `values`, not validated again, are others."""
    other = copy(spec)
    other.__dict__.update(values)
    return other
