"""slurmgen lint: what is wrong with batch scripts, job files and the programs they start."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.cli import report
from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.errors import (
    EXIT_BUG,
    EXIT_FINDINGS,
    EXIT_OK,
    EXIT_USAGE,
    InvalidInput,
    SlurmgenError,
    UsageError,
)
from slurmgen.files import read_bytes, write_atomically
from slurmgen.lint import engine, inputs, other_codes, registry
from slurmgen.script import stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from slurmgen.cluster.profile import Profile
    from slurmgen.diagnostics import Diagnostic
    from slurmgen.lint.job import Job
    from slurmgen.lint.origin import Origin
    from slurmgen.lint.registry import Rule

_SEVERITIES = (ERROR, WARNING)
_STDIN = "-"
_STDIN_NAME = "<stdin>"


class _Options(NamedTuple):
    chosen: tuple[Rule, ...]
    severities: tuple[str, ...]
    slurm: str | None
    cluster: str | None
    fix: bool
    diff: bool


class _Result:
    """What a run has found so far."""

    def __init__(self) -> None:
        self.diagnostics: dict[tuple[tuple[str, int, int], str], Diagnostic] = {}
        self.texts: dict[str, str] = {}
        self.failures: list[engine.Failure] = []
        self.unusable: list[str] = []
        self.status = EXIT_OK
        self.files = 0
        self.mended = 0
        self.printed: list[str] = []

    def add(self, found: Iterable[Diagnostic], texts: Mapping[str, str]) -> None:
        """What was found in a file; a program may be started by several scripts."""
        for diagnostic in found:
            self.diagnostics.setdefault((diagnostic.location.start, diagnostic.rule), diagnostic)
        self.texts.update(texts)
        self.files += 1

    def unusable_file(self, path: str, problem: str, status: int = EXIT_USAGE) -> None:
        """A file that could not be linted, or not be mended."""
        self.unusable.append(f"slurmgen: {path}: {problem}")
        self.status = max(self.status, status)


def run(
    files: Sequence[str],
    *,
    format_: str = "text",
    explain: str | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    severity: str = WARNING,
    slurm: str | None = None,
    cluster: str | None = None,
    fix: bool = False,
    diff: bool = False,
) -> int:
    """Lint the files and print what was found.

    Returns 0, 1 with findings (or a diff), 2 where a file is none that can be linted,
    70 where a rule broke; whatever happened to one file, the others are linted.
    """
    if explain is not None:
        from slurmgen.lint import documentation

        report.out(documentation.explain(explain))
        return EXIT_OK
    if not files:
        raise UsageError("nothing to lint", fix="name a file or a folder, or - for stdin")
    options = _Options(
        registry.choose(select, ignore),
        (ERROR,) if _one_of("--severity", severity, _SEVERITIES) == ERROR else _SEVERITIES,
        _release_line(slurm) or (_version_here() if cluster is None else None),
        cluster,
        fix or diff,
        diff,
    )
    _one_of("--format", format_, report.FORMATS)
    if diff and format_ != "text":
        raise UsageError("--diff prints a diff, and no report", fix=f"drop --format {format_}")
    result = _Result()
    for name, problem in _targets(files):
        if problem:
            result.unusable_file(name, problem)
        else:
            _lint(name, options, result)
    return _finish(result, options, format_)


def _one_of(option: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise UsageError(f'{option} "{value}" does not exist', fix=f"write {', '.join(allowed)}")
    return value


def _release_line(version: str | None) -> str | None:
    """`22.05` of 22.05 and of 22.05.8."""
    if version is None:
        return None
    match = re.fullmatch(r"(\d\d\.\d\d)([.-].*)?", version)
    if match is None:
        raise UsageError(
            f'--slurm "{version}" is no version of Slurm', fix="write a release, such as 22.05"
        )
    return match[1]


def _version_here() -> str | None:
    """The release line of the Slurm of this machine, None without one."""
    from slurmgen.slurm.live import sbatch

    try:
        return _release_line(sbatch.version(os.environ))
    except SlurmgenError:
        return None


def _targets(files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every file once, each with what is wrong with it ("")."""
    seen = set()
    for name in files:
        found = [(Path(name), "")]
        if name != _STDIN and os.path.isdir(name):
            found = list(inputs.search(Path(name)))
            if not found:
                report.note(f"slurmgen: there is no batch script and no job file in {name}")
        for path, problem in found:
            if str(path) not in seen:
                seen.add(str(path))
                yield str(path), problem


def _lint(name: str, options: _Options, result: _Result) -> None:
    """Lint one file; what can happen to it ends up in the result.

    Raises what is wrong with the cluster's profile, which is wrong for every file.
    """
    profile = _profile(options.cluster, Path(name))
    shown = _STDIN_NAME if name == _STDIN else os.fsencode(name).decode(errors="replace")
    try:
        if inputs.is_job_file(name):
            _check(_job_of_file(name, options), options, result)
        else:
            _lint_script(name, shown, profile, options, result)
    except inputs.NotABatchScript as problem:
        result.unusable_file(shown, f"not a batch script: {problem}")
    except InvalidInput as problem:
        # The errors of a job file are its findings.
        result.add(problem.diagnostics, report.texts_of(problem.diagnostics))
        result.status = max(result.status, EXIT_USAGE)
    except SlurmgenError as problem:
        result.unusable_file(shown, str(problem), problem.exit_status)
    except OSError as problem:
        result.unusable_file(shown, f"cannot read it: {problem.strerror}")
    except Exception as problem:
        result.failures.append(engine.Failure("", shown, problem))


