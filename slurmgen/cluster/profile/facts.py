"""Everything that a profile says, without what its keys mean together."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from slurmgen.cluster.profile.about import Detection, Note, Source
from slurmgen.cluster.profile.limits import Limit, Partition, Qos
from slurmgen.cluster.profile.nodes import Inventory, NodeType
from slurmgen.cluster.profile.options import Account, Addition, Gpus, Reasons
from slurmgen.cluster.profile.starting import (
    Binding,
    ContainerField,
    Launch,
    Preemption,
    Rendezvous,
    Suggestion,
)
from slurmgen.cluster.profile.values import (
    Day,
    Environment,
    Names,
    OtherOptions,
    Paths,
    Scalars,
    Words,
)
from slurmgen.jobfile.base import SpecModel
from slurmgen.jobfile.fields import Word


class Facts(SpecModel):
    """The keys of a profile."""

    name: Word
    title: str = ""
    site: str = ""
    status: Literal["in service", "ending", "closed", "restricted"] = "in service"
    status_reason: str = ""
    status_source: Names = ()
    ends: Day = Field("", description="the day on which it ends, or ended")
    verified: bool = Field(True, description="whether the core facts come from the site itself")
    verified_note: str = Field("", description="what of it is not, or how old it is")
    read_on: Day = Field("", description="the day on which the sources were read")
    sources: dict[str, Source] = Field(default_factory=dict)
    detect: Detection | None = None
    slurm: Annotated[Word | None, Field(description="version line, such as 22.05")] = None
    gpus: Gpus = Gpus()
    node_types: tuple[NodeType, ...] = ()
    partitions: tuple[Partition, ...] = ()
    other_partitions: bool = Field(False, description="whether there are more of them")
    qos: tuple[Qos, ...] = ()
    limits: tuple[Limit, ...] = ()
    max_array_size: int | None = Field(None, ge=1)
    preemption: bool | None = Field(None, description="whether jobs can be preempted there")
    when_preempted: Preemption | None = None
    constrain_devices: bool | None = Field(
        None, description="whether a task can open the GPUs it is given only (ConstrainDevices)"
    )
    inventory: Inventory = Inventory()
    account: Account | None = None
    required: Reasons = Field(
        default_factory=dict, description="job-file keys a job must give, with the site's reason"
    )
    forbidden: Reasons = Field(
        default_factory=dict, description="sbatch options the site refuses, with its reason"
    )
    memory: Literal["explicit", "omit", "ignored"] = Field(
        "explicit",
        description="omit: the site refuses every --mem option; ignored: it takes and ignores it",
    )
    defaults: Scalars = Field(
        default_factory=dict, description="job-file keys used where the job gives none"
    )
    sbatch: OtherOptions = Field(default_factory=dict, description="directives added to every job")
    srun: Words = Field((), description="options added to every srun line")
    env: Environment = Field(default_factory=dict)
    module_purge: bool = Field(False, description="whether modules start from none")
    module_use: Paths = ()
    modules: Words = Field((), description="loaded before the job's own")
    add: tuple[Addition, ...] = Field((), description="the same under a condition, with a source")
    binding: Binding | None = None
    launch: Launch | None = None
    container: ContainerField | None = None
    rendezvous: Rendezvous = Rendezvous()
    suggests: Suggestion | None = None
    notes: tuple[Note, ...] = ()
