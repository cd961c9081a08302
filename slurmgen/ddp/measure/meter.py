"""Where the time of a training loop goes: waiting for data, stepping, waiting for other ranks."""

from __future__ import annotations

import math
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LOOK_S = 5.0
"""Between two looks at DDP's own log, some 20 us each."""

_PER_OCTAVE = 48


class Spread:
    """The median of any number of durations, to 1 %, in bounded memory."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.count = 0

    def add(self, seconds: float) -> None:
        """One more."""
        self.count += 1
        self._counts[math.floor(math.log2(max(seconds, 1e-9)) * _PER_OCTAVE)] += 1

    def median(self) -> float | None:
        """In seconds, None before the first."""
        left = (self.count + 1) // 2
        for bucket in sorted(self._counts):
            left -= self._counts[bucket]
            if left <= 0:
                return float(2 ** ((bucket + 0.5) / _PER_OCTAVE))
        return None


class Meter:
    """The times of one rank's loop.

    `begin` before the loop, then for each batch `waited` once it is there and `stepped` once the
    loop's body is done with it; `begin` again after what is neither, such as saving. All in
    seconds: wait_s and step_s are sums over `steps` batches.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.now = clock()
        """When it was last called."""
        self.steps = 0
        self.wait_s = 0.0
        self.step_s = 0.0
        self._wait = 0.0
        self._spread = Spread()
        self._peers = Spread()
        self._last_peers: float | None = None
        self._next_look = self.now

    def begin(self) -> None:
        """Leave out the time since the last call."""
        self.now = self._clock()

    def waited(self) -> None:
        """A batch is there."""
        now = self._clock()
        self._wait = now - self.now
        self.wait_s += self._wait
        self.now = now

    def stepped(self, parallels: Iterable[Any] = ()) -> None:
        """parallels: the models of the loop, as DDP wrapped them."""
        now = self._clock()
        seconds = now - self.now
        self.steps += 1
        self.step_s += seconds
        self._spread.add(self._wait + seconds)
        self.now = now
        if now >= self._next_look:
            self._next_look = now + LOOK_S
            peers = peer_wait(parallels)
            # DDP times few steps: the same number again is the same step.
            if peers is not None and peers != self._last_peers:
                self._last_peers = peers
                self._peers.add(peers)

    @property
    def loop_s(self) -> float:
        """wait_s + step_s."""
        return self.wait_s + self.step_s

    def step_median(self) -> float | None:
        """The median from one batch to the next, waiting for data included, in seconds."""
        return self._spread.median()

    def peer_wait_median(self) -> float | None:
        """The median of how long a step waits for other ranks, in seconds.

        None where fewer than three steps were timed, which may all have been odd ones.
        """
        return self._peers.median() if self._peers.count >= 3 else None

    def data_wait_share(self) -> float | None:
        """The part of the loop's time that it waited for data, None where there was no loop."""
        return self.wait_s / self.loop_s if self.steps and self.loop_s > 0 else None


def peer_wait(parallels: Iterable[Any]) -> float | None:
    """How long DDP last waited for gradients with this rank's own done, in seconds.

    All ranks' steps take the same time, since each waits for the slowest; but that one hardly
    waits. From DDP's own log, which times the first ten steps and then each hundredth. None
    where there is no DDP, or none that logs.
    """
    waits: list[float] = []
    for parallel in parallels:
        # torch's own, but not promised.
        with suppress(Exception):
            data = parallel._get_ddp_logging_data()
            all_ns, hidden_ns = (
                data[f"backward_{part}_time"] for part in ("comm", "compute_comm_overlap")
            )
            if all_ns > 0:
                waits.append((all_ns - hidden_ns) / 1e9)
    return sum(waits) if waits else None
