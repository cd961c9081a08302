"""What the ranks measure, and what the log and the file say of it."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.ddp.launch.devices import Seat
from slurmgen.ddp.measure import usage
from slurmgen.ddp.measure.gpu_counters import NoCounterError, Reading
from slurmgen.ddp.measure.usage_summary import RankUsage, path_of_file, summarise, to_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GOOD = RankUsage(
    rank=0,
    node="n1",
    local_rank=0,
    device="cuda:0",
    gpu="NVIDIA A100-SXM4-80GB",
    gpu_uuid="GPU-0",
    started_at="2026-05-01T10:00:00+00:00",
    ended_at="2026-05-01T10:10:03+00:00",
    elapsed_s=603.0,
    steps=1200,
    step_s_median=0.49,
    data_wait_share=0.03,
    peer_wait_s_median=0.02,
    gpu_busy_share=0.92,
    gpu_memory_max_mib=70000,
    gpu_memory_total_mib=81920,
    gpu_samples=120,
    cpus=8,
    cpu_share=0.4,
)
SECOND = replace(GOOD, rank=1, local_rank=1)
OTHER_NODE = replace(GOOD, rank=3, node="n2", gpu_busy_share=0.88)
ON_CPU = replace(GOOD, device="cpu", gpu="", gpu_uuid="", gpu_busy_share=None)


def said_of(*ranks: RankUsage) -> list[str]:
    """What is said besides the first line."""
    return summarise(ranks, len(ranks))[1:]


def test_one_line_when_all_is_well() -> None:
    ranks = [GOOD, SECOND, replace(SECOND, rank=2, node="n2"), OTHER_NODE]
    assert summarise(ranks, 4) == [
        (
            "1200 steps in 10 min 3 s, 0.49 s a step, waiting for data 3 %; GPUs 91 % busy"
            " (lowest 88 %: rank 3 on n2)"
        )
    ]
    assert summarise([GOOD], 1) == [
        "1200 steps in 10 min 3 s, 0.49 s a step, waiting for data 3 %; GPU 92 % busy"
    ]


def test_a_program_with_a_loop_of_its_own() -> None:
    own = replace(ON_CPU, steps=0, step_s_median=None, data_wait_share=None)
    assert summarise([own], 1) == ["ran for 10 min 3 s; CPUs 40 % busy"]


def test_ranks_that_are_missing_are_counted() -> None:
    assert summarise([GOOD, SECOND], 16)[0].endswith("; 2 of 16 ranks told")


def test_a_gpu_that_idles_and_why() -> None:
    hungry = replace(OTHER_NODE, gpu_busy_share=0.06, data_wait_share=0.9)
    assert said_of(GOOD, hungry) == [
        "GPU of rank 3 on n2 idle 94 %: waiting for data 90 % of the time"
    ]
    assert said_of(GOOD, replace(hungry, data_wait_share=None)) == ["GPU of rank 3 on n2 idle 94 %"]


def test_the_same_of_all_ranks_is_one_line() -> None:
    hungry = replace(GOOD, gpu_busy_share=0.06, data_wait_share=0.9)
    busier = replace(hungry, rank=1, gpu_busy_share=0.4)
    assert said_of(hungry, busier, replace(busier, rank=2)) == [
        "all 3 GPUs idle 60 to 94 %: waiting for data 90 % of the time"
    ]
    waiting = replace(ON_CPU, data_wait_share=0.7)
    assert said_of(waiting, replace(waiting, rank=1)) == [
        (
            "both ranks wait for data 70 % of the time: the loader may need more workers"
            " (num_workers) and CPUs"
        )
    ]


def test_a_rank_that_waits_for_data() -> None:
    assert said_of(GOOD, replace(OTHER_NODE, data_wait_share=0.25)) == [
        "rank 3 on n2 waits for data 25 % of the time"
    ]


def test_a_rank_that_the_others_wait_for() -> None:
    """All steps take as long: each waits for the slowest, which alone doesn't wait."""
    fast = [
        replace(GOOD, rank=rank, step_s_median=0.61, peer_wait_s_median=0.15) for rank in range(7)
    ]
    slow = replace(fast[0], rank=7, node="n2", peer_wait_s_median=0.02)
    assert said_of(*fast, slow) == [
        "rank 7 on n2 is slower than the others: they wait for it 0.13 s of each step of 0.61 s"
    ]
    assert said_of(*fast) == []
    assert said_of(fast[0], slow) == said_of(*fast, slow)
    assert said_of(*fast, replace(slow, peer_wait_s_median=None)) == []


