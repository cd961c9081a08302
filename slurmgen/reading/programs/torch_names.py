"""One name for each of the things that torch and its relatives export from several places."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

DDP = "torch.nn.parallel.DistributedDataParallel"
DATA_PARALLEL = "torch.nn.DataParallel"
FSDP = "torch.distributed.fsdp.FullyShardedDataParallel"
DATA_LOADER = "torch.utils.data.DataLoader"
DISTRIBUTED_SAMPLER = "torch.utils.data.DistributedSampler"
INIT_PROCESS_GROUP = "torch.distributed.init_process_group"
SPAWN = "torch.multiprocessing.spawn"
LIGHTNING_TRAINER = "lightning.Trainer"
LIGHTNING_FABRIC = "lightning.Fabric"
LIGHTNING_CLI = "lightning.LightningCLI"

# Last component -> canonical name, for anything below `torch`.
_TORCH = {
    "DistributedDataParallel": DDP,
    "DataParallel": DATA_PARALLEL,
    "FullyShardedDataParallel": FSDP,
    "fully_shard": "torch.distributed.fsdp.fully_shard",
    "DataLoader": DATA_LOADER,
    "DistributedSampler": DISTRIBUTED_SAMPLER,
    "IterableDataset": "torch.utils.data.IterableDataset",
    "init_process_group": INIT_PROCESS_GROUP,
    "start_processes": SPAWN,
}
# Names of torch.distributed that `torch.distributed.distributed_c10d` has too.
_C10D = "torch.distributed.distributed_c10d."
_LIGHTNING = {
    "Trainer": LIGHTNING_TRAINER,
    "Fabric": LIGHTNING_FABRIC,
    "LightningCLI": LIGHTNING_CLI,
    "SLURMEnvironment": "lightning.SLURMEnvironment",
    "LightningModule": "lightning.LightningModule",
    "LightningDataModule": "lightning.LightningDataModule",
    "rank_zero_only": "lightning.rank_zero_only",
}
_LIGHTNING_ROOTS = frozenset(
    {"lightning", "pytorch_lightning", "lightning_fabric", "lightning_lite"}
)
# Star imports that are common enough: what they bring.
_STARS = {
    "torch.distributed": (
        "init_process_group",
        "get_rank",
        "get_world_size",
        "barrier",
        "all_reduce",
    ),
    "torch.utils.data": ("DataLoader", "DistributedSampler", "IterableDataset"),
    "torch.nn": ("DataParallel",),
    "torch.nn.parallel": ("DistributedDataParallel", "DataParallel"),
    "os": ("environ", "getenv", "system"),
}


def canonical(dotted: str, stars: Iterable[str] = ()) -> str:
    """The one name of what `dotted` imports; ``*.NAME``: a name that only `stars` may explain."""
    if dotted.startswith("*."):
        name = dotted[2:]
        module = next((star for star in stars if name in _STARS.get(star, ())), None)
        return name if module is None else canonical(f"{module}.{name}")
    root, _, rest = dotted.partition(".")
    last = dotted.rpartition(".")[2]
    if root == "torch":
        if dotted == "torch.multiprocessing.spawn.spawn":
            return SPAWN
        if dotted.startswith(_C10D):
            dotted = f"torch.distributed.{dotted.removeprefix(_C10D)}"
        return _TORCH.get(last, dotted) if rest else dotted
    if root in _LIGHTNING_ROOTS and rest:
        return _LIGHTNING.get(last, dotted)
    if root == "transformers" and rest:
        return f"transformers.{last}"
    if root == "accelerate" and rest in ("accelerator.Accelerator", "Accelerator"):
        return "accelerate.Accelerator"
    if root == "posix":
        return f"os.{rest}"
    return dotted