def _profile(cluster: str | None, path: Path) -> Profile | None:
    if cluster is None:
        return None
    from slurmgen.cluster.load import load_profile
    from slurmgen.jobfile.project import project_root

    return load_profile(cluster, project_root(path))


def _lint_script(
    name: str, shown: str, profile: Profile | None, options: _Options, result: _Result
) -> None:
    text = inputs.decode(_read(name))
    slurm = options.slurm or _release_line(profile.slurm if profile else None)
    folder = None if name == _STDIN else Path(name).parent

    # A round of fixes asks about the same text twice.
    @lru_cache(maxsize=4)
    def parse(text: str) -> Job:
        from slurmgen.lint.job import load

        return load(shown, text, slurm=slurm, profile=profile, folder=folder)

    if options.fix:
        text = _mend(name, shown, text, parse, options, result)
    origin = None
    if folder is not None and stamp.line_of(text):
        from slurmgen.lint.rendered import origin_of

        origin = origin_of(Path(name), text)
    _check(parse(text), options, result, behind=origin)


def _read(name: str) -> bytes:
    if name != _STDIN:
        return read_bytes(name)
    from slurmgen.script.pipeline import read_stdin

    return read_stdin()


def _job_of_file(name: str, options: _Options) -> Job:
    """The script that a job file becomes, whose findings point into the file."""
    from slurmgen.cli.planning import plan_job, render_job
    from slurmgen.lint.rendered import as_linted

    planned = plan_job(name, cluster=options.cluster)
    return as_linted(planned, render_job(planned), slurm=options.slurm)


def _check(job: Job, options: _Options, result: _Result, *, behind: Origin | None = None) -> None:
    """behind: of a rendered script, what knows the places in its job file."""
    outcome = engine.check(job, options.chosen)
    found = _shown(outcome, options)
    if behind is not None:
        found = [_with_key(one, job, behind) for one in found]
    result.add(found, outcome.texts)
    result.failures += outcome.failures


def _with_key(found: Diagnostic, job: Job, behind: Origin) -> Diagnostic:
    """What is found in a rendered script, with the place in the job file where it is mended."""
    if found.location.path != job.path:
        return found
    return found._replace(also=(*found.also, behind.locate(found.location)))


def _shown(outcome: engine.Outcome, options: _Options) -> list[Diagnostic]:
    # That not everything was looked at is said in any case.
    return [
        d
        for d in outcome.diagnostics
        if d.severity in options.severities or d.code == other_codes.STOPPED[1]
    ]


def _mend(
    name: str,
    shown: str,
    text: str,
    parse: Callable[[str], Job],
    options: _Options,
    result: _Result,
) -> str:
    """The text with its fixes made; written, printed or shown as a diff where there are any."""
    from slurmgen.lint import fixes

    after = fixes.fixed(
        text,
        lambda text: _shown(engine.check(parse(text), options.chosen), options),
        lambda text: len(parse(text).script.shell.errors),
    )
    if name == _STDIN and not options.diff:
        result.printed.append(after)
    elif after == text:
        return text
    elif options.diff:
        result.printed.append(report.diff(text, after, shown, f"{shown} (fixed)"))
    else:
        try:
            write_atomically(Path(name), after)
        except SlurmgenError as problem:
            result.unusable_file(shown, str(problem), problem.exit_status)
            return text
    result.mended += after != text
    return after


def _finish(result: _Result, options: _Options, format_: str) -> int:
    """Print what was found and say with what status to exit."""
    if result.printed or options.diff:
        # A fixed script or a diff is the result; the rest is for the person.
        report.out("".join(result.printed))
    if not options.diff:
        text = report.formatted(result.diagnostics.values(), result.texts, format_)
        if text and result.printed:
            report.note(text)
        elif text:
            report.out(f"{text}\n")
    _note_failures(result.failures)
    for line in result.unusable:
        report.note(line)
    if format_ == "text" and result.files:
        report.note(f"slurmgen: {_summary(result, options)}")
    status = result.status
    if result.failures:
        status = EXIT_BUG
    elif result.mended if options.diff else result.diagnostics:
        status = max(status, EXIT_FINDINGS)
    return status


def _note_failures(failures: Sequence[engine.Failure]) -> None:
    """Each bug with its traceback, once: many rules trip over the same."""
    import traceback

    same: dict[str, list[engine.Failure]] = {}
    for failure in failures:
        frames = traceback.extract_tb(failure.error.__traceback__)
        last = frames[-1] if frames else None
        same.setdefault(f"{failure.error!r} {last}", []).append(failure)
    for first, *others in same.values():
        what = f"the rule {first.what}" if first.what else "reading it"
        times = f" (and {_count(len(others), 'time')} more)" if others else ""
        report.note("".join(traceback.format_exception(first.error)))
        report.note(f"slurmgen: {first.path}: {what} failed{times}")
    if failures:
        report.note("slurmgen: this is a bug of slurmgen; please report it with the text above")


def _summary(result: _Result, options: _Options) -> str:
    """What a person reads last: `2 errors, 1 warning in 3 files; 1 fixable with --fix`."""
    found = result.diagnostics.values()
    counts = [
        _count(number, severity)
        for severity in (ERROR, WARNING)
        if (number := sum(d.severity == severity for d in found))
    ]
    parts = [f"{', '.join(counts) or 'no findings'} in {_count(result.files, 'file')}"]
    fixable = sum(bool(d.edits) for d in found)
    if options.diff:
        parts = [f"{_count(result.mended, 'file')} would change", f"then {parts[0]}"]
    elif options.fix:
        parts = [f"{_count(result.mended, 'file')} changed", *parts]
    elif fixable:
        parts.append(f"{fixable} fixable with --fix")
    return "; ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
