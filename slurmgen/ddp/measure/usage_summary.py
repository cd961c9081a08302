"""What the ranks have measured, in words for the log and in lines of JSON for a file.

The file, schema 1: an object a line. For each run of the job, one with kind "run", then one with
kind "rank" for each rank that reported. A job that is requeued appends. Keys name their unit;
shares are from 0 to 1; null is what could not be measured. All have ``schema``, ``kind``, ``job``
(the job id, ``ID_TASK`` in an array, "" outside Slurm), ``job_step`` and ``restart`` (how often
Slurm has restarted the job).

run: ``world_size``, ``ended`` ("done", "stopped" to be requeued, or "failed"), ``summary`` (what
the log says, a list of lines).
rank: the fields of `RankUsage`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING

from slurmgen.ddp.wording import duration, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

SCHEMA = 1
MOST_LINES = 5
"""About single ranks, of each kind: a run may have thousands."""

# Below, what is said is worth a look: half a GPU, a fifth or a tenth of the time.
_IDLE = 0.5
_WAITING = 0.2
_SLOWER = 0.1
_CPUS_FULL = 0.95
_GPU_NOT_FULL = 0.7


@dataclass(frozen=True)
class RankUsage:
    """One rank's run, from meeting the others to its end.

    device, gpu, gpu_uuid: as in the table of ranks. started_at, ended_at: ISO 8601, UTC.
    steps: batches of `Run.batches`, 0 where the program has no such loop; step_s_median: from one
    to the next. data_wait_share: of the loop's time. peer_wait_s_median: of a step's time, in
    which DDP waited for other ranks' gradients. gpu_busy_share: mean over the run.
    gpu_memory_max_mib: of the samples. cpu_share: CPU time of the rank and its children, of what
    its `cpus` could have given.
    """

    rank: int
    node: str
    local_rank: int
    device: str
    gpu: str
    gpu_uuid: str
    started_at: str
    ended_at: str
    elapsed_s: float
    steps: int
    step_s_median: float | None
    data_wait_share: float | None
    peer_wait_s_median: float | None
    gpu_busy_share: float | None
    gpu_memory_max_mib: int | None
    gpu_memory_total_mib: int | None
    gpu_samples: int
    cpus: int
    cpu_share: float

    def dump(self) -> str:
        """As JSON, for the store."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str | bytes) -> RankUsage:
        """The inverse of `dump`."""
        return cls(**json.loads(text))


def summarise(ranks: Sequence[RankUsage], world_size: int) -> list[str]:
    """A line on the whole run, then one for whatever is conspicuous. The first rank is rank 0."""
    return [_overview(ranks, world_size), *_starved(ranks), *_slower(ranks), *_busy_cpus(ranks)]


def to_json(
    ranks: Sequence[RankUsage], *, world_size: int, ended: str, env: Mapping[str, str]
) -> str:
    """The lines of the file for this run."""
    job = env.get("SLURM_JOB_ID", "")
    if "SLURM_ARRAY_JOB_ID" in env:
        job = f"{env['SLURM_ARRAY_JOB_ID']}_{env.get('SLURM_ARRAY_TASK_ID', '')}"
    restarts = env.get("SLURM_RESTART_COUNT", "")
    same = {
        "schema": SCHEMA,
        "job": job,
        "job_step": env.get("SLURM_STEP_ID", ""),
        "restart": int(restarts) if restarts.isdecimal() else 0,
    }
    run = {"world_size": world_size, "ended": ended, "summary": summarise(ranks, world_size)}
    objects = [{**same, "kind": "run", **run}]
    objects += [{**same, "kind": "rank", **asdict(rank)} for rank in ranks]
    return "".join(json.dumps(one) + "\n" for one in objects)


def path_of_file(env: Mapping[str, str]) -> str:
    """Where to append the lines, "" for nowhere.

    SLURMGEN_USAGE says it; else it is beside what the batch script has the run leave.
    """
    if env.get("SLURMGEN_USAGE"):
        return env["SLURMGEN_USAGE"]
    for name, suffix in (("SLURMGEN_FAILURE", ".failure.json"), ("SLURMGEN_PROGRESS", ".progress")):
        if env.get(name):
            return env[name].removesuffix(suffix) + ".usage.jsonl"
    return ""


def _overview(ranks: Sequence[RankUsage], world_size: int) -> str:
    first = ranks[0]
    parts = [f"ran for {duration(first.elapsed_s)}"]
    if first.steps and first.step_s_median is not None:
        parts = [
            f"{first.steps} steps in {duration(first.elapsed_s)}",
            f"{duration(first.step_s_median)} a step",
        ]
        waits = [rank.data_wait_share for rank in ranks if rank.data_wait_share is not None]
        parts.append(f"waiting for data {percent(fmean(waits))}")
    gpus = [rank for rank in ranks if rank.gpu_busy_share is not None]
    if gpus:
        busy = f"GPUs {percent(fmean(_busy(rank) for rank in gpus))} busy"
        if len(gpus) > 1:
            lowest = min(gpus, key=_busy)
            busy += f" (lowest {percent(_busy(lowest))}: {_who(lowest)})"
        else:
            busy = busy.replace("GPUs", "GPU")
    else:
        busy = f"CPUs {percent(fmean(rank.cpu_share for rank in ranks))} busy"
    text = f"{', '.join(parts)}; {busy}"
    return text if len(ranks) == world_size else f"{text}; {len(ranks)} of {world_size} ranks told"


