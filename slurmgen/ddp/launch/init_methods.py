"""What a program's own ``init_process_group()`` meets through: env:// and tcp://.

For a group of all ranks both lead to the store through which the ranks have met already, whatever
address and port the program names: a port of its own may be taken, localhost is another machine
on each node, and where TORCHELASTIC_USE_AGENT_STORE is set torch opens no store at any other port.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from torch.distributed import PrefixStore, Store, TCPStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Meeting = tuple[Store, int, int]
    Handler = Callable[..., Iterator[Meeting]]

_AGENT = "TORCHELASTIC_USE_AGENT_STORE"


def redirect(host: str, port: int, world_size: int, prefix: str) -> None:
    """Let groups of `world_size` ranks meet through the store at host:port, below `prefix`.

    Each group has keys of its own. With a store that outlives the group, torch 2.13 uses the same
    keys for the second group as for the first; a rank that is there a second before the others
    then reads their dead addresses and fails with "Connection refused".

    A group of fewer ranks meets where the program says. Does nothing the second time.
    """
    # The package's attribute of that name is the function, not the module.
    handlers = getattr(import_module("torch.distributed.rendezvous"), "_rendezvous_handlers", {})
    for scheme in ("env", "tcp"):
        original = handlers.get(scheme)
        if original is not None and not getattr(original, "redirected", False):
            handler = _redirected(original, host, port, world_size, f"{prefix}/{scheme}")
            handler.redirected = True  # type: ignore[attr-defined]
            handlers[scheme] = handler


def _redirected(original: Handler, host: str, port: int, world_size: int, prefix: str) -> Handler:
    calls = 0

    def handler(
        url: str, timeout: timedelta = timedelta(minutes=30), **options: object
    ) -> Iterator[Meeting]:
        nonlocal calls
        asked = dict(parse_qsl(urlsplit(url).query))
        rank = asked.get("rank", os.environ.get("RANK", ""))
        size = asked.get("world_size", os.environ.get("WORLD_SIZE", ""))
        if not rank.isdecimal() or size != str(world_size):
            with _own_store():
                yield from original(url, timeout=timeout, **options)
            return
        calls += 1
        # Of the group's own, since torch sets the timeout of the store that it is given.
        base = TCPStore(host, port, world_size, is_master=False, timeout=timeout)
        store = PrefixStore(f"{prefix}/{calls}", base)
        if store.add(f"arrived/{rank}", 1) > 1:
            raise RuntimeError(
                f"two ranks call init_process_group(rank={rank}), so another one is missing and"
                " all would wait for it: leave rank= and world_size= to torch, or pass ddp.rank()"
            )
        yield store, int(rank), world_size

    return handler


@contextmanager
def _own_store() -> Iterator[None]:
    """Let torch open a store on the rank that it takes for 0."""
    agent = os.environ.pop(_AGENT, None)
    try:
        yield
    finally:
        if agent is not None:
            os.environ[_AGENT] = agent
