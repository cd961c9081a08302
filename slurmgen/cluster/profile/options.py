"""Which options a job must, may and must not have, and those that are added to it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from slurmgen.cluster.profile.conditions import When
from slurmgen.cluster.profile.values import Environment, Names, OtherOptions, Paths, Words
from slurmgen.jobfile.base import SpecModel
from slurmgen.jobfile.fields import Word


class Gpus(SpecModel):
    """How a job asks for GPUs.

    form: `gres` (--gres=gpu:T:N), `gpus-per-node` (--gpus-per-node=T:N), `gpus`
    (--gpus=T:N, on several nodes --gpus-per-node, since Slurm may spread a sum unevenly),
    `gpus-per-task` (--gpus-per-task=T:N), or `none` where the partition or the whole node
    gives them: then a job has all GPUs of its nodes.
    typed: whether the type is written: `always` (the job's, or that of the only nodes it
    can get), `never`, or `optional` (where the job gives one).
    counts: GPUs per node that are allowed; empty: any.
    step: the option by which srun asks for them, where a job's step gets none by itself.
    """

    form: Literal["gres", "gpus-per-node", "gpus", "gpus-per-task", "none"] = "gres"
    typed: Literal["always", "optional", "never"] = "optional"
    counts: tuple[int, ...] = ()
    step: Literal["gpus-per-node"] | None = None
    why: str = Field("", description="the site's reason for the form, the type and the counts")
    source: Names = ()


class Account(SpecModel):
    """What accounts look like. pattern: GPU jobs need one that fits it (`*` is any text)."""

    pattern: Word | None = None
    example: str = ""
    why: str = ""
    source: Names = ()


class Reason(SpecModel):
    """Why a site needs or refuses an option, and for which jobs."""

    why: str
    when: When = When()
    source: Names = ()


def _reason(value: Any) -> Any:
    """A text alone is the reason."""
    return {"why": value} if isinstance(value, str) else value


Reasons = dict[str, Annotated[Reason, BeforeValidator(_reason)]]


class Addition(SpecModel):
    """What jobs get that the condition holds for, in the order of the profile.

    sbatch: directives, unless the job gives the same. srun: words of every srun line. env:
    exported in the batch shell. task_env: exported in each task, where Slurm's variables
    are the task's own. A job's own `env` comes before both.
    """

    when: When = When()
    sbatch: OtherOptions = Field(default_factory=dict)
    srun: Words = ()
    env: Environment = Field(default_factory=dict)
    task_env: Environment = Field(default_factory=dict)
    module_use: Paths = ()
    modules: Words = ()
    why: str = ""
    source: Names = ()