def test_cpus_that_keep_the_gpu_waiting() -> None:
    poor = replace(GOOD, cpus=1, cpu_share=1.004, gpu_busy_share=0.55)
    assert said_of(poor, SECOND, replace(poor, rank=2)) == [
        (
            "CPU: 2 ranks with 1 CPU each are 100 % busy while the GPU waits: ask for more"
            " (cpus_per_task)"
        )
    ]
    assert said_of(replace(poor, gpu_busy_share=0.9), SECOND) == []


def test_many_ranks_stay_few_lines() -> None:
    idle = [replace(GOOD, rank=rank, gpu_busy_share=rank / 100) for rank in range(17, 0, -1)]
    lines = said_of(GOOD, *idle)
    assert lines[0] == "GPU of rank 1 on n1 idle 99 %"
    assert lines[5:] == ["and 12 more"]


def test_the_file_has_a_line_for_the_run_and_each_rank() -> None:
    env = {
        "SLURM_JOB_ID": "812",
        "SLURM_ARRAY_JOB_ID": "810",
        "SLURM_ARRAY_TASK_ID": "2",
        "SLURM_STEP_ID": "0",
        "SLURM_RESTART_COUNT": "3",
    }
    text = to_json([GOOD, SECOND], world_size=2, ended="stopped", env=env)
    run, first, second = map(json.loads, text.splitlines())
    same = {"schema": 1, "job": "810_2", "job_step": "0", "restart": 3}
    assert run == {
        **same,
        "kind": "run",
        "world_size": 2,
        "ended": "stopped",
        "summary": summarise([GOOD, SECOND], 2),
    }
    assert first == {**same, "kind": "rank", **json.loads(GOOD.dump())}
    assert (second["rank"], second["gpu_busy_share"]) == (1, 0.92)
    assert RankUsage.parse(GOOD.dump()) == GOOD
    bare = json.loads(to_json([GOOD], world_size=1, ended="done", env={}).splitlines()[0])
    assert (bare["job"], bare["job_step"], bare["restart"]) == ("", "", 0)


@pytest.mark.parametrize(
    ("env", "path"),
    [
        ({}, ""),
        ({"SLURMGEN_USAGE": "u.jsonl", "SLURMGEN_FAILURE": "a.failure.json"}, "u.jsonl"),
        (
            {"SLURMGEN_FAILURE": "logs/a.failure.json", "SLURMGEN_PROGRESS": "b.progress"},
            "logs/a.usage.jsonl",
        ),
        ({"SLURMGEN_PROGRESS": "logs/r-5.progress"}, "logs/r-5.usage.jsonl"),
        ({"SLURMGEN_PROGRESS": "elsewhere"}, "elsewhere.usage.jsonl"),
    ],
)
def test_where_the_file_is(env: dict[str, str], path: str) -> None:
    assert path_of_file(env) == path


class Counter:
    """A GPU with these readings; `read` once they are used up."""

    def __init__(self, *readings: Reading | Exception) -> None:
        self._left = list(readings)
        self.read = threading.Event()

    def __call__(self) -> Reading:
        if not self._left:
            self.read.set()
            raise RuntimeError("GPU is lost")
        one = self._left.pop(0)
        if isinstance(one, Exception):
            raise one
        return one


