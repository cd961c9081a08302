"""How a run's checkpoints are written: one file by rank 0, or one folder by all ranks."""

from __future__ import annotations

import pickle
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from slurmgen.ddp.train.checkpoints.store import Checkpoint, Writer, remove
from slurmgen.ddp.train.peers import Peers

if TYPE_CHECKING:
    from collections.abc import Callable

    from slurmgen.ddp.train.checkpoints.folders import Staged
    from slurmgen.ddp.train.checkpoints.store import Store
    from slurmgen.ddp.train.items import Items

_PATIENCE = timedelta(days=7)
"""For ranks whose disk hangs: a writer that gave up on them could never meet them again."""


class Saver(Protocol):
    """Saves the items of a run. Every rank must call its methods.

    writer: this rank's; rank 0's knows what is complete.
    """

    writer: Writer

    def save(
        self,
        step: int,
        own: dict[str, Any],
        progress: Callable[[list[Any]], dict[str, Any]],
        *,
        wait: bool,
    ) -> bool:
        """Start writing a checkpoint of `step`, or with `wait` write it.

        own: what is this rank's alone, besides the items. progress: what rank 0 says for all of
        them, given what each rank has of its own. Returns False where the one before is still
        being written.
        """
        ...


def saver_for(items: Items, store: Store, peers: Peers) -> Saver:
    """The one that the items need."""
    return _ShardedSaver(items, store, peers) if items.sharded else _WholeSaver(items, store, peers)


class _WholeSaver:
    """Rank 0 collects what is each rank's own, and writes a file."""

    def __init__(self, items: Items, store: Store, peers: Peers) -> None:
        self.writer = Writer(store)
        self._items, self._peers = items, peers

    def save(
        self,
        step: int,
        own: dict[str, Any],
        progress: Callable[[list[Any]], dict[str, Any]],
        *,
        wait: bool,
    ) -> bool:
        try:
            ranks = self._peers.gather({**own, **self._items.capture_own({}, {})})
        except pickle.UnpicklingError as error:
            # An item has got something into it that no checkpoint may hold.
            self.writer.write(step, partial(_raise, error))
            return True
        if ranks is None:
            return True
        if wait:
            self.writer.wait()
        elif self.writer.busy():
            return False
        content = {**self._items.capture_common(), **progress(ranks)}
        if wait:
            self.writer.write(step, lambda: content)
        else:
            self.writer.start(step, lambda: content)
        return True


def _raise(error: Exception) -> object:
    raise error


class _ShardedSaver:
    """Each rank writes what it has, into one folder.

    The training's thread only copies to the CPU. The rest, with what the ranks have to tell each
    other for it, happens in the writers' threads, which have a group of their own: each rank's
    does the same in the same order, and nothing else uses it.
    """

    def __init__(self, items: Items, store: Store, peers: Peers) -> None:
        self.writer = Writer(store, self._put, speaks=peers.rank == 0)
        self._items, self._store, self._peers = items, store, peers
        self._writers = Peers(timeout=_PATIENCE)

    def save(
        self,
        step: int,
        own: dict[str, Any],
        progress: Callable[[list[Any]], dict[str, Any]],
        *,
        wait: bool,
    ) -> bool:
        from slurmgen.ddp.train.checkpoints import folders

        if wait:
            self.writer.wait()
        # Rank 0 is the last to know that all have written: where it is free, all are.
        elif self._peers.from_main(self.writer.busy()):
            return False
        self.writer.wait()
        pieces: dict[str, Any] = {}
        paths: dict[str, tuple[Any, ...]] = {}
        mine = {**own, **self._items.capture_own(pieces, paths)}
        staged = folders.Staged(
            plan=folders.plan(pieces, paths),
            tensors=self._items.capture_pieces(pieces),
            own=mine,
            common={**self._items.capture_common(), **progress([])}
            if self._peers.rank == 0
            else None,
        )
        if wait:
            self.writer.write(step, lambda: staged)
        else:
            self.writer.start(step, lambda: staged)
        return True

    def _put(self, step: int, staged: Staged) -> None:
        from slurmgen.ddp.train.checkpoints import folders

        # Rank 0's name for it.
        temporary = Path(self._writers.from_main(str(self._store.temporary(step))))
        try:
            digest = folders.write(temporary, staged, self._writers)
            if digest is not None:
                named = self._store.folder / f"step-{step:09}-{digest}"
                self._store.publish(temporary, Checkpoint(step, digest, named, sharded=True))
        finally:
            if self._writers.rank == 0:
                remove(temporary)
