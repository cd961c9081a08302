"""The whole profile."""

from __future__ import annotations

from pydantic import field_validator, model_validator

from slurmgen.cluster.checks import check_profile, job_keys, option_names
from slurmgen.cluster.profile.facts import Facts
from slurmgen.cluster.profile.options import Reason
from slurmgen.errors import Refusals


class Profile(Facts):
    """A cluster; `generic` is the built-in one that assumes nothing."""

    @field_validator("required")
    @classmethod
    def _required(cls, reasons: dict[str, Reason]) -> dict[str, Reason]:
        return job_keys(reasons, "required")

    @field_validator("forbidden")
    @classmethod
    def _forbidden(cls, reasons: dict[str, Reason]) -> dict[str, Reason]:
        return option_names(reasons, "forbidden")

    @model_validator(mode="after")
    def _check_together(self) -> Profile:
        problems = list(check_profile(self))
        if problems:
            raise Refusals(problems)
        return self
