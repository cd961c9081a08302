"""Finds the last checkpoint that every rank can read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from slurmgen.ddp import log
from slurmgen.ddp.failure import LaunchError
from slurmgen.ddp.train.checkpoints.digests import DamagedError, UntrustedError
from slurmgen.ddp.train.checkpoints.store import Checkpoint
from slurmgen.ddp.train.items import Saved

if TYPE_CHECKING:
    from pathlib import Path

    from slurmgen.ddp.train.checkpoints.store import Store
    from slurmgen.ddp.train.peers import Peers

OWN_KEY = "slurmgen"
"""Under which a checkpoint has what is the run's and not an item's."""


def read(store: Store, peers: Peers) -> Saved | None:
    """The last checkpoint that every rank can read, None where there is none at all.

    A collective. A damaged one is set aside, and rank 0 says so. Raises LaunchError where there
    are some and none can be read.
    """
    found: list[Checkpoint] = []
    problem = ""
    if peers.rank == 0:
        try:
            found = store.found()
        except OSError as error:
            problem = str(error)
    listed = [(one.step, one.digest, one.path.name, one.sharded) for one in found]
    listed, problem = peers.from_main((listed, problem))
    found = [
        Checkpoint(step, digest, store.folder / name, sharded)
        for step, digest, name, sharded in listed
    ]
    if problem:
        raise LaunchError(
            f"the checkpoints can't be listed: {problem}",
            why="the training would start again from nothing beside what it has already done",
            fix="make the folder readable, or name another one",
        )
    for one in found:
        saved, trouble, damaged = None, "", False
        try:
            if one.sharded:
                _verify_share(one, peers)
            else:
                saved = _of_file(store.read(one))
        except (DamagedError, OSError) as error:
            trouble = str(error)
            damaged = isinstance(error, DamagedError) and not isinstance(error, UntrustedError)
        troubles = peers.gather_all((trouble, damaged))
        if not any(text for text, _ in troubles):
            return saved or _of_folder(one.path)
        rank, reason = next((n, text) for n, (text, _) in enumerate(troubles) if text)
        problem = f"{one.path.name}: {reason} (rank {rank})"
        if peers.rank == 0:
            # Of a folder each rank has checked a part; a file each has read whole.
            if any(spoilt for _, spoilt in troubles[: None if one.sharded else 1]):
                store.set_aside(one)
            log.warn(f"skips {problem}; the one before is used")
    if found:
        raise LaunchError(
            f"none of the {len(found)} checkpoint(s) in {store.folder} can be read"
            f" by all ranks: {problem}",
            why="the training would start again from nothing beside what it has already done",
            fix="put the folder on a file system that all nodes share; to start again on"
            " purpose, name another folder",
        )
    return None


def _verify_share(checkpoint: Checkpoint, peers: Peers) -> None:
    # Paid only by those who shard.
    from slurmgen.ddp.train.checkpoints import folders

    folders.verify(checkpoint.path, checkpoint.digest, share=peers.rank, of=peers.count)


def _of_file(content: Any) -> Saved:
    ranks = content[OWN_KEY]["ranks"]
    return Saved(content, ranks.__getitem__, len(ranks), None)


def _of_folder(folder: Path) -> Saved:
    from slurmgen.ddp.train.checkpoints import folders

    common = folders.common(folder)
    return Saved(common, partial(folders.own, folder), common[OWN_KEY]["world_size"], folder)
