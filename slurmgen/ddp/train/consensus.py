"""How the ranks agree on the step at which they stop, without waiting for each other."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
import torch.distributed as dist

INTERVAL_S = 0.5
"""Between two questions, counted in steps, so that runs with short steps ask less often.

A question costs up to a millisecond of CPU time on busy cores; a signal comes a minute or more
before the end.
"""

_MOST_STEPS = 256


class Consensus:
    """Two wishes, to stop and to save, granted to all ranks at the same step.

    Each rank's wish goes into an asynchronous reduction; its result is read a step later, when it
    has long arrived. A step later, because ranks that acted on a result as soon as they had it
    would have to wait for the slowest. What a rank wishes for is granted as soon as any does.

    group: of the CPU (gloo), None for a single process.
    """

    def __init__(self, group: Any | None) -> None:
        self._group = group
        self._work: Any = None
        self._asked = torch.zeros(3, dtype=torch.float64)
        self._pause = 0
        self._since = time.perf_counter()
        self._steps = 0

    def tick(self, *, stop: bool, save: bool) -> tuple[bool, bool]:
        """After each step: what is granted, (stop, save), the same on every rank."""
        if self._group is None:
            return stop, save
        granted = self._read()
        self._steps += 1
        self._pause -= 1
        if self._pause < 0:
            # A wish that is granted in this very step isn't one any more.
            self._ask(stop, save and not granted[1])
        return granted

    def drain(self) -> None:
        """Leave no reduction on its way."""
        if self._group is not None:
            self._read()

    def _ask(self, stop: bool, save: bool) -> None:
        now = time.perf_counter()
        seconds = (now - self._since) / self._steps
        self._since, self._steps = now, 0
        self._asked = torch.tensor([stop, save, seconds], dtype=torch.float64)
        self._work = dist.all_reduce(
            self._asked, dist.ReduceOp.MAX, group=self._group, async_op=True
        )

    def _read(self) -> tuple[bool, bool]:
        if self._work is None:
            return False, False
        self._work.wait()
        self._work = None
        stop, save, seconds = self._asked.tolist()
        # From the slowest rank's step, so that all leave out as many.
        self._pause = min(math.floor(INTERVAL_S / max(seconds, 1e-9)), _MOST_STEPS)
        return bool(stop), bool(save)
