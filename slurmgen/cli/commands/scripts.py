"""slurmgen render of several job files: the scripts that lie beside them in a repository."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurmgen import __version__
from slurmgen.cli import report
from slurmgen.cli.planning import diff, plan_job, render_job
from slurmgen.errors import (
    EXIT_FINDINGS,
    EXIT_OK,
    SlurmgenError,
    UnavailableError,
    UsageError,
)
from slurmgen.files import write_atomically
from slurmgen.jobfile.source import read_text
from slurmgen.lint.inputs import is_job_file, search
from slurmgen.script.heading import Heading, read_heading
from slurmgen.script.pipeline import since

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SUFFIX = ".sbatch"
# Characters in which a script has its heading; a stamp may be long.
_HEAD = 1 << 17
# What a heading may name: a profile's path is not in it, and none is looked up by it.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class Pair(NamedTuple):
    """A job file and a script of it; `heading` None: it is not there, or says nothing."""

    job: str
    script: str
    heading: Heading | None
    present: bool


class _Outcome:
    """What became of the scripts so far."""

    def __init__(self) -> None:
        self.same = 0
        self.written = 0
        self.drifted: list[tuple[Pair, str]] = []
        self.without: list[str] = []
        self.status = EXIT_OK


def run(
    jobs: Sequence[str],
    *,
    write: bool,
    cluster: str | None = None,
    overrides: Sequence[str] = (),
) -> int:
    """Compare the scripts beside the job files with what they would be now, or write them.

    jobs: job files, and folders in which job files are looked for. The script of `x.yaml` is
    `x.sbatch`, and any other script beside it that says it was rendered from it; each is
    rendered for the cluster that it names, or for `cluster`. In a folder only job files that
    have a script count. Returns 1 with a diff for each script that has drifted.
    """
    outcome = _Outcome()
    folders = _Folders()
    for job, named in _job_files(jobs):
        pairs = folders.pairs(job)
        if not named and not any(pair.present for pair in pairs):
            outcome.without.append(job)
            continue
        for pair in pairs:
            try:
                _one(pair, outcome, write=write, cluster=cluster, overrides=overrides)
            except SlurmgenError as problem:
                # The others are still looked at.
                report.error(problem)
                outcome.status = max(outcome.status, problem.exit_status)
    _finish(outcome, write=write, jobs=jobs, cluster=cluster)
    return max(outcome.status, EXIT_FINDINGS if outcome.drifted else EXIT_OK)


def _job_files(jobs: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each job file once, and whether it was named itself."""
    seen = set()
    for name in jobs:
        if name == "-":
            raise UsageError("standard input has no script beside it", fix="name a file")
        named = not os.path.isdir(name)
        found = [(name, "")] if named else [(str(p), why) for p, why in search(Path(name))]
        for path, problem in found:
            if problem:
                raise UnavailableError(
                    f"cannot list {path}: {problem}", fix="check the folder's permissions"
                )
            if path not in seen and (named or is_job_file(path)):
                seen.add(path)
                yield path, named


class _Folders:
    """The rendered scripts of each folder; every heading is read once, however many jobs ask."""

    def __init__(self) -> None:
        self._read: dict[Path, dict[str, dict[Path, Heading]]] = {}

    def pairs(self, job: str) -> list[Pair]:
        """The scripts of a job file: the one of its own name, and those that say so."""
        path = Path(job)
        beside = path.with_suffix(_SUFFIX)
        named = self._by_source(path.parent).get(path.name, {})
        headings = {beside: named.get(beside) or _heading(beside), **named}
        pairs = [Pair(job, str(s), headings[s], s.exists()) for s in sorted(headings)]
        # Where only others were rendered from it, none is missing.
        return [p for p in pairs if p.present] or pairs

    def _by_source(self, folder: Path) -> dict[str, dict[Path, Heading]]:
        """The headings of a folder's scripts, by the job file that each names."""
        if folder not in self._read:
            found: dict[str, dict[Path, Heading]] = {}
            for script in folder.glob(f"*{_SUFFIX}"):
                heading = _heading(script)
                if heading is not None:
                    found.setdefault(heading.source, {})[script] = heading
            self._read[folder] = found
        return self._read[folder]


def _heading(script: Path) -> Heading | None:
    try:
        with script.open(encoding="utf-8", errors="replace") as file:
            return read_heading(file.read(_HEAD))
    except OSError:
        return None


def _one(
    pair: Pair, outcome: _Outcome, *, write: bool, cluster: str | None, overrides: Sequence[str]
) -> None:
    chosen = cluster
    if chosen is None and pair.heading is not None and _NAME.fullmatch(pair.heading.cluster):
        chosen = pair.heading.cluster
    planned = plan_job(pair.job, cluster=chosen, overrides=overrides)
    text = render_job(planned)
    present = read_text(Path(pair.script)) if pair.present else ""
    if present == text:
        outcome.same += 1
    elif write:
        write_atomically(Path(pair.script), text)
        outcome.written += 1
        report.note(f"slurmgen: wrote {pair.script}")
    else:
        outcome.drifted.append((pair, _state(pair, since(present, planned))))
        report.out(
            diff(
                present,
                text,
                pair.script if pair.present else os.devnull,
                f"rendered from {pair.job}",
            )
        )


def _finish(outcome: _Outcome, *, write: bool, jobs: Sequence[str], cluster: str | None) -> None:
    """One line on all of them, and how to put it right."""
    for _, state in outcome.drifted:
        report.note(f"slurmgen: {state}")
    drifted = len(outcome.drifted)
    parts = [f"{_count(outcome.written, 'script')} written"] if write else []
    if drifted:
        parts.append(f"{_count(drifted, 'script')} out of date")
    parts.append(f"{_count(outcome.same, 'script')} up to date")
    if outcome.without:
        parts.append(f"{_count(len(outcome.without), 'job file')} without a script")
    report.note(f"slurmgen: {', '.join(parts)}")
    if drifted:
        given = [] if cluster is None else ["--cluster", cluster]
        report.note(f"  = fix: {' '.join(['slurmgen render --write', *given, *jobs])}")


def _state(pair: Pair, changed: str) -> str:
    """What is wrong with a script, as far as its heading tells."""
    if not pair.present:
        return f"{pair.script} is missing: nobody has rendered {pair.job}"
    if pair.heading is not None and pair.heading.version != __version__:
        return (
            f"{pair.script} was rendered from {pair.job} by slurmgen {pair.heading.version}, "
            f"and this is {__version__}"
        )
    return f"{pair.script} has drifted from {pair.job}{changed}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
