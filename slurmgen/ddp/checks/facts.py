"""What each rank has seen of its own training, as it tells rank 0."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

COMPARED = 2
"""How many batches, and how many steps of an optimizer, are compared: one may agree by chance."""

Kind = Literal["ddp", "fsdp", "bare", "other"]


@dataclass(frozen=True)
class Batch:
    """A batch that a step was made with.

    leaves: for each tensor, a digest and whether it holds enough to tell batches apart. indices: a
    digest of what a DistributedSampler chose, "" without one.
    """

    leaves: list[tuple[str, bool]]
    indices: str = ""


@dataclass
class Sample:
    """Some of an optimizer's parameters, by norm and sum.

    names: of what is sampled; the same on ranks whose samples can be compared. values: before the
    first step. gradients: of the first COMPARED steps, a list for each.
    """

    count: int
    names: str
    values: list[tuple[float, float]]
    gradients: list[list[tuple[float, float]]] = field(default_factory=list)


@dataclass
class Stepped:
    """What an optimizer steps.

    kind: what holds the ranks' parameters together: DistributedDataParallel over all ranks, FSDP,
    nothing that is known here (bare), or something that isn't ours to judge. wrapped, bare: those
    in a DistributedDataParallel and those in nothing.
    """

    kind: Kind
    wrapped: Sample | None = None
    bare: Sample | None = None


@dataclass
class Facts:
    """What one rank has seen in its first steps.

    node: Slurm's name. machine: the host name. own: its device by right. gpus: those its
    parameters are on. idle: its parameters are on the CPU, and nothing is on its GPU. workers: of
    the loader it trains from. whole: a digest of that loader's data set, where it goes through all
    of it; samples: how many those are. cpus: those it may run on, as bits. task, cpus_per_task,
    cpus_on_node: Slurm's, "" or 0 where it doesn't say.
    """

    rank: int
    node: str
    machine: str
    own: str = "cpu"
    gpus: list[str] = field(default_factory=list)
    idle: bool = False
    workers: int = 0
    whole: str = ""
    samples: int = 0
    cpus: int = 0
    task: str = ""
    cpus_per_task: int = 0
    cpus_on_node: int = 0
    batches: list[Batch] = field(default_factory=list)
    optimizers: list[Stepped] = field(default_factory=list)

    def dump(self) -> str:
        """As JSON, for the store."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str | bytes) -> Facts:
        """The inverse of `dump`."""
        data = json.loads(text)
        data["batches"] = [
            Batch([(digest, telling) for digest, telling in one["leaves"]], one["indices"])
            for one in data["batches"]
        ]
        data["optimizers"] = [
            Stepped(one["kind"], _sample(one["wrapped"]), _sample(one["bare"]))
            for one in data["optimizers"]
        ]
        return cls(**data)


Check = Callable[[Sequence[Facts]], Iterator[str]]
"""What is wrong, in words, by the facts of all ranks."""


def _sample(data: dict[str, Any] | None) -> Sample | None:
    if data is None:
        return None
    pairs = [[(norm, total) for norm, total in step] for step in data["gradients"]]
    values = [(norm, total) for norm, total in data["values"]]
    return Sample(data["count"], data["names"], values, pairs)


def listed(ranks: list[int]) -> str:
    """Ranks for a message: the first ones, by number."""
    shown = ", ".join(map(str, sorted(ranks)[:8])) + (", ..." if len(ranks) > 8 else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"
