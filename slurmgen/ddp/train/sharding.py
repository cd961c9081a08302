"""A model whose parameters are shared out over the ranks: FSDP2."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from slurmgen.ddp.train import shards


def shard(
    model: torch.nn.Module,
    classes: tuple[type[torch.nn.Module], ...],
    device: torch.device,
    **options: Any,
) -> torch.nn.Module:
    """Apply ``fully_shard`` to each module of `classes` and then to `model`, in place.

    Each is moved to `device` only when its turn comes, so that no more than one is whole there.
    All ranks take rank 0's parameters and buffers, as with DDP.
    """
    if "mesh" not in options:
        options["mesh"] = init_device_mesh(device.type, (dist.get_world_size(),))
    inner = [module for module in model.modules() if isinstance(module, classes)]
    # The innermost first: what is sharded already is none of those around it. The root is last.
    for module in [*(one for one in reversed(inner) if one is not model), model]:
        _share_out(module, device, options)
    return model


def _share_out(module: torch.nn.Module, device: torch.device, options: dict[str, Any]) -> None:
    module.to(device)
    for tensor in [*module.parameters(), *module.buffers()]:
        if not shards.is_sharded(tensor):
            dist.broadcast(tensor.detach(), src=0)
    fully_shard(module, **options)
