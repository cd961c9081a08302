"""slurmgen rehearse: the job on a real Slurm of its shape here, with stand-ins as programs."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.cli import report
from slurmgen.cli.planning import plan_job, profile_for, render_job
from slurmgen.diagnostics import Diagnostic, Place
from slurmgen.errors import EXIT_FINDINGS, EXIT_OK, Refusal, UsageError
from slurmgen.files import read_bytes, write_atomically
from slurmgen.jobfile.source import decode
from slurmgen.reading.script import BatchScript
from slurmgen.sandbox import release
from slurmgen.sandbox.programs import find_programs
from slurmgen.sandbox.rehearsal import logs, shape
from slurmgen.sandbox.rehearsal import report as shown
from slurmgen.sandbox.rehearsal.judge import Case, judge, missing_here, not_run, unbounded
from slurmgen.sandbox.rehearsal.run import Settings, rehearse
from slurmgen.script.pipeline import Planned, job_folder
from slurmgen.slurm.grammars.signal import canonical_signal, flags_and_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.cluster.profile import Profile
    from slurmgen.sandbox.rehearsal.fault import Fault

_FORMATS = ("text", "json")


class _Given(NamedTuple):
    """The script, the job file that it is rendered from, if it is, and the cluster's profile."""

    path: str
    name: str
    script: BatchScript
    planned: Planned | None
    profile: Profile | None


def run(
    job: str,
    *,
    cluster: str | None = None,
    overrides: Sequence[str] = (),
    format_: str = "text",
    svg: str | None = None,
    real: bool = False,
    limit: float = 30,
    slurm: str = "",
) -> int:
    """Rehearse and report; EXIT_FINDINGS where anything is wrong.

    slurm: the version to run it in, which this process then sees for good.
    """
    if format_ not in _FORMATS:
        raise UsageError(f"--format {format_} is unknown", fix=f"use {' or '.join(_FORMATS)}")
    given = _read(job, cluster, overrides)
    # Of a job file that is wrong it was said without it.
    release.enter(find_programs(slurm).unpacked)
    requests = given.script.requests
    rehearsed = shape.rehearsed(requests, given.profile)
    tasks = requests[0].total_tasks
    plan = given.planned.plan if given.planned is not None else None
    requeue = plan.requeue if plan is not None else None
    expected = plan.world_size if plan is not None and plan.script is None else tasks or 1
    settings = Settings(
        expected=expected,
        stands_in=requeue is not None,
        real=real,
        limit=limit,
        output=requests[0].output,
        error=requests[0].error,
    )
    if requeue is not None:
        settings = settings._replace(signal=requeue.signal, comes_back=True)
    else:
        flags, name = _signal(requests[0].signal)
        settings = settings._replace(
            signal=name, to_batch="B" in flags, comes_back="requeue" in given.script.text
        )
    outcome = rehearse(given.script.text, rehearsed, settings)
    case = Case(
        plan,
        tasks if len(requests) == 1 else None,
        requests[0],
        rehearsed.array_tasks,
        settings.signal if not real else None,
        settings.to_batch,
        settings.stands_in,
        real,
        submits=any(program.name == "sbatch" for program in outcome.programs),
    )
    verdict = judge(case, outcome)
    faults = list(verdict.faults)
    if given.planned is None:
        written = outcome.job.logs if outcome.job is not None else ()
        faults = [*logs.check(requests[0], written, job_name=given.name), *faults]
    found = [*_passed_over(given), *(_diagnostic(fault, given) for fault in faults)]
    notes = list(rehearsed.notes)
    if missing := missing_here(outcome.notes):
        notes.append(f"not on this machine, taken to succeed: {', '.join(missing)}")
    if remote := not_run(outcome.programs):
        notes.append(f"not run, taken to succeed: {', '.join(remote)}")
    notes += unbounded(outcome.bounds, real=real)
    if svg is not None:
        picture = shown.as_picture(given.name, outcome, verdict, found)
        if svg == "-":
            report.out(picture)
            return EXIT_FINDINGS if found else EXIT_OK
        write_atomically(Path(svg), picture)
    if format_ == "json":
        report.out(shown.as_json(given.name, rehearsed, outcome, verdict, found, notes))
    else:
        report.show(shown.as_text(given.name, rehearsed, outcome, verdict, notes))
        said = report.format_text(found, report.texts_of(found))
        report.show(f"\n{said}\n" if found else "\nnothing is wrong\n")
    return EXIT_FINDINGS if found else EXIT_OK


