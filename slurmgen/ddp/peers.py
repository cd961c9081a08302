"""The ranks of a run and what they tell each other, on the CPU and beside the training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from slurmgen.ddp import group

if TYPE_CHECKING:
    from datetime import timedelta


class Peers:
    """All ranks, over a group of their own: the training's collectives go on meanwhile.

    Every rank must make it, and call the same methods in the same order, all from one thread at a
    time. group: of gloo, None where there is one rank. timeout: of each call, gloo's for None.
    """

    def __init__(self, timeout: timedelta | None = None) -> None:
        self.rank, self.count = group.rank(), group.world_size()
        self.group = (
            dist.new_group(backend="gloo", timeout=timeout) if group.several_ranks() else None
        )

    def gather(self, value: Any) -> list[Any] | None:
        """Each rank's `value` on rank 0, None on the others."""
        if self.group is None:
            return [value]
        values: list[Any] | None = [None] * self.count if self.rank == 0 else None
        dist.gather_object(value, values, dst=0, group=self.group)
        return values

    def gather_all(self, value: Any) -> list[Any]:
        """Each rank's `value` on every rank."""
        if self.group is None:
            return [value]
        values: list[Any] = [None] * self.count
        dist.all_gather_object(values, value, group=self.group)
        return values

    def from_main(self, value: Any) -> Any:
        """Rank 0's `value` on every rank."""
        if self.group is None:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0, group=self.group)
        return values[0]