def test_samples_of_a_gpu(said: Callable[[], list[str]]) -> None:
    counter = Counter(
        Reading(0.5, 100, 1000), RuntimeError("busy"), Reading(1.0, 300, 1000), Reading(None, 2, 3)
    )
    sampler = usage.Sampler(lambda: counter, talks=True, interval_s=0)
    sampler.start()
    assert counter.read.wait(10)
    sampler.stop()
    assert sampler.busy_share() == 0.75
    assert (sampler.samples, sampler.memory_max_mib) == (3, 300)
    assert not sampler._thread.is_alive()
    assert said() == []


@pytest.mark.parametrize("talks", [True, False])
def test_a_gpu_that_cannot_be_read(said: Callable[[], list[str]], talks: bool) -> None:
    def fail() -> Callable[[], Reading]:
        raise NoCounterError("the module pynvml is not installed: pip install nvidia-ml-py")

    sampler = usage.Sampler(fail, talks=talks, interval_s=0)
    sampler.start()
    sampler._thread.join(10)
    sampler.stop()
    assert sampler.busy_share() is None
    line = (
        "how busy the GPUs are can't be read: the module pynvml is not installed: pip install"
        " nvidia-ml-py"
    )
    assert said() == ([line] if talks else [])


class Shelf(dict[str, str]):
    """A store as torch's: `check` doesn't wait."""

    set = dict.__setitem__

    def check(self, keys: list[str]) -> bool:
        return all(key in self for key in keys)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """`runs(rank)` is a process of that rank, measured from here on."""
    monkeypatch.setattr(usage, "SHORTEST_S", 0.0)
    monkeypatch.setenv("SLURMGEN_USAGE", str(tmp_path / "usage.jsonl"))

    def begin(rank: int, world_size: int = 3) -> None:
        monkeypatch.setattr(usage, "_state", usage._State())
        seat = Seat(rank=rank, node="n1", machine="n1", local_rank=rank, device="cpu")
        usage.begin(seat, world_size)

    return begin


def test_the_ranks_hand_in_and_rank_0_tells(
    runs: Any, tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    store = Shelf()
    runs(2)
    usage.hand_in(store)
    usage.tell(store, "done")
    assert list(store) == ["usage/2"]
    assert said() == []
    runs(0)
    for _ in range(2):
        usage.hand_in(store)
        usage.tell(store, "done")
    (line,) = said()
    assert line.startswith("ran for ")
    assert line.endswith("; 2 of 3 ranks told")
    kinds = [json.loads(line) for line in (tmp_path / "usage.jsonl").read_text().splitlines()]
    assert [(one["kind"], one.get("rank")) for one in kinds] == [
        ("run", None),
        ("rank", 0),
        ("rank", 2),
    ]
    runs(0, world_size=1)
    usage.hand_in(None)
    usage.tell(None, "failed")
    assert said() == []
    assert len((tmp_path / "usage.jsonl").read_text().splitlines()) == 5


def test_off_is_off(runs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMGEN_USAGE", "off")
    store = Shelf()
    runs(1)
    usage.hand_in(store)
    assert not store


def test_what_goes_wrong_is_said_once(
    runs: Any, monkeypatch: pytest.MonkeyPatch, said: Callable[[], list[str]], tmp_path: Path
) -> None:
    class Gone(Shelf):
        def check(self, keys: list[str]) -> bool:
            raise RuntimeError("Connection reset by peer\nException raised from ...")

    monkeypatch.setenv("SLURMGEN_USAGE", str(tmp_path / "missing/usage.jsonl"))
    runs(0)
    usage.hand_in(Gone())
    usage.tell(Gone(), "done")
    overview, trouble = said()
    assert overview.endswith("; 1 of 3 ranks told")
    assert trouble.startswith("no word on how busy the GPUs and CPUs were: [Errno 2]")