def _starved(ranks: Sequence[RankUsage]) -> Iterator[str]:
    """GPUs that idle, and ranks that wait for data."""
    idle = [rank for rank in ranks if rank.gpu_busy_share is not None and _busy(rank) < _IDLE]
    if len(idle) == len(ranks) > 1:
        yield f"{_all(idle)} GPUs idle {_range(idle, _idle)}{_cause(idle)}"
    else:
        idle.sort(key=_busy)
        yield from _limited(
            idle, lambda rank: f"GPU of {_who(rank)} idle {percent(_idle(rank))}{_cause([rank])}"
        )
    waiting = [rank for rank in ranks if _waits(rank) >= _WAITING and rank not in idle]
    if len(waiting) == len(ranks) > 1:
        yield (
            f"{_all(waiting)} ranks wait for data {_range(waiting, _waits)} of the time: the"
            " loader may need more workers (num_workers) and CPUs"
        )
    else:
        waiting.sort(key=_waits, reverse=True)
        yield from _limited(
            waiting,
            lambda rank: f"{_who(rank)} waits for data {percent(_waits(rank))} of the time",
        )


def _slower(ranks: Sequence[RankUsage]) -> Iterator[str]:
    """Ranks that the others wait for: the ones that DDP itself hardly waits for others at."""
    told = [(rank, rank.peer_wait_s_median) for rank in ranks if rank.step_s_median]
    times = {rank.rank: wait for rank, wait in told if wait is not None}
    found: list[tuple[float, RankUsage]] = []
    for rank, own in told:
        others = [wait for number, wait in times.items() if number != rank.rank]
        if own is None or not others:
            continue
        lost = median(others) - own
        if rank.step_s_median and lost > _SLOWER * rank.step_s_median:
            found.append((lost, rank))
    found.sort(key=lambda one: one[0], reverse=True)
    lost_at = {rank.rank: lost for lost, rank in found}
    yield from _limited(
        [rank for _, rank in found],
        lambda rank: (
            f"{_who(rank)} is slower than the others: they wait for it"
            f" {duration(lost_at[rank.rank])} of each step of {duration(rank.step_s_median or 0)}"
        ),
    )


def _busy_cpus(ranks: Sequence[RankUsage]) -> Iterator[str]:
    full = [
        rank
        for rank in ranks
        if rank.cpu_share >= _CPUS_FULL
        and rank.gpu_busy_share is not None
        and rank.gpu_busy_share < _GPU_NOT_FULL
    ]
    if full:
        count = sorted({rank.cpus for rank in full})
        cpus = "/".join(map(str, count)) + (" CPU" if count == [1] else " CPUs")
        yield (
            f"CPU: {_count(full)} with {cpus} each {'is' if len(full) == 1 else 'are'}"
            f" {_range(full, lambda rank: min(rank.cpu_share, 1.0))} busy while the GPU waits: ask"
            " for more (cpus_per_task)"
        )


def _cause(ranks: Sequence[RankUsage]) -> str:
    waits = fmean(_waits(rank) for rank in ranks)
    return f": waiting for data {percent(waits)} of the time" if waits >= _WAITING else ""


def _limited(ranks: Sequence[RankUsage], say: Callable[[RankUsage], str]) -> Iterator[str]:
    """A line for each, the worst of which come first."""
    yield from map(say, ranks[:MOST_LINES])
    if len(ranks) > MOST_LINES:
        yield f"and {len(ranks) - MOST_LINES} more"


def _range(ranks: Sequence[RankUsage], value: Callable[[RankUsage], float]) -> str:
    low, high = (percent(choose(map(value, ranks))) for choose in (min, max))
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def _busy(rank: RankUsage) -> float:
    return rank.gpu_busy_share or 0.0


def _idle(rank: RankUsage) -> float:
    return 1 - _busy(rank)


def _waits(rank: RankUsage) -> float:
    return rank.data_wait_share or 0.0


def _who(rank: RankUsage) -> str:
    return f"rank {rank.rank} on {rank.node}"


def _all(ranks: Sequence[RankUsage]) -> str:
    return "both" if len(ranks) == 2 else f"all {len(ranks)}"


def _count(ranks: Sequence[RankUsage]) -> str:
    return "1 rank" if len(ranks) == 1 else f"{len(ranks)} ranks"
