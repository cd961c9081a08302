"""How the times of a loop are measured, and when the log hears of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.ddp.measure import meter
from slurmgen.ddp.measure.meter import Meter, Spread
from slurmgen.ddp.train.progress import Progress
from slurmgen.ddp.wording import duration, percent, rate

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Loop:
    """A loop that waits and steps for as long as it is told, with a clock of its own."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.meter = Meter(self.clock)
        self.progress = Progress(self.meter)
        self.step = 0

    def epoch(self, number: int, batches: int, wait_s: float, step_s: float, **rest: Any) -> None:
        """`rest`: known=False for a loader without a length."""
        self.meter.begin()
        self.progress.epoch_begins()
        for batch in range(1, batches + 1):
            self.clock.now += wait_s
            self.meter.waited()
            self.clock.now += step_s
            self.meter.stepped()
            self.step += 1
            length = batches if rest.get("known", True) else None
            self.progress.step_done(self.step, number, batch, length)
            self.meter.begin()
        self.progress.epoch_done(number)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0123, "12 ms"),
        (0.0996, "0.1 s"),
        (0.492, "0.49 s"),
        (1.0, "1 s"),
        (9.97, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (603, "10 min 3 s"),
        (12030, "3 h 20 min"),
        (190800, "2 d 5 h"),
    ],
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
    assert percent(0.034) == "3 %"
    assert [rate(value) for value in (0.0314, 2.041, 99.96, 1234.5)] == [
        "0.0314",
        "2.04",
        "100",
        "1234",
    ]


def test_a_short_run_says_nothing(said: Callable[[], list[str]]) -> None:
    loop = Loop()
    for number in range(4):
        loop.epoch(number, 10, 0.01, 0.2)
    assert said() == []


def test_a_line_says_where_it_is_how_fast_and_how_long_it_takes(
    said: Callable[[], list[str]],
) -> None:
    loop = Loop()
    loop.progress.epochs = 90
    loop.epoch(2, 25, 0.1, 0.4)
    assert said() == [
        (
            "epoch 3 of 90, step 20 (batch 20 of 25, 80 %): 2 steps/s, waiting for data 20 %,"
            " left about 2.5 s in this epoch"
        ),
    ]


def test_a_loader_without_length_has_no_end_to_tell(said: Callable[[], list[str]]) -> None:
    loop = Loop()
    loop.epoch(0, 25, 0.1, 0.4, known=False)
    assert said() == ["epoch 1, step 20 (batch 20): 2 steps/s, waiting for data 20 %"]


def test_lines_grow_rare(said: Callable[[], list[str]]) -> None:
    loop = Loop()
    loop.epoch(0, 2 * 3600, 0, 1.0)
    lines = said()
    # At 10 s, each 30 s up to 310, each minute up to 3610, then each 5 minutes, and the end.
    assert len(lines) == 1 + 10 + 55 + 11 + 1
    assert lines[-1] == "epoch 1 done in 2 h 0 min: 1 steps/s, waiting for data 0 %"
    assert not [line for line in lines if "\r" in line]


def test_short_epochs_are_not_told_one_by_one(said: Callable[[], list[str]]) -> None:
    loop = Loop()
    for number in range(30):
        loop.epoch(number, 10, 0, 0.5)
    lines = said()
    assert 1 < len(lines) < 8
    assert not [line for line in lines if "done" in line]


def test_the_meter_leaves_out_what_is_between_the_steps() -> None:
    clock = Clock()
    own = Meter(clock)
    assert own.step_median() is None
    assert own.data_wait_share() is None
    own.begin()
    for _ in range(4):
        clock.now += 1
        own.waited()
        clock.now += 3
        own.stepped()
        clock.now += 100
        own.begin()
    assert (own.steps, own.wait_s, own.step_s, own.loop_s) == (4, 4.0, 12.0, 16.0)
    assert own.data_wait_share() == 0.25
    assert own.step_median() == pytest.approx(4, rel=0.01)


def test_a_median_of_many() -> None:
    spread = Spread()
    for number in range(10_001):
        spread.add(1e-6 * 1.001**number)
    assert spread.median() == pytest.approx(1e-6 * 1.001**5000, rel=0.01)
    assert len(spread._counts) < 1000


def test_ddp_is_asked_now_and_then_how_long_it_waited() -> None:
    class Parallel:
        """As DDP: it times a step now and then, and says the same until the next."""

        asked = 0

        def _get_ddp_logging_data(self) -> dict[str, int]:
            self.asked += 1
            return {
                "backward_comm_time": 300_000_000 + self.asked // 4,
                "backward_compute_comm_overlap_time": 100_000_000,
            }

    def steps(count: int) -> None:
        for _ in range(count):
            clock.now += 1
            own.stepped([parallel, object()])

    clock, parallel = Clock(), Parallel()
    own = Meter(clock)
    steps(35)
    assert parallel.asked == 35 / meter.LOOK_S
    # Of two steps only.
    assert own.peer_wait_median() is None
    steps(5)
    assert own.peer_wait_median() == pytest.approx(0.2, rel=0.01)
    assert meter.peer_wait([object()]) is None
