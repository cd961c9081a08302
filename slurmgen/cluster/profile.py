"""What slurmgen knows of one cluster: facts and rules, no code.

A profile says how GPUs are asked for there, what must and must not be written, what
the nodes and partitions hold, and what a job gets when it says nothing. Everything is
optional: an absent fact is unknown and never checked.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from slurmgen.cluster.checks import check_profile, job_keys, option_names
from slurmgen.spec.base import SpecModel
from slurmgen.spec.checks import Refusals
from slurmgen.spec.fields import (
    Constraint,
    Environment,
    Identifier,
    Memory,
    NameList,
    OtherOptions,
    Paths,
    Time,
    Word,
    Words,
)


class Select(SpecModel):
    """What chooses nodes of a kind: keys of the job file, written where the job gives none."""

    partition: NameList | None = None
    qos: Identifier | None = None
    reservation: Identifier | None = None
    constraint: Constraint | None = None

    def given(self) -> dict[str, str]:
        """The keys that have a value."""
        return {key: value for key, value in self.__dict__.items() if value is not None}


class NodeType(SpecModel):
    """Nodes of one kind.

    name: a job may ask for these nodes by it (`gpus_per_node: NAME:4`). gpu: the type as
    Slurm's gres spells it (case counts), which is what is written.
    """

    name: Word
    gpu: Word | None = None
    vendor: Literal["nvidia", "amd", "intel"] = "nvidia"
    gpus_per_node: int = Field(0, ge=0, description="as Slurm counts them")
    cpus: int | None = Field(None, ge=1, description="CPUs a job may use on one node")
    memory: Memory | None = Field(None, description="memory a job may use on one node")
    tmp: Memory | None = Field(None, description="local disk space, Slurm's TmpDisk")
    threads_per_core: int | None = Field(None, ge=1)
    cpus_per_gpu: int | None = Field(None, ge=1, description="what a GPU's share is")
    mem_per_gpu: Memory | None = None
    count: int | None = Field(None, ge=1, description="how many such nodes there are")
    features: tuple[Word, ...] | None = Field(None, description="all of them; absent: unknown")
    select: Select = Select()


class Partition(SpecModel):
    """A partition and its limits."""

    name: Word
    node_types: tuple[Word, ...] = Field((), description="empty: all")
    max_time: Time | None = None
    min_nodes: int | None = Field(None, ge=1)
    max_nodes: int | None = Field(None, ge=1)
    unnamed: str | None = Field(None, description="why it must not be named in a job")


class Inventory(SpecModel):
    """Closed lists: with one, a name that is not in it is refused. Absent: unknown."""

    nodes: tuple[Word, ...] | None = None
    licenses: tuple[Word, ...] | None = None
    reservations: tuple[Word, ...] | None = None
    gres: tuple[Word, ...] | None = Field(None, description="names in GresTypes, gpu too")


class Gpus(SpecModel):
    """How a job asks for GPUs.

    form: `gres` (--gres=gpu:T:N), `gpus-per-node` (--gpus-per-node=T:N), or `none`
    where the partition alone gives them: then a job has all GPUs of its nodes.
    typed: whether the type is written: `always` (the job's, or that of the only nodes it
    can get), `never`, or `optional` (where the job gives one).
    counts: GPUs per node that are allowed; empty: any.
    """

    form: Literal["gres", "gpus-per-node", "none"] = "gres"
    typed: Literal["always", "optional", "never"] = "optional"
    counts: tuple[int, ...] = ()


class Rendezvous(SpecModel):
    """How the other nodes reach the first one.

    address: `name` (the node's name, or Slurm's own address for it where the name does
    not resolve), `address` (Slurm's NodeAddr), or `ip` (what the name resolves to on
    the first node). suffix: appended to the name (JSC's `i` is the InfiniBand name).
    """

    address: Literal["name", "address", "ip"] = "name"
    suffix: Word = ""


class Profile(SpecModel):
    """A cluster; `generic` is the built-in one that assumes nothing."""

    name: Word
    title: str = ""
    status: Literal["in service", "ending", "closed", "restricted"] = "in service"
    status_reason: str = ""
    verified: bool = Field(True, description="whether the core facts come from the site itself")
    sources: tuple[str, ...] = ()
    read_on: str = Field("", description="the day on which the sources were read")
    slurm: Annotated[Word | None, Field(description="version line, such as 22.05")] = None
    gpus: Gpus = Gpus()
    node_types: tuple[NodeType, ...] = ()
    partitions: tuple[Partition, ...] = ()
    max_array_size: int | None = Field(None, ge=1)
    preemption: bool | None = Field(None, description="whether jobs can be preempted there")
    constrain_devices: bool | None = Field(
        None, description="whether a task can open the GPUs it is given only (ConstrainDevices)"
    )
    inventory: Inventory = Inventory()
    required: dict[str, str] = Field(
        default_factory=dict, description="job-file keys a job must give, with the site's reason"
    )
    forbidden: dict[str, str] = Field(
        default_factory=dict, description="sbatch options the site refuses, with its reason"
    )
    memory: Literal["explicit", "omit"] = Field(
        "explicit", description="omit: the site refuses or ignores every --mem option"
    )
    defaults: dict[str, Word] = Field(
        default_factory=dict, description="job-file keys used where the job gives none"
    )
    sbatch: OtherOptions = Field(default_factory=dict, description="directives added to every job")
    srun: Words = Field((), description="options added to every srun line")
    env: Environment = Field(default_factory=dict)
    module_use: Paths = ()
    modules: Words = Field((), description="loaded before the job's own")
    container: Literal["apptainer", "singularity", "pyxis"] | None = None
    rendezvous: Rendezvous = Rendezvous()

    @field_validator("required")
    @classmethod
    def _required(cls, reasons: dict[str, str]) -> dict[str, str]:
        return job_keys(reasons, "required")

    @field_validator("forbidden")
    @classmethod
    def _forbidden(cls, reasons: dict[str, str]) -> dict[str, str]:
        return option_names(reasons, "forbidden")

    @model_validator(mode="after")
    def _check_together(self) -> Profile:
        problems = list(check_profile(self))
        if problems:
            raise Refusals(problems)
        return self
