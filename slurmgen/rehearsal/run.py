"""Submits the job to a sandbox of its shape, and lets its programs go when all have come."""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.rehearsal import guard, records
from slurmgen.rehearsal.stage import Stage
from slurmgen.sandbox import Sandbox
from slurmgen.slurm import sbatch
from slurmgen.spec.nodes import expand_hostlist

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.rehearsal.records import Note, Program
    from slurmgen.rehearsal.shape import Rehearsed

# Seconds without anything new: until programs may go on, when as many have come as the job has
# tasks, or when fewer have; until agents that wait for others give up; until a step that waits
# for another's nodes is taken to wait for ever.
_HOLD, _HOLD_FOR_MORE, _GIVE_UP, _BUSY = 0.4, 2.0, 3.0, 8.0
# A job that goes back into the queue has ended for a moment.
_COMES_BACK = 3.0
_POLL = 0.05
# A second run, in which every program fails, is for jobs up to this many ranks.
_MOST_RANKS_TO_FAIL = 64
_BUSY_TEXT = re.compile(r"step creation temporarily disabled|Requested nodes are busy")


class Job(NamedTuple):
    """One submission, and how it went.

    states: of each task of an array, or of the one job. gpus: by job id, the indices of the
    GPUs that each node gave to it. log: what it printed. hung: nothing more happened, and it was
    ended. left: programs that still ran when the script had ended. serial: a step had to wait
    for another to end.
    """

    job_id: str
    states: tuple[sbatch.State, ...]
    gpus: Mapping[str, Mapping[str, frozenset[str]]]
    log: str
    hung: bool
    left: bool
    serial: bool
    seconds: float


class Outcome(NamedTuple):
    """Everything that the judge is given.

    refused: what sbatch said where it did not take the job; then there is nothing else.
    failing: the same job with programs that end with an error; None where that was not tried.
    """

    version: str
    programs: tuple[Program, ...]
    notes: tuple[Note, ...]
    job: Job | None = None
    failing: Job | None = None
    refused: str = ""
    seconds_to_start: float = 0.0


class Settings(NamedTuple):
    """How a job is rehearsed.

    expected: how many programs it is to start at once. signal: what tells it to save and come
    back; None where it doesn't. paths: programs of the script by path. real: they run. limit:
    seconds without anything new after which a job is ended; with `real`, those that it runs.
    """

    expected: int
    signal: str | None = None
    paths: tuple[str, ...] = ()
    real: bool = False
    limit: float = 30.0
    has_error_file: bool = False


def rehearse(text: str, rehearsed: Rehearsed, settings: Settings) -> Outcome:
    """Run the script `text` in the current folder; whatever ends this, nothing is left behind.

    Raises UnavailableError where a sandbox can't be started.
    """
    with Stage() as stage:
        stage.fill(paths=settings.paths, real=settings.real)
        start = time.monotonic()
        sandbox = Sandbox.up(name=guard.SANDBOX, shape=rehearsed.shape, directory=stage.path)
        took = time.monotonic() - start
        if sandbox.loopback_only:
            with sandbox.folder.task_prolog.open("a") as prolog:
                prolog.write(stage.prolog())
        run = _Run(stage, sandbox, rehearsed, settings)
        job = failing = None
        refused = run.submit(text)
        if not refused:
            job = run.watch()
            count = len(records.read_programs(stage.path))
            if _is_worth_failing(job, rehearsed, settings) and count <= _MOST_RANKS_TO_FAIL:
                (stage.path / "fail").touch()
                if not run.submit(text):
                    failing = run.watch()
        bash_env = os.environ.get("BASH_ENV")
        return Outcome(
            sandbox.version,
            tuple(records.read_programs(stage.path, bash_env=bash_env)),
            tuple(records.read_notes(stage.path)),
            job,
            failing,
            refused,
            took,
        )


def _is_worth_failing(job: Job, rehearsed: Rehearsed, settings: Settings) -> bool:
    ended_well = all(state.exit_code == "0:0" for state in job.states)
    return ended_well and rehearsed.array_tasks is None and not settings.real and not job.left


