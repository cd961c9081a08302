"""The kinds of nodes, and closed lists of names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from slurmgen.cluster.profile.values import Names
from slurmgen.jobfile.base import SpecModel
from slurmgen.jobfile.fields import Constraint, Identifier, Memory, NameList, Word


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
    Slurm's gres spells it (case counts), which is what is written. title: what people call
    the GPU. cpus_per_gpu: a GPU's share; cpus_rule: whether a job may have fewer or more
    (`recommended`), fewer (`maximum`), or neither (`exact`). gpu_counts: GPUs per node that
    are allowed; empty: any. account: the pattern that accounts for these nodes fit.
    """

    name: Word
    title: str = ""
    default: bool = Field(False, description="what a job gets that leaves open which nodes")
    gpu: Word | None = None
    vendor: Literal["nvidia", "amd", "intel"] = "nvidia"
    arch: Literal["x86_64", "aarch64", "ppc64le"] | None = None
    gpus_per_node: int = Field(0, ge=0, description="as Slurm counts them")
    gpu_memory: Memory | None = None
    cpus: int | None = Field(None, ge=1, description="CPUs a job may use on one node")
    memory: Memory | None = Field(None, description="memory a job may use on one node")
    tmp: Memory | None = Field(None, description="local disk space, Slurm's TmpDisk")
    threads_per_core: int | None = Field(None, ge=1)
    cpus_per_gpu: int | None = Field(None, ge=1, description="what a GPU's share is")
    cpus_rule: Literal["recommended", "maximum", "exact"] = "recommended"
    mem_per_gpu: Memory | None = None
    gpu_counts: tuple[int, ...] = ()
    count: int | None = Field(None, ge=1, description="how many such nodes there are")
    features: tuple[Word, ...] | None = Field(None, description="all of them; absent: unknown")
    account: Word | None = None
    select: Select = Select()
    note: str = ""
    source: Names = ()


class Inventory(SpecModel):
    """Closed lists: with one, a name that is not in it is refused. Absent: unknown."""

    nodes: tuple[Word, ...] | None = None
    licenses: tuple[Word, ...] | None = None
    reservations: tuple[Word, ...] | None = None
    gres: tuple[Word, ...] | None = Field(None, description="names in GresTypes, gpu too")
