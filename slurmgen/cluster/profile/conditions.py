"""When a rule of a profile counts."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from slurmgen import launchers
from slurmgen.cluster.profile.values import Names
from slurmgen.jobfile import readers
from slurmgen.jobfile.base import SpecModel

_ONE = {"enum": list(launchers.NAMES)}
Launchers = Annotated[
    tuple[launchers.Name, ...],
    BeforeValidator(readers.words),
    WithJsonSchema({"anyOf": [_ONE, {"type": "array", "items": _ONE}]}),
]


class When(SpecModel):
    """Everything that is given must hold of the job; nothing given: it always does.

    Counts are of the whole job. whole_nodes: whether the job takes all GPUs of its nodes.
    container: whether its program runs in one.
    """

    min_nodes: int | None = Field(None, ge=1)
    max_nodes: int | None = Field(None, ge=1)
    min_gpus: int | None = Field(None, ge=0)
    max_gpus: int | None = Field(None, ge=0)
    node_type: Names = ()
    partition: Names = ()
    qos: Names = ()
    launcher: Launchers = ()
    whole_nodes: bool | None = None
    container: bool | None = None
