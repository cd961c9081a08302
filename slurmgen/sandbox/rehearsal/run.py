"""Submits the job to a sandbox of its shape, and lets its programs go when all have come."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.sandbox import Sandbox, deadlines
from slurmgen.sandbox.deadlines import Deadline
from slurmgen.sandbox.programs import find_programs
from slurmgen.sandbox.rehearsal import apart, guard, records
from slurmgen.sandbox.rehearsal.apart import Bounds
from slurmgen.sandbox.rehearsal.stage import Stage
from slurmgen.slurm.grammars.nodes import expand_hostlist
from slurmgen.slurm.live import sbatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.sandbox.rehearsal.records import Note, Program
    from slurmgen.sandbox.rehearsal.shape import Rehearsed

# Seconds without anything new: until programs may go on, when as many have come as the job has
# tasks, or when fewer have; until agents that wait for others give up; until a step that waits
# for another's nodes is taken to wait for ever.
_HOLD, _HOLD_FOR_MORE, _GIVE_UP, _BUSY = 0.4, 2.0, 3.0, 8.0
# A job that goes back into the queue has ended for a moment. A signal is on its way for so long.
_COMES_BACK, _TELL = 3.0, 4.0
_POLL = 0.05
# However much it does meanwhile, a job has this many times the limit.
_MOST_LIMITS = 10
# Bytes of a log; those that are read of a longer one, at its start and at its end.
_MOST_LOG, _SHOWN_LOG = 64 << 20, 1 << 20
# A second run, in which every program fails, is for jobs up to this many ranks.
_MOST_RANKS_TO_FAIL = 64
# Of an srun that waits for another step to end, or has waited: since 23.02 or later it says so
# only then.
_BUSY_TEXT = re.compile(
    r"step creation temporarily disabled|Requested nodes are busy|srun: Step created for "
)


class Job(NamedTuple):
    """One submission, and how it went.

    states: of each task of an array, or of the one job. gpus: by job id, the indices of the
    GPUs that each node gave to it. log: what it printed. hung: nothing more happened, and it was
    ended. left: programs that still ran when the script had ended. serial: a step had to wait
    for another to end. logs: the names of the files that Slurm wrote its output to. heard:
    whether the signal came to a program or a trap; None where none was sent. flooded: it was ended
    for all that it printed. endless: it was ended since it went on and on.
    """

    job_id: str
    states: tuple[sbatch.State, ...]
    gpus: Mapping[str, Mapping[str, frozenset[str]]]
    log: str
    hung: bool
    left: bool
    serial: bool
    seconds: float
    logs: tuple[str, ...] = ()
    heard: bool | None = None
    flooded: bool = False
    endless: bool = False


class Outcome(NamedTuple):
    """Everything that the judge is given.

    refused: what sbatch said where it did not take the job; then there is nothing else. broken: how
    it ended its own rehearsal; then there is nothing else. bounds: what it was kept from.
    failing: the same job with programs that end with an error; None where that was not tried.
    """

    version: str
    programs: tuple[Program, ...]
    notes: tuple[Note, ...]
    job: Job | None = None
    failing: Job | None = None
    refused: str = ""
    seconds_to_start: float = 0.0
    broken: str = ""
    bounds: Bounds = Bounds(processes=True, network=True, files=True)


class Settings(NamedTuple):
    """How a job is rehearsed.

    expected: how many programs it is to start at once. signal: what it is told to save with
    before its time is over; None where it isn't. to_batch: the batch shell alone gets it.
    comes_back: it may put itself back into the queue then. stands_in: a stand-in ends as a
    program of the bundled entrypoint does. real: the programs run. limit: seconds without
    anything new after which a job is ended; with `real`, those that it runs. output, error: the
    patterns of its logs.
    """

    expected: int
    signal: str | None = None
    to_batch: bool = False
    comes_back: bool = False
    stands_in: bool = False
    real: bool = False
    limit: float = 30.0
    output: str | None = None
    error: str | None = None


def rehearse(text: str, rehearsed: Rehearsed, settings: Settings) -> Outcome:
    """Run the script `text` in the current folder; whatever ends this, nothing is left behind.

    Raises UnavailableError where a sandbox can't be started.
    """
    wanted = Bounds(processes=True, network=not settings.real, files=not settings.real)
    nodes = rehearsed.shape.node_count
    with Stage() as stage:
        try:
            return apart.run(
                lambda bounds: _rehearse(text, rehearsed, settings, stage, bounds),
                stage.path,
                wanted,
                processes=1000 + 16 * settings.expected + 16 * nodes,
                seconds=2 * (_most(settings) + deadlines.step(nodes))
                + deadlines.registration(nodes)
                + deadlines.ALL_KILLED,
            )
        except apart.Broken as error:
            return Outcome(find_programs().version, (), (), broken=str(error))


def _most(settings: Settings) -> float:
    """Seconds in which a job has to end, whatever it does meanwhile."""
    return _MOST_LIMITS * settings.limit + settings.expected / 8


def _rehearse(
    text: str, rehearsed: Rehearsed, settings: Settings, stage: Stage, bounds: Bounds
) -> Outcome:
    with stage.opened():
        tells = settings.signal if not settings.real and not settings.stands_in else None
        stage.fill(real=settings.real, signal=tells or "")
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
            bounds=bounds,
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
        if settings.real:
            # The CPUs of all nodes are this machine's few: threads that wait must not keep them.
            self.environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        self.job_id = ""
        self.start = 0.0
        self.log = stage.path / "log"

    def submit(self, text: str) -> str:
        """Hand it to sbatch; returns what that said where it took no job."""
        plain = "%j.out" if self.rehearsed.array_tasks is None else "%A_%a.out"
        self.log = Path(tempfile.mkdtemp(dir=self.stage.path / "log"))
        options = ["--open-mode=append"]
        for option, pattern in (("output", self.settings.output), ("error", self.settings.error)):
            if option == "output" or (pattern is not None and pattern != self.settings.output):
                (self.log / option).mkdir()
                name = (pattern or "").rpartition("/")[2] or plain
                options.append(f"--{option}={self.log}/{option}/{name}")
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
        heard: bool | None = None
        size, changed, opened = -1, time.monotonic(), 0.0
        gpus: dict[str, dict[str, frozenset[str]]] = {}
        hung = left = serial = flooded = endless = False
        ended: float | None = None
        whole = Deadline(_most(self.settings), "the job to end")
        ending: Deadline | None = None
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
                left = left or (opened == 0.0 and heard is None)
                stage.gate.open()
            elif waiting and quiet > self._hold(waiting, failing=failing):
                gpus |= self._allocated()
                if not told:
                    told, heard = True, None if self.settings.stands_in else False
                    self._tell()
                    changed = now
                elif heard is not False or quiet > _TELL or self._heard():
                    heard = heard if heard is None else self._heard()
                    stage.gate.open()
                    changed = opened = now
            elif "PENDING" in names and told and self._may_come_back():
                # As long as a credential lives, which in a sandbox are seconds. Started sooner
                # (StartTime=now), a job may fail: "Job credential revoked".
                changed = now
            if quiet > _GIVE_UP and not waiting:
                (stage.path / "give-up").touch()
            over = now - self.start if self.settings.real else quiet
            silent = not waiting and over > self._patience(quiet)
            if ending is None and (silent or whole.passed or size > _MOST_LOG):
                hung, serial = True, self._step_waits()
                flooded, endless = size > _MOST_LOG, not silent
                self.sandbox.run(["scancel", self.job_id])
                ending = Deadline(
                    deadlines.registration(self.rehearsed.shape.node_count), "the job's end"
                )
            if ending is not None and ending.passed:
                break
            time.sleep(_POLL)
        left = left or (opened == 0.0 and heard is None and self._waiting() > 0)
        if heard is False and not opened:
            heard = self._heard()
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
            serial or _BUSY_TEXT.search(log) is not None,
            time.monotonic() - self.start,
            tuple(sorted(os.listdir(self.log / "output"))),
            heard,
            flooded,
            endless,
        )

    def _hold(self, waiting: int, *, failing: bool) -> float:
        if failing or waiting >= self.settings.expected:
            return _HOLD
        return _HOLD_FOR_MORE + self.rehearsed.shape.node_count / 16

    def _patience(self, quiet: float) -> float:
        if not self.settings.real and quiet > _BUSY and self._step_waits():
            return _BUSY
        return self.settings.limit

    def _step_waits(self) -> bool:
        """Whether an srun waits for what other steps hold; not every release says so itself."""
        return "State=PENDING" in self._control("show", "step", self.job_id)

    def _may_come_back(self) -> bool:
        """Whether the job was told to save, and has not been started again yet."""
        if not self.settings.comes_back or (self.stage.path / "fail").exists():
            return False
        own = f"{self.job_id}."
        names = os.listdir(self.stage.path / "records")
        return not any(name.startswith(own) and name.split(".")[1] != "0" for name in names)

    def _waiting(self) -> int:
        return len(os.listdir(self.stage.path / "records")) - len(
            os.listdir(self.stage.path / "ended")
        )

    def _size(self) -> int:
        return sum(path.stat().st_size for path in self._logs()) + records.count(self.stage.path)

    def _log(self) -> str:
        return "".join(_ends_of(path) for path in self._logs())

    def _logs(self) -> list[Path]:
        return sorted(self.log.glob("*/*"))

    def _tell(self) -> None:
        """As Slurm does before the time limit."""
        to = ["--batch"] if self.settings.to_batch else []
        self.sandbox.run(["scancel", f"--signal={self.settings.signal}", *to, self.job_id])

    def _heard(self) -> bool:
        """Whether a program got the signal, or a trap of a shell has run."""
        told = os.listdir(self.stage.path / "told")
        return bool(told) or any(n.kind == "trapped" for n in records.read_notes(self.stage.path))

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


def _ends_of(path: Path) -> str:
    """The text of a log, without the middle of a long one."""
    with path.open("rb") as file:
        text = file.read(_SHOWN_LOG)
        if path.stat().st_size > 2 * _SHOWN_LOG:
            file.seek(-_SHOWN_LOG, os.SEEK_END)
            text += b"\n...\n"
        return (text + file.read(_SHOWN_LOG)).decode(errors="replace")


def _numbers(text: str) -> frozenset[str]:
    """The numbers of `0-2,5`."""
    found: set[str] = set()
    for item in filter(None, text.split(",")):
        first, _, last = item.partition("-")
        found |= {str(number) for number in range(int(first), int(last or first) + 1)}
    return frozenset(found)
