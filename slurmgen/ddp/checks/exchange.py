"""How the ranks tell each other what they see: through the store they met at, never waiting."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch.distributed import PrefixStore

if TYPE_CHECKING:
    from torch.distributed import Store


class Exchange:
    """Notes of the ranks. Whoever reads one takes what is there."""

    def __init__(self, store: Store, rank: int, world_size: int) -> None:
        self._store = PrefixStore("checks", store)
        self.rank = rank
        self.world_size = world_size
        # A forked DataLoader worker has the same socket, and would speak in between.
        self._process = os.getpid()

    def post(self, name: str, text: str) -> None:
        """Leave `text` for the others."""
        if self._own():
            self._store.set(f"{name}/{self.rank}", text)

    def gather(self, name: str) -> list[str] | None:
        """What every rank has posted under `name`, None while one is missing."""
        keys = [f"{name}/{rank}" for rank in range(self.world_size)]
        if not self._own() or not self._store.check(keys):
            return None
        return [self._store.get(key).decode() for key in keys]

    def count(self, name: str) -> int:
        """How many ranks have called this with `name`, this one included; 0 in a child."""
        return int(self._store.add(name, 1)) if self._own() else 0

    def _own(self) -> bool:
        return os.getpid() == self._process
