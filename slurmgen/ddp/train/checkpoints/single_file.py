"""Files that are either complete or not there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from slurmgen.ddp import files, group
from slurmgen.ddp.train import shards
from slurmgen.ddp.train.checkpoints import digests, store


def save(obj: object, path: str | os.PathLike[str]) -> None:
    """Write `obj` with ``torch.save``, on rank 0 alone; every rank must call it.

    The file appears under its name only when it is complete and on disk, so a job that is killed
    meanwhile leaves the previous one. Missing folders are made. When it returns, on any rank, the
    file is there. Where writing fails, rank 0 raises the OSError and the others RuntimeError:
    no rank is left waiting. Raises TypeError for what is sharded over the ranks, of which rank 0
    has but a part.
    """
    if shards.any_sharded(obj):
        raise TypeError(
            "some tensors are sharded over the ranks: let ddp.resume save them, or gather them"
            " first (get_model_state_dict of torch.distributed.checkpoint.state_dict)"
        )
    failure: Exception | None = None
    if group.is_main():
        try:
            _write(obj, Path(path))
        except Exception as error:
            failure = error
    done = _from_main(failure is None)
    if failure is not None:
        raise failure
    if not done:
        raise RuntimeError(f"rank 0 couldn't write {os.fspath(path)}; it says why")


def load(path: str | os.PathLike[str], default: Any = None, *, weights_only: bool = True) -> Any:
    """What `save` wrote, with its tensors on the CPU, or `default` where there is no such file.

    Every rank must call it, and each reads the file; whether it exists is rank 0's word, so that
    ranks can't disagree about where to go on from. weights_only: as in ``torch.load``; pass False
    only for files you trust, since they can run code.

    Where `path` is a folder that `resume` writes to, the last checkpoint in it that is whole;
    sharded tensors are put together, where each rank had its own, rank 0's counts.
    """
    if not _from_main(Path(path).exists()):
        return default
    if Path(path).is_dir():
        found = store.Store(path, keep=1).latest()
        return default if found is None else found
    return torch.load(path, map_location="cpu", weights_only=weights_only)


def _write(obj: object, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{files.unguessable()}.tmp")
    try:
        with files.create(temporary) as file:
            digests.dump(obj, file)
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    # The new name is on disk only once its folder is.
    digests.sync_folder(path.parent)


def _from_main(value: bool) -> bool:
    """Rank 0's `value` on every rank."""
    if not group.several_ranks():
        return value
    flag = torch.tensor([int(value)], device=group.device())
    dist.broadcast(flag, src=0)
    return bool(flag.item())