class _Run:
    def __init__(
        self, stage: Stage, sandbox: Sandbox, rehearsed: Rehearsed, settings: Settings
    ) -> None:
        self.stage = stage
        self.sandbox = sandbox
        self.rehearsed = rehearsed
        self.settings = settings
        self.environment = sandbox.environment()
        self.job_id = ""
        self.start = 0.0

    def submit(self, text: str) -> str:
        """Hand it to sbatch; returns what that said where it took no job."""
        name = "%j" if self.rehearsed.array_tasks is None else "%A_%a"
        log = self.stage.path / "log"
        options = [f"--output={log}/{name}.out", "--open-mode=append"]
        if self.settings.has_error_file:
            options.append(f"--error={log}/{name}.err")
        self.start = time.monotonic()
        done = self.sandbox.run(
            # Not by its name, which on the job's PATH is that of a stand-in.
            [shutil.which("sbatch") or "sbatch", "--parsable", *options, *self.rehearsed.options],
            given=text,
            extra=self.stage.environment(self.environment),
        )
        if done.returncode != 0:
            return done.stderr.strip()
        self.job_id = done.stdout.strip().partition(";")[0]
        return ""

    def watch(self) -> Job:
        """Until it has ended; everything that waits is let through."""
        stage = self.stage
        failing = (stage.path / "fail").exists()
        told = self.settings.signal is None or failing or self.settings.real
        size, changed, opened = -1, time.monotonic(), 0.0
        gpus: dict[str, dict[str, frozenset[str]]] = {}
        hung = left = False
        ended: float | None = None
        while True:
            states = sbatch.job_states(sbatch.Submitted(self.job_id, None), self.environment) or []
            now = time.monotonic()
            if (new := self._size()) != size:
                size, changed = new, now
            names = {state.state for state in states}
            if not names <= sbatch.ENDED:
                ended = None
            elif not self._may_come_back():
                break
            elif ended is None:
                ended = now
            elif now - ended > _COMES_BACK:
                break
            quiet = now - changed
            waiting = self._waiting()
            stage.gate.nudge()
            if waiting and "COMPLETING" in names and quiet > _HOLD:
                left = left or opened == 0.0
                stage.gate.open()
            elif waiting and quiet > self._hold(waiting, failing=failing):
                gpus |= self._allocated()
                if not told:
                    told = True
                    self._tell()
                else:
                    stage.gate.open()
                    opened = now
                changed = now
            elif "PENDING" in names and told and self._may_come_back():
                # As long as a credential lives, which in a sandbox are seconds. Started sooner
                # (StartTime=now), a job may fail: "Job credential revoked".
                changed = now
            if quiet > _GIVE_UP and not waiting:
                (stage.path / "give-up").touch()
            over = now - self.start if self.settings.real else quiet
            if not hung and not waiting and over > self._patience():
                hung = True
                self.sandbox.run(["scancel", self.job_id])
            time.sleep(_POLL)
        left = left or (opened == 0.0 and self._waiting() > 0)
        stage.gate.open()
        (stage.path / "give-up").unlink(missing_ok=True)
        log = self._log()
        return Job(
            self.job_id,
            tuple(states),
            gpus,
            log,
            hung,
            left,
            _BUSY_TEXT.search(log) is not None,
            time.monotonic() - self.start,
        )

    def _hold(self, waiting: int, *, failing: bool) -> float:
        if failing or waiting >= self.settings.expected:
            return _HOLD
        return _HOLD_FOR_MORE + self.rehearsed.shape.nodes / 16

    def _patience(self) -> float:
        if not self.settings.real and _BUSY_TEXT.search(self._log()):
            return _BUSY
        return self.settings.limit

    def _may_come_back(self) -> bool:
        """Whether the job was told to save, and has not been started again yet."""
        if self.settings.signal is None or (self.stage.path / "fail").exists():
            return False
        own = f"{self.job_id}."
        names = os.listdir(self.stage.path / "records")
        return not any(name.startswith(own) and name.split(".")[1] != "0" for name in names)

    def _waiting(self) -> int:
        return len(os.listdir(self.stage.path / "records")) - len(
            os.listdir(self.stage.path / "ended")
        )

    def _size(self) -> int:
        logs = sum(path.stat().st_size for path in (self.stage.path / "log").iterdir())
        return logs + records.count(self.stage.path)

    def _log(self) -> str:
        found = sorted((self.stage.path / "log").glob(f"{self.job_id}*"))
        return "".join(path.read_text(errors="replace") for path in found)

    def _tell(self) -> None:
        """As Slurm does before the time limit."""
        self.sandbox.run(["scancel", f"--signal={self.settings.signal}", self.job_id])

    def _control(self, *words: str) -> str:
        return self.sandbox.run(["scontrol", *words]).stdout

    def _allocated(self) -> dict[str, dict[str, frozenset[str]]]:
        """Of each job that runs now; the components of a heterogeneous one are one job."""
        found: dict[str, dict[str, frozenset[str]]] = {}
        for shown in self._control("--details", "show", "job", self.job_id).split("\n\n"):
            job_id = re.search(r"\bHetJobId=(\d+)", shown) or re.match(r"JobId=(\d+)", shown)
            if job_id is None or "JobState=RUNNING" not in shown:
                continue
            own = found.setdefault(job_id[1], {})
            for nodes, gres in re.findall(r"Nodes=(\S+) CPU_IDs=\S+ Mem=\d+ GRES=(\S*)", shown):
                indices = ",".join(re.findall(r"gpu[^()]*\(IDX:([\d,-]+)\)", gres))
                with suppress(ValueError):
                    for node in expand_hostlist(nodes):
                        own[node] = own.get(node, frozenset()) | _numbers(indices)
        return found


def _numbers(text: str) -> frozenset[str]:
    """The numbers of `0-2,5`."""
    found: set[str] = set()
    for item in filter(None, text.split(",")):
        first, _, last = item.partition("-")
        found |= {str(number) for number in range(int(first), int(last or first) + 1)}
    return frozenset(found)
