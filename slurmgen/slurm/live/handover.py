"""Handing a job to Slurm, and knowing what became of it.

Three things can come of it, and what sbatch says doesn't always tell which: the answer of a
controller that took the job may be lost on the way, sbatch may be ended after it has sent
it, and a site's wrapper may print what it likes.

* submitted: sbatch ended with 0 and printed an id and nothing else, or Slurm, asked, has the job;
* not submitted: sbatch said a known refusal (`refusals`), or Slurm, asked after sbatch had ended
  and for as long as a message may be on its way, has no such job;
* perhaps submitted: Slurm couldn't be asked, or may have forgotten the job since.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from slurmgen.errors import (
    JobRefused,
    NotSubmitted,
    PerhapsSubmitted,
    SlurmgenError,
    UnavailableError,
)
from slurmgen.interruption import Interruptions
from slurmgen.slurm.live import call, journal, refusals, whereabouts
from slurmgen.slurm.live.sbatch import ENDED, Submitted, indent, read_id

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

# Seconds. For sbatch's answer, and for it after Ctrl-C; in all for Slurm's, about what sbatch left
# open; between two questions, at first and at most; bounds of how long a request can be under way.
TIMEOUT = float(call.TIMEOUT)
GRACE = 20.0
ASKING = 180.0
_FIRST_PAUSE, _LAST_PAUSE = 0.5, 10.0
_SETTLES = (5.0, 60.0)
# Bytes of each of sbatch's streams that are kept; lines and characters of them that are shown.
_HEARD = 1 << 16
_SHOWN = (8, 200)


class Handover:
    """One job on its way. job: the path of its file; name: Slurm's; say: takes a line for the
    person."""

    def __init__(
        self,
        script: str,
        *,
        job: str,
        name: str,
        clusters: str,
        environment: Mapping[str, str],
        say: Callable[[str], object],
    ) -> None:
        self._script = script
        self._job = journal.Job.of(job, script, environment)
        self._name = name
        self._clusters = clusters
        self._environment = environment
        self._say = say
        self._interruptions = Interruptions()
        self._hurry = _Hurry(self._interruptions, say)

    @contextmanager
    def submitted(self) -> Iterator[Submitted]:
        """The job, in a `with` whose body tells its id to somebody who can keep it.

        Until the body has ended without raising anything, the next submission of the same job
        knows of this one. SIGINT, SIGTERM and SIGHUP act when that has been done.

        Raises NotSubmitted (and of it JobRefused), PerhapsSubmitted, and UnavailableError
        where sbatch can't be run.
        """
        with self._interruptions:
            try:
                submitted = yield from self._adopt()
                if submitted is None:
                    submitted = yield from self._submit()
            except SlurmgenError as error:
                if self._interruptions.count:
                    # What the signal raises says nothing of the job.
                    self._say(f"slurmgen: {error}\n  = fix: {error.fix}")
                    self._interruptions.deliver()
                raise
            if self._interruptions.count:
                job_id = submitted.job_id
                self._say(f"slurmgen: job {job_id} was taken; `scancel {job_id}` ends it")

    def _submit(self) -> Generator[Submitted, None, Submitted]:
        with journal.record(self._job, self._script) as record:
            try:
                submitted = self._hand(record)
            except (NotSubmitted, call.NotStarted):
                record.forget()
                raise
            yield submitted
            record.forget()
        return submitted

    def _hand(self, record: journal.Record) -> Submitted:
        status: int | None = None
        try:
            done = call.call(
                ["sbatch", "--parsable", str(record.script)],
                self._environment,
                timeout=TIMEOUT,
                limit=_HEARD,
                pass_fds=[record.descriptor],
                deadline=self._hurry,
            )
        except call.TimedOut as error:
            said, what = error.stderr or error.stdout, str(error)
        else:
            status, said = done.returncode, done.stderr or done.stdout
            if status == 0:
                submitted = read_id(done.stdout)
                if submitted is not None:
                    return submitted
                said, what = done.stdout, "sbatch answered something else than a job id"
            elif status < 0:
                what = f"sbatch was ended by signal {-status}"
            # Who prints something may have submitted something, before or after the refusal.
            elif not done.stdout.strip() and refusals.is_refusal(done.stderr):
                raise JobRefused(
                    f"sbatch refused the job (exit {status}):\n{indent(_shown(said))}",
                    fix="nothing was submitted; change what it names, then submit again",
                    said=said.strip(),
                )
            elif not done.stdout.strip() and refusals.is_unreached(done.stderr):
                raise NotSubmitted(
                    f"no controller of Slurm can be reached:\n{indent(_shown(said))}",
                    fix="nothing was submitted; ask the site whether Slurm is down",
                )
            else:
                what = f"sbatch ended with status {status}"
        heard = f"{what}:\n{indent(_shown(said))}" if said.strip() else what
        return self._ask(record, heard)

    def _ask(self, record: journal.Record, heard: str) -> Submitted:
        """What Slurm knows of a job of which sbatch left open whether it was taken."""
        self._say(f"slurmgen: {heard}\nslurmgen: asking Slurm whether the job was taken")
        jobs, why_not = self._look(record)
        if jobs:
            self._tell_several(jobs)
            found = jobs[0]
            self._say(f"slurmgen: job {found.submitted.job_id} was taken: it is {found.state}")
            return found.submitted
        if not why_not:
            raise NotSubmitted(
                f"the job was not taken: {heard.splitlines()[0].rstrip(':')}, and Slurm, asked "
                "since, knows of no such job",
                fix="it is safe to submit again",
            )
        raise self._perhaps(record, f"the job may have been taken: {why_not}")

    def _adopt(self) -> Generator[Submitted, None, Submitted | None]:
        """The job of an earlier submission of this one that ended before it could tell the id.

        Returns it, None where there was none. Raises PerhapsSubmitted where that is open,
        NotSubmitted where it was submitted with other variables.
        """
        with journal.unfinished(self._job) as records:
            for record in records:
                when = time.strftime("%d %b %H:%M:%S", time.localtime(record.began))
                before = f"a submission of this job that was ended at about {when}"
                self._say(f"slurmgen: asking Slurm what became of {before}")
                jobs, why_not = self._look(record, has_ended=record.sbatch_has_ended)
                if not jobs and not why_not:
                    self._say("slurmgen: Slurm knows of no job of it")
                    record.forget()
                    continue
                if not jobs:
                    raise self._perhaps(record, f"{before} may have been taken: {why_not}")
                self._tell_several(jobs)
                job_id, state = jobs[0].submitted.job_id, jobs[0].state
                if state in ENDED and state != "COMPLETED":
                    self._say(f"slurmgen: it was taken as job {job_id}, which is {state}")
                    record.forget()
                    continue
                if record.environment != self._job.environment:
                    record.forget()
                    raise NotSubmitted(
                        f"{before} was taken as job {job_id}, which is {state}; it has other "
                        "environment variables than there are now",
                        fix="nothing was submitted now; submit once more for a second job",
                    )
                self._say(
                    f"slurmgen: it was taken as job {job_id}, which is {state}; nothing was "
                    "submitted now\n  = fix: submit once more for a second job"
                )
                yield jobs[0].submitted
                record.forget()
                return jobs[0].submitted
        return None

    def _look(
        self, record: journal.Record, has_ended: Callable[[], bool] = lambda: True
    ) -> tuple[list[whereabouts.Job], str]:
        """The jobs of a submission; without any, why that isn't certain, "" where it is.

        Certain is what Slurm says once sbatch has ended (`has_ended`) and the time is over for
        which a request may have been under way.
        """
        start = time.monotonic()
        pause = _FIRST_PAUSE
        memory: whereabouts.Memory | None = None
        # When that time is over; None as long as it can't be said.
        settled: float | None = None
        problem = ""
        while True:
            asked = time.monotonic()
            ended = has_ended()
            before = problem
            try:
                memory = memory or whereabouts.memory(self._environment, self._hurry)
                jobs = whereabouts.find(
                    record.token, self._clusters, self._environment, self._hurry
                )
            except UnavailableError as error:
                # What waits for a controller waits as long as that is away.
                problem, settled = "Slurm doesn't answer", None
                detail = f"slurmgen: {error}"
            else:
                if jobs:
                    return jobs, ""
                if settled is not None and asked >= settled:
                    # No later question finds out more.
                    record.forget()
                    return [], _forgets(record, memory) or self._look_alikes(record)
                problem = "Slurm knows of no such job, but "
                problem += "a request may be on its way" if ended else "its sbatch still runs"
                detail = f"slurmgen: {problem}"
                if ended and settled is None:
                    low, high = _SETTLES
                    settled = time.monotonic() + min(max(memory.message_timeout, low), high)
            left = start + ASKING - time.monotonic()
            if left <= 0 or self._interruptions.count:
                return [], problem
            if problem != before:
                until = left if settled is None else settled - time.monotonic()
                self._say(f"{detail}\nslurmgen: asking again for up to {until:.0f} s")
            self._sleep(pause if settled is None else min(pause, settled - time.monotonic()))
            pause = min(2 * pause, _LAST_PAUSE)

    def _look_alikes(self, record: journal.Record) -> str:
        """Why a job without the token may be this one all the same, "" if none may.

        A site's own sbatch may hand the real one a copy of the script.
        """
        try:
            found = whereabouts.named_alike(
                self._name, record.began, self._clusters, self._environment, self._hurry
            )
        except UnavailableError:
            return "Slurm doesn't answer"
        if not found:
            return ""
        return f"job {', '.join(found)} has its name and was submitted since, in another way"

    def _sleep(self, seconds: float) -> None:
        """At least a little; not through a signal."""
        end = time.monotonic() + max(seconds, 0.1)
        while (left := end - time.monotonic()) > 0 and not self._interruptions.count:
            time.sleep(min(left, 0.1))

    def _tell_several(self, jobs: list[whereabouts.Job]) -> None:
        if len(jobs) > 1:
            ids = ", ".join(job.submitted.job_id for job in jobs)
            more = " ".join(job.submitted.job_id for job in jobs[1:])
            self._say(f"slurmgen: it was taken more than once: {ids}; `scancel {more}` leaves one")

    def _perhaps(self, record: journal.Record, message: str) -> PerhapsSubmitted:
        look = whereabouts.command(record.token, self._clusters)
        if record.script.exists():
            then = "`slurmgen submit` of the same job looks first, too"
        else:
            then = "and at the job's logs; if it didn't run, submit it again"
        return PerhapsSubmitted(message, fix=f"look with `{look}`; {then}")


class _Hurry:
    """The deadline of a call: soon after a first signal, at once after a second."""

    def __init__(self, interruptions: Interruptions, say: Callable[[str], object]) -> None:
        self._interruptions = interruptions
        self._say = say
        self._end: float | None = None

    def __call__(self, deadline: float) -> float:
        count = self._interruptions.count
        if count > 1:
            return 0.0
        if count and self._end is None:
            self._end = time.monotonic() + GRACE
            self._say(
                f"slurmgen: waiting up to {GRACE:.0f} s to learn whether the job was taken; "
                "Ctrl-C stops that, too"
            )
        return deadline if self._end is None else min(deadline, self._end)


def _forgets(record: journal.Record, memory: whereabouts.Memory) -> str:
    """Why Slurm may have had a job of which it knows nothing; "" where it would know."""
    age = time.time() - record.began
    if memory.of_ended is None or 0 <= age < memory.of_ended:
        return ""
    return (
        "Slurm knows of no such job, but it forgets those that ended more than "
        f"{memory.of_ended:.0f} s ago"
    )


def _shown(said: str) -> str:
    """What fits a terminal."""
    lines, width = _SHOWN
    every = said.strip().splitlines()
    kept = [line if len(line) <= width else f"{line[:width]} …" for line in every]
    if len(kept) <= lines:
        return "\n".join(kept)
    half = lines // 2
    return "\n".join([*kept[:half], f"[{len(kept) - lines} more lines]", *kept[-half:]])