def _read(job: str, cluster: str | None, overrides: Sequence[str]) -> _Given:
    if job != "-" and _is_script(Path(job)):
        if overrides:
            raise UsageError("--set with a batch script", fix="name a job file, or drop --set")
        raw = read_bytes(job)
        script = BatchScript(decode(raw, job))
        name = script.requests[0].value("job-name") or Path(job).name
        profile = profile_for(cluster, job_folder(job)) if cluster is not None else None
        return _Given(job, name, script, None, profile)
    planned = plan_job(job, cluster=cluster, overrides=overrides)
    script = BatchScript(render_job(planned))
    return _Given(planned.source.path, planned.plan.job_name, script, planned, planned.profile)


def _is_script(path: Path) -> bool:
    if path.suffix in (".yaml", ".yml"):
        return False
    try:
        start = read_bytes(path)[:65_536]
    except OSError:
        # The job file's reader says what is wrong with it.
        return False
    return start.startswith(b"#!") or re.search(rb"^#SBATCH\b", start, re.MULTILINE) is not None


def _signal(text: str | None) -> tuple[str, str | None]:
    """Flags and name of --signal; no name where there is none that a program can wait for."""
    try:
        flags, name = flags_and_name(canonical_signal(text or ""))
        number = signal.Signals(int(name)) if name.isdigit() else signal.Signals[f"SIG{name}"]
    except (Refusal, KeyError, ValueError):
        return "", None
    if number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT):
        return "", None
    return flags, number.name.removeprefix("SIG")


# Of lint's rules those about lines that sbatch passes over without a word, or reads otherwise than
# they are meant, and whose effect no run of seconds shows.
_PASSED_OVER = (
    "abbreviated-option",
    "directive-after-command",
    "directive-continuation",
    "directive-not-recognised",
    "duplicate-option",
    "mem-unit-missing",
    "time-in-minutes",
)


def _passed_over(given: _Given) -> list[Diagnostic]:
    if given.planned is not None:
        return []
    from slurmgen.lint import engine, job, registry

    loaded = job.load(given.path, given.script.text)
    return list(engine.check(loaded, registry.choose(select=_PASSED_OVER)).diagnostics)


def _diagnostic(fault: Fault, given: _Given) -> Diagnostic:
    return Diagnostic(
        _place(fault, given), fault.rule, "", fault.severity, fault.message, fault.why, fault.fix
    )


def _place(fault: Fault, given: _Given) -> Place:
    script = given.script
    if fault.key is not None and given.planned is not None:
        return given.planned.source.locate(fault.key)
    line, column = fault.line, 1
    if not line:
        line, column = _launch(script)
    text = script.lines[line - 1] if line <= len(script.lines) else ""
    column = max(column, len(text) - len(text.lstrip()) + 1)
    length = max(1, len(text.rstrip()) - column + 1)
    if given.planned is None:
        return Place(line, column, length, given.path)
    from slurmgen.lint.origin import Origin

    planned = given.planned
    origin = Origin(planned.plan, planned.source, script.text, planned.text)
    return origin.locate(Place(line, column, length))


def _launch(script: BatchScript) -> tuple[int, int]:
    """Where the program is started, as far as one can see."""
    launches = [launch for launch in script.launches if launch.is_training] or [
        launch for launch in script.launches if launch.step is not None
    ]
    if not launches:
        return 1, 1
    return script.position(launches[0].command.start)
