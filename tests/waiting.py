"""How long tests wait: until something has happened, which on a busy machine takes long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Only what never comes takes this long. A test that passes has never waited for it.
PATIENCE_S = 600


def wait_until(holds: Callable[[], object], said: Callable[[], object] = str) -> None:
    """Return once `holds()`; fail after PATIENCE_S, with what `said()` tells of it."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"waited in vain: {said()}"
        time.sleep(0.02)
