"""slurmgen submit: render, lint, hand to sbatch, print the job id."""

from __future__ import annotations

import getpass
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.cli import report
from slurmgen.cli.planning import plan_job, recognised, render_job
from slurmgen.diagnostics import ERROR
from slurmgen.errors import EXIT_OK, FaultyJob, UnavailableError
from slurmgen.lint.rendered import as_linted
from slurmgen.slurm import directives
from slurmgen.slurm.grammars.filename import log_directory
from slurmgen.slurm.live import sbatch
from slurmgen.slurm.live.call import NoAnswer
from slurmgen.slurm.live.handover import Handover

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from slurmgen.script.pipeline import Planned
    from slurmgen.script.plan import JobPlan

# Seconds between two looks at a job: a tenth of the time waited so far, which is short
# for a sandbox and kind to a busy controller.
_FIRST_LOOK, _LAST_LOOK = 0.2, 15.0
# For how many seconds a controller may be away before `--wait` gives up.
_AWAY = 3600
# From this release on Slurm makes the folders of a job's logs by itself.
_MAKES_FOLDERS = "23.02"


def run(
    job: str,
    *,
    cluster: str | None = None,
    overrides: Sequence[str] = (),
    test_only: bool = False,
    wait: bool = False,
) -> int:
    """Lint and submit the job, and print its id, alone, on stdout.

    cluster: by default the one on which this runs, where a profile tells.

    With `wait`, progress goes to stderr and the job's exit code is returned.
    """
    cluster = cluster or recognised(job)
    planned = plan_job(job, cluster=cluster, overrides=overrides)
    text, environment = _prepare(planned)
    if test_only:
        report.note(sbatch.would_start(text, environment=environment))
        return EXIT_OK
    with _handed_over(planned, text, environment, job) as answer:
        untold = _tell(answer)
    if untold is not None:
        raise untold
    try:
        return _wait(answer, environment) if wait else EXIT_OK
    except KeyboardInterrupt:
        # From the moment on at which somebody can know the id.
        job_id = answer.job_id
        report.note(f"slurmgen: job {job_id} goes on; `scancel {job_id}` ends it")
        raise


def submit_planned(planned: Planned, job: str = "") -> str:
    """Lint and submit a job; returns its id.

    job: the path of its file. Raises FaultyJob, NotSubmitted, PerhapsSubmitted, UnavailableError.
    """
    text, environment = _prepare(planned)
    with _handed_over(planned, text, environment, job) as answer:
        return answer.job_id


def _prepare(planned: Planned) -> tuple[str, dict[str, str]]:
    """The script, in which lint has found no error, and the variables for sbatch."""
    text = render_job(planned)
    _lint(planned, text)
    environment, dropped = sbatch.clean_environment(os.environ)
    if dropped:
        report.note(f"slurmgen: kept from sbatch: {_shortened(dropped)}")
    return text, environment


@contextmanager
def _handed_over(
    planned: Planned, text: str, environment: Mapping[str, str], job: str
) -> Iterator[sbatch.Submitted]:
    """The job that Slurm has taken; see `Handover.submitted`."""
    _make_log_directories(planned.plan, environment)
    handover = Handover(
        text,
        job=job,
        name=planned.plan.job_name,
        clusters=_clusters(text),
        environment=environment,
        say=report.note,
    )
    with handover.submitted() as answer:
        yield answer


def _clusters(text: str) -> str:
    """The clusters that the script names for sbatch to choose from; the last line counts."""
    named = [d.value for d in directives.read(text).directives if d.option == "clusters"]
    return (named or [None])[-1] or ""


def _tell(answer: sbatch.Submitted) -> UnavailableError | None:
    """The id on stdout; where that doesn't take it, on stderr, and the error to end with.

    Raises that error at once where nobody can be told: then the next submission tells.
    """
    job_id = answer.job_id
    try:
        report.out(f"{job_id}\n")
        return None
    except UnavailableError as problem:
        why = str(problem)
    except BrokenPipeError:
        report.discard_stdout()
        why = "cannot write to stdout: nobody reads it any more"
    error = UnavailableError(why, fix=f"job {job_id} goes on; `scancel {job_id}` ends it")
    if not report.note(f"slurmgen: the job was submitted: {job_id}"):
        raise error
    return error


