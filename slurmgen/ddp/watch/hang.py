"""The look-out for a rank that gets on no more: where every rank is, and who is to blame.

No torch here.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from slurmgen.ddp import log
from slurmgen.ddp.failure import EXIT_FAILED
from slurmgen.ddp.launch import preflight
from slurmgen.ddp.watch import failures
from slurmgen.ddp.watch.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slurmgen.ddp.launch.identity import Identity
    from slurmgen.ddp.watch.supervised import Progress

_DUMP_S = 3.0
_STACKS_S = 5.0
_QUIET_S = 0.3
_STACK = 16_000

Place = tuple[int, str, str, int]
"""rank, node, host, local rank"""


class HangWatch:
    """Watches the progress of one rank; on rank 0 also collects what all ranks are at.

    stacks: the pipe to which the rank writes its stacks when `ask` has been called.
    """

    def __init__(
        self,
        identity: Identity,
        env: Mapping[str, str],
        host: str,
        progress: Progress,
        stacks: int,
        ask: Callable[[], None],
    ) -> None:
        self.stacks: dict[int, str] = {}
        self._steps: dict[int, int] = {}
        self._own: Place = (identity.rank, identity.node, host, identity.local_rank)
        self._progress, self._ask = progress, ask
        self._hang_s = preflight.hang_after(env)
        self._count, self._moved = 0, time.monotonic()
        self._pipe = stacks
        os.set_blocking(stacks, False)
        self._asked = self._heard = 0.0
        self._text = b""
        self._first: Failure | None = None
        self._since = 0.0

    @property
    def busy(self) -> bool:
        """Whether stacks are being collected."""
        return bool(self._asked or self._since)

    def expect(self, hang_s: float) -> None:
        """From here on no progress for `hang_s` seconds is a hang; 0 for no bound."""
        self._hang_s = hang_s
        self._moved = time.monotonic()

    def forgive(self, seconds: float) -> None:
        """This process itself was stopped for so long, and the rank surely was, too."""
        self._moved += seconds

    def look(self, now: float) -> Failure | None:
        """The hang of this rank, the first time that it is one."""
        count = self._progress.count()
        if count != self._count:
            self._count, self._moved = count, now
        # Before the ranks have met, SLURMGEN_RDZV_TIMEOUT is the bound.
        idle = self._hang_s > 0 and count > 0 and now - self._moved > self._hang_s
        if not idle or self._first is not None:
            return None
        text = f"no progress for {self._hang_s:g} s"
        self._first = Failure(*self._own, "hang", EXIT_FAILED, text, steps=count)
        return self._first

    def begin(self, first: Failure) -> bool:
        """On rank 0: ask all where they are. False where that was done already."""
        if self._since:
            return False
        self._first, self._since = first, time.monotonic()
        return True

    def dump(self) -> None:
        """Ask the rank for its stacks."""
        if not self._asked:
            self._asked = self._heard = time.monotonic()
            self._text = b""
            self._ask()

    def collect(self, now: float) -> tuple[str, int] | None:
        """Its stacks, once they are complete, and how often it had got on."""
        if not self._asked:
            return None
        with suppress(BlockingIOError):
            data = os.read(self._pipe, 1 << 16)
            if data:
                self._text += data
                self._heard = now
                return None
        if now - self._asked < _DUMP_S and not (self._text and now - self._heard > _QUIET_S):
            return None
        self._asked = 0.0
        # The main thread is listed last.
        text, count = self._text.decode(errors="replace")[-_STACK:], self._progress.count()
        rank, node, *_ = self._own
        log.note(f"stacks of rank {rank} on {node} after {count} steps\n{text or '(none)'}")
        return text, count

    def hear(self, rank: int, stacks: str, steps: int) -> None:
        """On rank 0: where a rank is."""
        self.stacks[rank], self._steps[rank] = stacks, steps

    def judge(self, now: float, expected: int, place_of: Callable[[int], Place]) -> Failure | None:
        """Which rank the others wait for, once `expected` ranks have told where they are."""
        if not self._since or self._first is None:
            return None
        if len(self.stacks) < expected and now - self._since < _STACKS_S:
            return None
        first = self._first
        likely = failures.suspects(self._steps, self.stacks)
        if likely and first.rank not in likely:
            rank, node, host, local_rank = place_of(likely[0])
            first = replace(first, rank=rank, node=node, host=host, local_rank=local_rank)
        first.steps = self._steps.get(first.rank, first.steps)
        first.traceback = self.stacks.get(first.rank, "")
        if likely:
            others = f" (and rank(s) {', '.join(map(str, likely[1:20]))})" if likely[1:] else ""
            first.text += f"; the others wait for it{others}"
        return first
