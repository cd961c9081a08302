"""How well a run uses its GPUs and CPUs: measured on every rank, told by rank 0 at the end.

A thread reads the driver's counters every few seconds; the training loop's times come from `meter`.
Nothing here may stop or change a training: what goes wrong is said once, and left out.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from slurmgen.ddp import files, log
from slurmgen.ddp.measure.cpu_counters import cpu_seconds, cpus
from slurmgen.ddp.measure.gpu_counters import NoCounterError, Reading, open_counter
from slurmgen.ddp.measure.meter import Meter
from slurmgen.ddp.measure.usage_summary import RankUsage, path_of_file, summarise, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slurmgen.ddp.launch.devices import Seat

VARIABLE = "SLURMGEN_USAGE"
"""The file to append to, or "off": neither measured nor told."""

SHORTEST_S = 60.0
"""A run that took less isn't told about: most of it was start-up."""

_INTERVAL_S = 5.0
_GATHER_S = 2.0


class Sampler:
    """Reads a counter every few seconds, in a thread of its own.

    open_counter: as in gpu_counters, with its arguments bound; called in the thread, since a
    driver may take seconds to start. talks: whether to say that the GPU can't be read.
    """

    def __init__(
        self,
        open_counter: Callable[[], Callable[[], Reading]],
        *,
        talks: bool,
        interval_s: float = _INTERVAL_S,
    ) -> None:
        self._open = open_counter
        self._talks = talks
        self._interval_s = interval_s
        self._end = threading.Event()
        self._busy: list[float] = []
        self.samples = 0
        self.memory_max_mib: int | None = None
        self.memory_total_mib: int | None = None
        # A daemon: a driver that hangs mustn't keep the process.
        self._thread = threading.Thread(target=self._run, name="slurmgen-usage", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join(1.0)

    def busy_share(self) -> float | None:
        """Mean of the samples, None without any."""
        return sum(self._busy) / len(self._busy) if self._busy else None

    def _run(self) -> None:
        try:
            read = self._open()
        except Exception as error:
            if self._talks:
                reason = error if isinstance(error, NoCounterError) else _one_line(error)
                log.note(f"how busy the GPUs are can't be read: {reason}")
            return
        while not self._end.wait(self._interval_s):
            try:
                self._take(read())
            except Exception:
                # A sample less; a GPU that has died will be told about by others.
                continue

    def _take(self, reading: Reading) -> None:
        self.samples += 1
        if reading.busy is not None:
            self._busy.append(reading.busy)
        self.memory_max_mib = max(self.memory_max_mib or 0, reading.used_mib)
        self.memory_total_mib = reading.total_mib


class _Measured:
    """One rank's run while it is measured."""

    def __init__(self, seat: Seat, world_size: int, *, amd: bool) -> None:
        self.seat = seat
        self.world_size = world_size
        self.report: RankUsage | None = None
        self._started_at, self._start = _now(), time.monotonic()
        self._cpu_s = cpu_seconds()
        self._sampler: Sampler | None = None
        if seat.device != "cpu":
            self._sampler = Sampler(
                lambda: open_counter(seat.device, seat.uuid, amd=amd), talks=seat.rank == 0
            )
            self._sampler.start()

    def end(self, meter: Meter) -> RankUsage:
        elapsed_s = time.monotonic() - self._start
        sampler = self._sampler
        if sampler is not None:
            sampler.stop()
        return RankUsage(
            rank=self.seat.rank,
            node=self.seat.node,
            local_rank=self.seat.local_rank,
            device=self.seat.device,
            gpu=self.seat.gpu,
            gpu_uuid=self.seat.uuid,
            started_at=self._started_at,
            ended_at=_now(),
            elapsed_s=round(elapsed_s, 3),
            steps=meter.steps,
            step_s_median=_rounded(meter.step_median(), 6),
            data_wait_share=_rounded(meter.data_wait_share(), 4),
            peer_wait_s_median=_rounded(meter.peer_wait_median(), 6),
            gpu_busy_share=_rounded(sampler.busy_share(), 4) if sampler else None,
            gpu_memory_max_mib=sampler.memory_max_mib if sampler else None,
            gpu_memory_total_mib=sampler.memory_total_mib if sampler else None,
            gpu_samples=sampler.samples if sampler else 0,
            cpus=cpus(),
            cpu_share=round((cpu_seconds() - self._cpu_s) / max(elapsed_s, 1e-9) / cpus(), 4),
        )


class _State:
    measured: _Measured | None = None
    said = False


_state = _State()
_meter = Meter()


def meter() -> Meter:
    """Of this process's training loop."""
    return _meter


def begin(seat: Seat, world_size: int, *, amd: bool = False) -> None:
    """Start to measure, unless SLURMGEN_USAGE is off. amd: the GPU is one of AMD's."""
    with _harmless():
        if os.environ.get(VARIABLE, "").strip().lower() != "off":
            _state.measured = _Measured(seat, world_size, amd=amd)


def hand_in(store: Any) -> None:
    """Stop to measure and leave what was found in `store`, None without one, for rank 0.

    Nobody waits here. To be called before the ranks wait for each other the last time.
    """
    with _harmless():
        measured = _state.measured
        if measured is None or measured.report is not None:
            return
        measured.report = measured.end(_meter)
        if store is not None and measured.seat.rank != 0:
            store.set(f"usage/{measured.seat.rank}", measured.report.dump())


def tell(store: Any, ended: str) -> None:
    """On rank 0, once the ranks have handed in: write the file, and say how the run went.

    ended: "done", "stopped" or "failed". Waits for no rank. Of a run that failed the log is to
    show why, so the file alone tells.
    """
    with _harmless():
        measured, _state.measured = _state.measured, None
        if measured is None or measured.report is None or measured.seat.rank != 0:
            return
        ranks = [measured.report, *_gather(store, measured.world_size)]
        if ended != "failed" and measured.report.elapsed_s >= SHORTEST_S:
            log.note("\n  ".join(summarise(ranks, measured.world_size)))
        path = path_of_file(os.environ)
        if path:
            text = to_json(ranks, world_size=measured.world_size, ended=ended, env=os.environ)
            files.append(path, text)


def _gather(store: Any, world_size: int) -> list[RankUsage]:
    found: list[RankUsage] = []
    end = time.monotonic() + _GATHER_S
    # Whoever hosts the store may be gone.
    with suppress(Exception):
        for rank in range(1, world_size if store is not None else 1):
            key = f"usage/{rank}"
            # get() alone would wait for a rank that has died.
            if time.monotonic() < end and store.check([key]):
                found.append(RankUsage.parse(store.get(key)))
    return found


@contextmanager
def _harmless() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not _state.said:
            _state.said = True
            log.note(f"no word on how busy the GPUs and CPUs were: {_one_line(error)}")


def _one_line(error: Exception) -> str:
    text = str(error)
    return text.splitlines()[0] if text else type(error).__name__


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
