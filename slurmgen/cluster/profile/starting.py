"""How a job's processes are started and how they meet."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from slurmgen.cluster.profile.conditions import Launchers
from slurmgen.cluster.profile.values import Names, Words
from slurmgen.jobfile.base import SpecModel
from slurmgen.jobfile.fields import Time, Word
from slurmgen.launchers import Name


class Launch(SpecModel):
    """What a site says about starting ranks.

    avoid: launchers against which it advises, with its reason. command: its own program in
    place of srun, which scripts rendered here do not use.
    """

    prefer: Launchers = ()
    avoid: dict[Name, str] = Field(default_factory=dict)
    command: str = ""
    why: str = ""
    source: Names = ()


class Binding(SpecModel):
    """Words of srun that bind the ranks, for launcher srun, where each task is one.

    whole_nodes: where the job has all GPUs of its nodes; masks that name cores are valid
    only there. shared_nodes: where it has some of them.
    """

    whole_nodes: Words = ()
    shared_nodes: Words = ()
    why: str = ""
    source: Names = ()


class PortRange(SpecModel):
    """`first` + the job's number modulo `count` is the port at which the ranks meet."""

    first: int = Field(ge=1024, le=65_535)
    count: int = Field(ge=1, le=64_512)


class Rendezvous(SpecModel):
    """How the other nodes reach the first one.

    address: `name` (the node's name, or Slurm's own address for it where the name does
    not resolve), `address` (Slurm's NodeAddr), or `ip` (what the name resolves to on
    the first node). suffix: appended to the name (JSC's `i` is the InfiniBand name).
    """

    address: Literal["name", "address", "ip"] = "name"
    suffix: Word = ""
    port: PortRange | None = None
    why: str = ""
    source: Names = ()


class Container(SpecModel):
    """The runtime of containers, and the flag by which one there sees the GPUs.

    Scripts are rendered for apptainer, singularity and pyxis; of the others a profile only
    says that they are what the site has.
    """

    runtime: Literal["apptainer", "singularity", "pyxis", "shifter", "container-engine"]
    gpu: Literal["nvidia", "rocm", "none"] | None = Field(
        None, description="none: something else, such as a module, gives the GPUs"
    )
    why: str = ""
    source: Names = ()


def _container(value: Any) -> Any:
    """A name alone is the runtime."""
    return {"runtime": value} if isinstance(value, str) else value


ContainerField = Annotated[Container, BeforeValidator(_container)]


class Preemption(SpecModel):
    """What happens to a job that is stopped for another one.

    exempt: the time it runs before that. grace: from TERM to KILL; absent: unknown.
    requeue: `automatic`, or `on request` (--requeue). max_restarts: how often at most.
    """

    exempt: Time | None = None
    grace: Time | None = None
    requeue: Literal["automatic", "on request"] | None = None
    max_restarts: int | None = Field(None, ge=1)
    why: str = ""
    source: Names = ()


class Suggestion(SpecModel):
    """Modules that the site's own PyTorch examples load; shown, and not loaded."""

    modules: Words = ()
    note: str = ""
    source: Names = ()
