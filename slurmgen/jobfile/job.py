"""JobSpec: a job file that is valid, key by key and as a whole."""

from __future__ import annotations

from pydantic import ConfigDict, model_validator

from slurmgen.jobfile import checks
from slurmgen.jobfile.model import JobKeys


class JobSpec(JobKeys):
    """One job. Everything that validates here can be rendered.

    Raises (as Pydantic's ValidationError) a Refusal for every value that means nothing,
    that Slurm refuses, or that Slurm accepts and takes for something else.
    """

    model_config = ConfigDict(defer_build=False)

    @model_validator(mode="after")
    def _check_together(self) -> JobSpec:
        checks.check_together(self)
        return self
