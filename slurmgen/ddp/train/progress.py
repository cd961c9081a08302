"""How far a training loop is, said now and then: the same lines for a file and a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.ddp import log
from slurmgen.ddp.wording import duration, percent, rate

if TYPE_CHECKING:
    from slurmgen.ddp.measure.meter import Meter

FIRST_S = 10.0
_SINCE_START = ((3600.0, 300.0), (300.0, 60.0), (0.0, 30.0))


class _Mark:
    """Where the meter was."""

    def __init__(self, meter: Meter) -> None:
        self.now, self.steps = meter.now, meter.steps
        self.loop_s, self.wait_s = meter.loop_s, meter.wait_s


class Progress:
    """Speaks after FIRST_S, then each half minute, and less often the longer the loop runs.

    epochs: how many there are to be, None where the program hasn't said. The time is the meter's.
    """

    def __init__(self, meter: Meter) -> None:
        self.epochs: int | None = None
        self._meter = meter
        self._start: float | None = None
        self._next = 0.0
        self._epoch = _Mark(meter)
        self._last = _Mark(meter)

    def epoch_begins(self) -> None:
        """Before its first batch, once the meter has begun."""
        self._epoch = _Mark(self._meter)
        if self._start is None:
            self._start = self._meter.now
            self._next = self._start + FIRST_S
            self._last = self._epoch

    def step_done(self, step: int, epoch: int, batch: int, batches: int | None) -> None:
        """After each step. step, epoch, batch: done so far; batches: in the epoch, if known."""
        if self._meter.now < self._next or batch == batches:
            return
        place, left = f"batch {batch}", ""
        if batches:
            place += f" of {batches}, {percent(batch / batches)}"
            loop_s = self._meter.loop_s - self._last.loop_s
            left_s = (batches - batch) * loop_s / (self._meter.steps - self._last.steps)
            left = f", left about {duration(left_s)} in this epoch"
        self._say(f"{self._name(epoch)}, step {step} ({place}): {self._rates(self._last)}{left}")

    def epoch_done(self, epoch: int) -> None:
        """After its last step. Says nothing of an epoch shorter than the time between lines."""
        if self._start is None or self._meter.now - self._epoch.now < self._gap():
            return
        seconds = self._meter.now - self._epoch.now
        self._say(f"{self._name(epoch)} done in {duration(seconds)}: {self._rates(self._epoch)}")

    def _say(self, text: str) -> None:
        log.note(text)
        self._last = _Mark(self._meter)
        self._next = self._meter.now + self._gap()

    def _gap(self) -> float:
        elapsed = self._meter.now - (self._start or 0.0)
        return next(gap for since, gap in _SINCE_START if elapsed >= since)

    def _rates(self, since: _Mark) -> str:
        loop_s = max(self._meter.loop_s - since.loop_s, 1e-9)
        steps, wait_s = self._meter.steps - since.steps, self._meter.wait_s - since.wait_s
        return f"{rate(steps / loop_s)} steps/s, waiting for data {percent(wait_s / loop_s)}"

    def _name(self, epoch: int) -> str:
        return f"epoch {epoch + 1}" + ("" if self.epochs is None else f" of {self.epochs}")
