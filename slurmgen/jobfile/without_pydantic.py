"""The same spec without Pydantic, for job files that are certainly valid.

Importing Pydantic and building its models takes longer than all the rest of `render`. So
a job file is first read by the functions that the models are made of (`keys.py` has that of
each key); whatever they do not take at once goes to Pydantic, which then says what is wrong.
`tests/property/test_without_pydantic.py` holds the two to the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from slurmgen.errors import Refusal, Refusals
from slurmgen.jobfile.blocks import read_block
from slurmgen.jobfile.checks import check_together
from slurmgen.jobfile.keys import DEFAULTS, READERS
from slurmgen.jobfile.readers import Doubtful

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.jobfile.job import JobSpec


def quick_job(data: Mapping[str, Any]) -> JobSpec | None:
    """An object with the attributes of `JobSpec(**data)`, or None where that might raise."""
    try:
        spec = cast("JobSpec", read_block(data, READERS, DEFAULTS))
        check_together(spec)
    except (Doubtful, Refusal, Refusals):
        return None
    return spec