def _lint(planned: Planned, text: str) -> None:
    """Warnings on stderr; raises FaultyJob where the job would fail, hang or waste its GPUs."""
    from slurmgen.lint import engine, registry

    slurm = planned.profile.slurm
    if slurm is None:
        # Without Slurm, submitting says so.
        with suppress(UnavailableError):
            slurm = sbatch.version(os.environ)
    outcome = engine.check(as_linted(planned, text, slurm=slurm), registry.choose())
    for failure in outcome.failures:
        # Not a reason to keep a job from the queue.
        report.note(f"slurmgen: the rule {failure.what} failed; please report it as a bug")
    if any(found.severity == ERROR for found in outcome.diagnostics):
        raise FaultyJob(outcome.diagnostics)
    if outcome.diagnostics:
        report.note(report.format_text(outcome.diagnostics, outcome.texts))


def _shortened(names: list[str]) -> str:
    """The names, or how many of them only say that one is inside a job."""
    of_a_job = [name for name in names if name.startswith("SLURM_")]
    if len(of_a_job) <= 3:
        return ", ".join(names)
    others = [name for name in names if name not in of_a_job]
    return ", ".join([*others, f"{len(of_a_job)} SLURM_* variables of the job around"])


def _make_log_directories(plan: JobPlan, environment: Mapping[str, str]) -> None:
    """Make the folders of the logs.

    They stay, whatever becomes of the job: another one may have been submitted since that
    counts on them, and without them it would fail.
    """
    given = {d.option: d.value for d in plan.directives if d.value is not None}
    start = Path(given.get("chdir", "."))
    wanted: list[tuple[Path, str]] = []
    for option in ("output", "error"):
        if option not in given:
            continue
        folder, unknown = log_directory(
            given[option], job_name=plan.job_name, user=getpass.getuser()
        )
        if unknown is not None and sbatch.version(environment) < _MAKES_FOLDERS:
            raise UnavailableError(
                f"nobody can make the folder of --{option}, {unknown}, before the job has an id",
                fix=f"Slurm before {_MAKES_FOLDERS} would end the job at its start, without a log: "
                "put %j into the file's name alone",
            )
        if folder is not None:
            wanted.append((start / folder, option))
    for path, option in wanted:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnavailableError(
                f"cannot make the folder of --{option}, {path}: {error.strerror}",
                fix="choose another folder; nothing was submitted",
            ) from error


def _wait(job: sbatch.Submitted, environment: Mapping[str, str]) -> int:
    start, shown = time.monotonic(), ""
    # Slurm forgets the tasks of an array that ended early (MinJobAge) before the others end.
    worst: int | None = None
    while True:
        states = _states(job, environment)
        if states is None:
            break
        ended = [state for state in states if state.state in sbatch.ENDED]
        if ended:
            worst = max(worst or 0, sbatch.exit_status(ended))
        line = _progress(states)
        if line != shown:
            report.note(f"slurmgen: job {job.job_id}: {line}")
            shown = line
        if len(ended) == len(states):
            break
        time.sleep(min(max(_FIRST_LOOK, (time.monotonic() - start) / 10), _LAST_LOOK))
    if worst is None:
        raise UnavailableError(
            f"Slurm has no record of how job {job.job_id} ended", fix=f"try sacct -j {job.job_id}"
        )
    return worst


def _states(job: sbatch.Submitted, environment: Mapping[str, str]) -> list[sbatch.State] | None:
    """`sbatch.job_states`, also after a controller that was away for a while."""
    end = time.monotonic() + _AWAY
    told = False
    while True:
        try:
            states = sbatch.job_states(job, environment)
        except NoAnswer as error:
            if time.monotonic() > end:
                raise
            if not told:
                report.note(
                    f"slurmgen: {error}\nslurmgen: job {job.job_id} goes on; asking again for up "
                    f"to {_AWAY // 60} minutes"
                )
                told = True
            time.sleep(_LAST_LOOK)
        else:
            if told:
                report.note("slurmgen: Slurm answers again")
            return states


def _progress(states: list[sbatch.State]) -> str:
    counts: dict[str, int] = {}
    for state in states:
        reason = state.reason
        text = state.state if reason in ("", "None") else f"{state.state} ({reason})"
        counts[text] = counts.get(text, 0) + 1
    if len(states) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {text}" for text, count in sorted(counts.items()))
