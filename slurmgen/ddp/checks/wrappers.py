"""What holds the parameters of the ranks together."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parallel import DistributedDataParallel

from slurmgen.ddp.checks import fingerprint
from slurmgen.ddp.checks.facts import COMPARED, Sample, Stepped
from slurmgen.ddp.checks.patches import around

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slurmgen.ddp.checks.facts import Kind

_SAMPLED = 12


class Wrappers:
    """The DistributedDataParallels that the program makes."""

    def __init__(self, world_size: int) -> None:
        self._world_size = world_size
        self._made: list[weakref.ref[Any]] = []

    def watch(self) -> Callable[[], None]:
        """From here on; returns what ends it."""

        def make(original: Callable[..., None]) -> Callable[..., None]:
            def init(parallel: Any, *args: Any, **options: Any) -> None:
                original(parallel, *args, **options)
                self._made.append(weakref.ref(parallel))

            return init

        return around(DistributedDataParallel, "__init__", make)

    def sort(self, parameters: Iterable[torch.Tensor]) -> Sorted:
        """Which of `parameters` are in which."""
        inside: dict[int, tuple[str, Any]] = {}
        left_out: set[int] = set()
        for number, parallel in enumerate(reference() for reference in self._made):
            if parallel is None:
                continue
            for name, parameter in parallel.module.named_parameters():
                if name in parallel.parameters_to_ignore:
                    left_out.add(id(parameter))
                else:
                    inside[id(parameter)] = (f"{number}.{name}", parallel)
        wrapped: list[tuple[str, torch.Tensor]] = []
        bare: list[tuple[str, torch.Tensor]] = []
        kind: Kind = "bare"
        for parameter in parameters:
            if id(parameter) in inside:
                name, parallel = inside[id(parameter)]
                whole = parallel.process_group.size() == self._world_size
                # A hook may reduce over some of the ranks, or only now and then.
                if whole and not parallel._comm_hooks:
                    wrapped.append((name, parameter))
                kind = _join(kind, "ddp" if whole else "other")
            elif id(parameter) in left_out:
                continue
            elif (sharded := _sharded(parameter, self._world_size)) is not None:
                kind = _join(kind, sharded)
            elif isinstance(parameter, torch.nn.Parameter):
                bare.append((str(len(bare)), parameter))
            else:
                # The flat copies of DeepSpeed and Megatron, a shard for each rank.
                kind = "other"
        return Sorted(kind, wrapped, bare)


class Sorted:
    """An optimizer's parameters by what holds them, and what was seen of them."""

    def __init__(
        self,
        kind: Kind,
        wrapped: list[tuple[str, torch.Tensor]],
        bare: list[tuple[str, torch.Tensor]],
    ) -> None:
        self._chosen = [_choose(wrapped), _choose(bare)]
        samples = [
            _first(len(all_of), chosen)
            for all_of, chosen in zip((wrapped, bare), self._chosen, strict=True)
        ]
        self.seen = Stepped(kind, *samples)

    def look(self) -> None:
        """Note the gradients of this step, if it is one of the first."""
        for sample, chosen in zip((self.seen.wrapped, self.seen.bare), self._chosen, strict=True):
            if sample is not None and len(sample.gradients) < COMPARED:
                gradients = [parameter.grad for _, parameter in chosen]
                there = [one for one in gradients if one is not None and _plain(one)]
                numbers = iter(fingerprint.norms(there))
                sample.gradients.append(
                    [
                        next(numbers) if one is not None and _plain(one) else (0.0, 0.0)
                        for one in gradients
                    ]
                )


def _join(kind: Kind, other: Kind) -> Kind:
    return other if kind in {"bare", other} else "other"


def _choose(named: list[tuple[str, torch.Tensor]]) -> list[tuple[str, torch.Tensor]]:
    usable = [(name, one) for name, one in named if one.requires_grad and _plain(one)]
    # One transfer from one device.
    usable = [(name, one) for name, one in usable if one.device == usable[0][1].device]
    count = min(len(usable), _SAMPLED)
    return [usable[number * len(usable) // count] for number in range(count)]


def _first(count: int, chosen: list[tuple[str, torch.Tensor]]) -> Sample | None:
    if not chosen:
        return None
    names = fingerprint.digest([(name, tuple(one.shape)) for name, one in chosen])
    return Sample(count, names, fingerprint.norms([one for _, one in chosen]))


def _plain(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_meta and tensor.numel() > 0


def _sharded(parameter: Any, world_size: int) -> Kind | None:
    if hasattr(parameter, "placements"):
        # fully_shard makes a class for each that it is called with; without it, a DTensor is of
        # tensor parallelism, where ranks share their batches.
        module = sys.modules.get("torch.distributed.fsdp")
        fully = getattr(module, "FSDPModule", None)
        mesh = parameter.device_mesh
        if fully is not None and fully.__subclasses__() and mesh.size() == world_size:
            return "fsdp" if mesh.ndim == 1 else "other"
        return "other"
    flat = type(parameter).__name__ == "FlatParameter"
    return "fsdp" if flat or getattr(parameter, "_fsdp_flattened", False) else None
