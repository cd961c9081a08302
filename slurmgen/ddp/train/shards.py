"""What a rank holds of tensors that are sharded over the ranks (DTensor: FSDP2, tensor parallel).

A state with such tensors is taken apart: the tensors go under a key each, for
torch.distributed.checkpoint, and a plain mark stays where each was. Put together again, each
mark's place is taken by a tensor that the live item says how to share out, so another number of
ranks, or none that shard at all, can go on.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Path = tuple[Any, ...]
    """Keys and indices that lead from an item's state to a tensor in it."""

_MARK = "slurmgen.shard"


def is_sharded(value: Any) -> bool:
    """Whether `value` is a DTensor."""
    # By what it has: an import of torch.distributed.tensor costs those who have none of them.
    return isinstance(value, torch.Tensor) and hasattr(value, "placements")


def any_sharded(values: Any) -> bool:
    """Whether a DTensor is somewhere in `values`."""
    return any(is_sharded(value) for _, value in _leaves(values, ()))


def holds_shards(item: Any) -> bool:
    """Whether `item` (a module, an optimizer, whatever has a state) is sharded over the ranks."""
    if isinstance(item, torch.nn.Module):
        return any_sharded([*item.parameters(), *item.buffers()])
    if isinstance(item, torch.optim.Optimizer):
        # Its state is empty before the first step, but it will be sharded as they are.
        return any_sharded(parameters_of(item))
    return any_sharded(values_of(item))


def values_of(item: Any) -> Any:
    """The state of `item`, not copied."""
    return item if isinstance(item, torch.Tensor | dict) else item.state_dict()


def parameters_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """In the order by which ``state_dict()`` numbers them."""
    unique = {id(one): one for options in optimizer.param_groups for one in options["params"]}
    return list(unique.values())


def split(name: str, values: Any, shards: dict[str, Any], paths: dict[str, Path]) -> Any:
    """`values` with a mark in place of each DTensor, which goes into `shards` under the mark's key.

    paths: by the same keys, where each was. Nothing is copied.
    """

    def take(path: Path, value: Any) -> Any:
        if not is_sharded(value):
            return value
        whole = (name, *map(str, path))
        key = ".".join(whole)
        if key in shards:
            raise ValueError(f"two sharded tensors are called {key}")
        shards[key], paths[key] = value.detach(), whole
        return {
            _MARK: key,
            "shape": list(value.shape),
            "dtype": value.dtype,
            "dims": [_dim(placement) for placement in value.placements],
        }

    return _replaced(values, (), take)


def join(
    item: Any, saved: Any, targets: dict[str, torch.Tensor], device: torch.device
) -> tuple[Any, bool]:
    """`saved` as `item` can load it, and whether any of its tensors is or was sharded.

    Each mark gives way to a tensor, still to be filled, which goes into `targets` under the
    mark's key: `item`'s own where it has one there, otherwise one shared out in the same way.
    A whole tensor where `item` has a sharded one is shared out. Raises RuntimeError where `item`
    has no place for a sharded tensor.
    """
    place = _optimizer_place(item) if isinstance(item, torch.optim.Optimizer) else _place(item)
    touched = False

    def put(path: Path, value: Any) -> Any:
        nonlocal touched
        if is_mark(value):
            touched = True
            targets[value[_MARK]] = target = place(path, value)
            return target
        like: Any = _like(item, path) if isinstance(value, torch.Tensor) else None
        if is_sharded(like) and like.shape == value.shape:
            from torch.distributed.tensor import distribute_tensor

            touched = True
            # Every rank has it whole: nothing to send.
            return distribute_tensor(
                value.to(device), like.device_mesh, like.placements, src_data_rank=None
            )
        return value

    return _replaced(saved, (), put), touched


def is_mark(value: Any) -> bool:
    """Whether `value` stands for a tensor that `split` took out."""
    return isinstance(value, dict) and _MARK in value


def whole(saved: Any, targets: dict[str, torch.Tensor]) -> Any:
    """`saved` with a whole tensor on the CPU, still to be filled, in place of each mark."""

    def put(_: Path, value: Any) -> Any:
        if not is_mark(value):
            return value
        targets[value[_MARK]] = torch.empty(value["shape"], dtype=value["dtype"])
        return targets[value[_MARK]]

    return _replaced(saved, (), put)


def _place(item: Any) -> Callable[[Path, Any], torch.Tensor]:
    values = values_of(item)

    def place(path: Path, mark: Any) -> torch.Tensor:
        found = _at(values, path)
        if not isinstance(found, torch.Tensor) or list(found.shape) != mark["shape"]:
            has = f"has {list(found.shape)}" if isinstance(found, torch.Tensor) else "has none"
            raise RuntimeError(
                f"the checkpoint has a tensor {mark[_MARK]} of shape {mark['shape']}, where the"
                f" program {has}"
            )
        return found.detach()

    return place


def _optimizer_place(optimizer: torch.optim.Optimizer) -> Callable[[Path, Any], torch.Tensor]:
    def place(path: Path, mark: Any) -> torch.Tensor:
        like = _like(optimizer, path)
        if like is None:
            raise RuntimeError(
                f"the checkpoint has {mark[_MARK]}, but no such parameter is trained"
            )
        if list(like.shape) == mark["shape"]:
            return torch.zeros_like(like, dtype=mark["dtype"], requires_grad=False)
        if not is_sharded(like):
            return torch.zeros(mark["shape"], dtype=mark["dtype"], device=like.device)
        from torch.distributed.tensor import Replicate, Shard, zeros

        dims: list[Any] = mark["dims"]
        if len(dims) != like.device_mesh.ndim or "other" in dims:
            raise RuntimeError(f"{mark[_MARK]} can't be shared out over these ranks")
        return zeros(
            mark["shape"],
            dtype=mark["dtype"],
            device_mesh=like.device_mesh,
            placements=[Replicate() if dim is None else Shard(dim) for dim in dims],
        )

    return place


def _like(item: Any, path: Path) -> Any:
    """The tensor of `item` by which one at `path` is shared out, None without any."""
    if isinstance(item, torch.optim.Optimizer):
        parameters = parameters_of(item)
        if len(path) > 2 and path[0] == "state" and isinstance(path[1], int):
            return parameters[path[1]] if path[1] < len(parameters) else None
        return None
    return _at(values_of(item), path)


def _at(values: Any, path: Path) -> Any:
    for key in path:
        try:
            values = values[key]
        except (KeyError, IndexError, TypeError):
            return None
    return values


def _dim(placement: Any) -> Any:
    from torch.distributed.tensor import Replicate, Shard

    if type(placement) is Shard:
        return placement.dim
    return None if type(placement) is Replicate else "other"


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))
    else:
        yield path, value


def _replaced(value: Any, path: Path, change: Callable[[Path, Any], Any]) -> Any:
    """`value` with what `change` makes of each mark and of all that is no container."""
    if isinstance(value, dict) and not is_mark(value):
        # Of the same kind: a module's has attributes.
        copied: Any = {} if type(value) is dict else copy.copy(value)
        for key, item in value.items():
            copied[key] = _replaced(item, (*path, key), change)
        return copied
    if type(value) in (list, tuple):
        return type(value)(
            _replaced(item, (*path, number), change) for number, item in enumerate(value)
        )
    return change(path, value)
