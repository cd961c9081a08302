"""What a run saves, by name: who saves which of it, and how it is put back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from slurmgen.ddp import group, log
from slurmgen.ddp.failure import LaunchError
from slurmgen.ddp.train import shards, state
from slurmgen.ddp.train.buckets import BucketOrder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from slurmgen.ddp.train.peers import Peers


class Saved(NamedTuple):
    """The content of a checkpoint.

    common: rank 0's word for all. own: what the rank of that number had of its own. ranks: how
    many there were. folder: where the sharded tensors are, None where there aren't any.
    """

    common: dict[str, Any]
    own: Callable[[int], dict[str, Any]]
    ranks: int
    folder: Path | None


class Items:
    """The objects that a program gives to `resume`.

    Modules, optimizers, schedulers and scalers are rank 0's, as DDP keeps them the same on all.
    What is sharded over the ranks, and everything else, is each rank's own. sharded: whether
    anything is sharded. parallels: the models by name, as DDP wrapped them. Raises TypeError for
    what can't be saved.
    """

    def __init__(self, items: dict[str, Any], device: torch.device) -> None:
        for name, item in items.items():
            state.check(name, item)
            state.check_values(name, item)
        self._items = items
        self._device = device
        pieces = {name for name, item in items.items() if shards.holds_shards(item)}
        self.sharded = bool(pieces)
        self._shared = {
            name for name, item in items.items() if state.is_shared(item) and name not in pieces
        }
        self.parallels = self._find_parallels()
        self._orders = {name: BucketOrder(parallel) for name, parallel in self.parallels.items()}
        self._pools: dict[str, state.Pool] = {}

    # --- saving -----------------------------------------------------------------------

    def capture_common(self) -> dict[str, Any]:
        """What rank 0 saves for all."""
        return {
            name: state.capture(item, self._pools.setdefault(name, {}))
            for name, item in self._items.items()
            if name in self._shared
        }

    def capture_own(
        self, pieces: dict[str, Any], paths: dict[str, tuple[Any, ...]]
    ) -> dict[str, Any]:
        """What each rank saves of its own; sharded tensors, not copied, go into `pieces`.

        paths: by the same keys, where each belongs.
        """
        return {
            "items": {
                name: state.snapshot(
                    shards.split(name, shards.values_of(state.unwrap(item)), pieces, paths)
                )
                for name, item in self._items.items()
                if name not in self._shared
            },
            "buffers": {
                name: state.snapshot(dict(parallel.module.named_buffers()))
                for name, parallel in self.parallels.items()
                if not parallel.broadcast_buffers
            },
        }

    def capture_pieces(self, pieces: dict[str, Any]) -> dict[str, torch.Tensor]:
        """This rank's part of each of the sharded tensors `pieces`, on the CPU.

        In memory that the next call uses again.
        """
        local = {key: piece.to_local() for key, piece in pieces.items()}
        captured: dict[str, torch.Tensor] = state.capture(local, self._pools.setdefault("", {}))
        return captured

    # --- the order of DDP's buckets ---------------------------------------------------

    def orders(self) -> dict[str, list[str]]:
        """By name, the order in which DDP reduces the gradients."""
        return {name: order.names for name, order in self._orders.items()}

    def record_orders(self) -> None:
        """Note them in the next backward."""
        for order in self._orders.values():
            order.record()

    def orders_recorded(self) -> None:
        """After a step."""
        for order in self._orders.values():
            order.recorded()

    def rehearse(self, orders: dict[str, list[str]]) -> list[str]:
        """Let DDP reduce in these orders again, before anything is restored; returns warnings."""
        notes = []
        for name, order in self._orders.items():
            names = orders.get(name, [])
            # Both are the same on every rank, as the passes have to be.
            if not names:
                order.record()
            elif not order.rehearse(names):
                notes.append(
                    f"DDP's buckets for {name} can't be sorted as they were: the first step may"
                    " differ in the last bits"
                )
        return notes

    # --- loading ----------------------------------------------------------------------

    def restore(self, saved: Saved, peers: Peers, where: object) -> list[str]:
        """Put everything back; a collective over `peers`. Returns warnings.

        Raises LaunchError where this number of ranks can't go on from what another one had;
        `where` is the folder, for its text.
        """
        same_ranks = saved.ranks == peers.count
        own = saved.own(peers.rank if same_ranks else 0)
        differs = set() if same_ranks else self._differs(saved, own["items"], peers)
        notes = []
        targets: dict[str, torch.Tensor] = {}
        ready: list[tuple[Any, Any, bool]] = []
        for name, item in self._items.items():
            if name in saved.common:
                value = saved.common[name]
            elif name in own["items"]:
                value = own["items"][name]
                if (name, True) in differs:
                    raise LaunchError(
                        f"{saved.ranks} rank(s) wrote the checkpoint in {where} and"
                        f" {peers.count} are to go on, but {name} isn't the same on all of them",
                        why="there is no right way to share it out anew",
                        fix=f"go on with {saved.ranks} rank(s), or save what doesn't depend on"
                        " their number",
                    )
                if (name, False) in differs:
                    notes.append(f"the buffers of {name} are those of rank 0")
            else:
                notes.append(f"the checkpoint has no {name}, which starts anew")
                continue
            value, joined = shards.join(state.unwrap(item), value, targets, self._device)
            ready.append((item, value, joined))
        if saved.folder is not None:
            from slurmgen.ddp.train.checkpoints import folders

            folders.fill(saved.folder, targets)
        for item, value, joined in ready:
            state.restore(item, value, give=joined)
        notes += self._restore_buffers(own["buffers"], same_ranks=same_ranks)
        return notes

    def _restore_buffers(self, saved: dict[str, Any], *, same_ranks: bool) -> list[str]:
        notes = []
        for name, parallel in self.parallels.items():
            buffers = saved.get(name, {})
            if buffers and not same_ranks:
                notes.append(f"the buffers of {name} are those of rank 0")
            for key, buffer in parallel.module.named_buffers():
                if key in buffers:
                    buffer.copy_(buffers[key])
        return notes

    def _differs(self, saved: Saved, first: dict[str, Any], peers: Peers) -> set[tuple[str, bool]]:
        """What wasn't the same on all ranks: names, and whether in more than a module's buffers."""
        found = set()
        # Shared out, as there may be many to read.
        for rank in range(1 + peers.rank, saved.ranks, peers.count):
            other = saved.own(rank)["items"]
            for name, item in self._items.items():
                if name not in first:
                    continue
                one, two = first[name], other.get(name)
                if state.same(one, two):
                    continue
                buffers: set[str] = set()
                if isinstance(item, torch.nn.Module):
                    buffers = {key for key, _ in state.unwrap(item).named_buffers()}
                if buffers and isinstance(two, dict):
                    one, two = (
                        {key: value for key, value in values.items() if key not in buffers}
                        for values in (one, two)
                    )
                found.add((name, not state.same(one, two)))
        return set().union(*peers.gather_all(list(found)))

    def _find_parallels(self) -> dict[str, Any]:
        found = {}
        trained = {
            id(parameter)
            for item in self._items.values()
            if isinstance(item, torch.optim.Optimizer)
            for parameter in shards.parameters_of(item)
        }
        for name, item in self._items.items():
            if not isinstance(item, torch.nn.Module) or name not in self._shared:
                continue
            parallel = state.parallel_in(item) or group.wrapper_of(state.unwrap(item))
            if parallel is not None:
                found[name] = parallel
            elif group.several_ranks() and trained & {id(one) for one in item.parameters()}:
                group.leave_out("gradients")
                if group.is_main():
                    log.warn(
                        f"{name} isn't wrapped in DistributedDataParallel, so"
                        " each rank trains one of its own and rank 0's is saved: pass what"
                        " ddp.wrap returns"
                    )
        return found
