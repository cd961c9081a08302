"""Partitions and QOS, and what a job may be there."""

from __future__ import annotations

from pydantic import Field

from slurmgen.cluster.profile.conditions import When
from slurmgen.cluster.profile.values import Names
from slurmgen.jobfile.base import SpecModel
from slurmgen.jobfile.fields import Memory, Time, Word


class Bounds(SpecModel):
    """The least and the most a job may be. Counts are of the whole job unless they say else.

    max_node_time: nodes times time (90 node-minutes are `1:30:00`). gpu_counts: GPUs per
    node that are allowed; empty: any.
    """

    min_time: Time | None = None
    max_time: Time | None = None
    min_nodes: int | None = Field(None, ge=1)
    max_nodes: int | None = Field(None, ge=1)
    min_gpus: int | None = Field(None, ge=0)
    max_gpus: int | None = Field(None, ge=0)
    max_cpus: int | None = Field(None, ge=1)
    max_mem: Memory | None = Field(None, description="on each node")
    max_node_time: Time | None = None
    gpu_counts: tuple[int, ...] = ()


class Limit(Bounds):
    """Bounds that count under a condition; `why` is the site's reason, if it gives one."""

    when: When = When()
    why: str = ""
    source: Names = ()


class Selectable(Bounds):
    """What a partition and a QOS have in common.

    default: the site's own choice for a job that names none. preemptible: a job there may
    be stopped for another one. access: what one needs to be let in.
    """

    name: Word
    node_types: tuple[Word, ...] = Field((), description="empty: all")
    limits: tuple[Limit, ...] = Field((), description="bounds by condition, such as by node count")
    default: bool = False
    preemptible: bool = False
    access: str = ""
    note: str = ""
    why: str = Field("", description="the site's reason for its bounds")
    source: Names = ()


class Partition(Selectable):
    """A partition and its limits."""

    unnamed: str | None = Field(None, description="why it must not be named in a job")
    whole_nodes: bool = Field(False, description="a job there gets no less than a node")


class Qos(Selectable):
    """A QOS.

    replaces: every bound that it gives counts in place of the partition's, as sites mean it and
    Slurm does it with the flags PartitionTimeLimit and the like; else the tighter of the two.
    """

    replaces: bool = True
