"""Asks the rules about a job and says what remains of their answers.

A finding is hidden where another rule names the cause of which it is a consequence, and
suppressed where a comment answers for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import WARNING, Diagnostic, order
from slurmgen.lint import lines, other_codes, suppressions
from slurmgen.lint.finding import Stop
from slurmgen.lint.registry import UNUSED_SUPPRESSION
from slurmgen.reading.budget import Budget, OverBudgetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slurmgen.diagnostics import Place
    from slurmgen.lint.finding import Finding
    from slurmgen.lint.job import Job
    from slurmgen.lint.registry import Rule
    from slurmgen.lint.suppressions import Aimed, Lines, Suppression


class Failure(NamedTuple):
    """A bug of ours: what failed (a rule's name), on which file, and how."""

    what: str
    path: str
    error: Exception


class Outcome(NamedTuple):
    """What there is to say about a job; `texts` has each file that a diagnostic may point into."""

    diagnostics: tuple[Diagnostic, ...]
    failures: tuple[Failure, ...]
    texts: dict[str, str]


class _Answer(NamedTuple):
    """A finding, and where it is for the person: in the job file, of a script made from one."""

    rule: Rule
    finding: Finding
    location: Place


def check(job: Job, chosen: Sequence[Rule]) -> Outcome:
    """Ask the rules; one that raises becomes a Failure, and the others are asked all the same."""
    asked = [rule for rule in chosen if rule.holds_on(job.slurm)]
    answers: list[_Answer] = []
    failures: list[Failure] = []
    unasked = list(asked)
    stops: list[Stop] = []
    budget = Budget(len(job.text))
    with budget.use():
        for rule in asked:
            try:
                answers.extend(_answer(rule, finding, job) for finding in rule.check(job))
            except OverBudgetError:
                why = f"the rules take more than {budget.steps:,} steps"
                stops.append(Stop(f"the rule {rule.name}", job.here, why))
                break
            except Exception as error:
                failures.append(Failure(rule.name, job.path, error))
            unasked.remove(rule)
    answers = _once_a_place(answers)
    causes = _Causes(job, answers)
    comments = _Comments(job)
    # Every comment is asked, so that one for a hidden finding counts as used.
    suppressed = [comments.suppress(answer) for answer in answers]
    left = [
        answer
        for answer, silenced in zip(answers, suppressed, strict=True)
        if not silenced and not causes.explain(answer)
    ]
    meta = next((rule for rule in asked if rule.name == UNUSED_SUPPRESSION), None)
    if meta is not None:
        failed = {failure.what for failure in failures} | {rule.name for rule in unasked}
        judged = [
            rule
            for rule in asked
            if rule.name not in failed and not (rule.needs and job.profile is None)
        ]
        answers = comments.problems(meta, judged)
        left += [answer for answer in answers if not comments.suppress(answer)]
    found = [_diagnostic(answer, job) for answer in left]
    found += [_stopped(stop, job) for stop in (*job.stops(), *stops)]
    return Outcome(tuple(sorted(found, key=order)), tuple(failures), comments.texts)


def _answer(rule: Rule, finding: Finding, job: Job) -> _Answer:
    return _Answer(rule, finding, _locate(finding.place, job))


def _locate(place: Place, job: Job) -> Place:
    if place.path:
        return place
    return place._replace(path=job.path) if job.origin is None else job.origin.locate(place)


def _once_a_place(answers: Iterable[_Answer]) -> list[_Answer]:
    """The first answer of each rule about each place."""
    first: dict[tuple[str, tuple[str, int, int]], _Answer] = {}
    for answer in answers:
        first.setdefault((answer.rule.name, answer.location.start), answer)
    return list(first.values())


class _Causes:
    """Which rules' findings are consequences of a cause that has been found.

    The components of a heterogeneous job are jobs of their own: what is wrong with one
    explains nothing in another. A finding on no directive is taken to concern them all.
    """

    def __init__(self, job: Job, answers: Sequence[_Answer]) -> None:
        self._components = {d.line: d.component for d in job.script.directives}
        self._hidden: dict[str, set[int | None]] = {}
        for answer in answers:
            component = self._component(answer.finding.place)
            for name in answer.rule.hides:
                self._hidden.setdefault(name, set()).add(component)

    def _component(self, place: Place) -> int | None:
        return None if place.path else self._components.get(place.line)

    def explain(self, answer: _Answer) -> bool:
        """Whether the finding has been said by naming its cause."""
        where = self._hidden.get(answer.rule.name, set())
        component = self._component(answer.finding.place)
        return bool(where) and (component is None or None in where or component in where)


class _Comments:
    """The suppressions in the files of a job, and which of them suppressed something."""

    def __init__(self, job: Job) -> None:
        self.texts = {job.path: job.text if job.origin is None else job.origin.yaml}
        self._job = job
        self._by_rule: dict[str, Aimed] = {}
        self._extents: dict[str, lines.Extents] = {}
        # Of each rule at the lines of a command: whether a comment answers for it.
        self._asked: dict[tuple[str, str, Lines], bool] = {}
        self._used: set[tuple[Suppression, str]] = set()

    def suppress(self, answer: _Answer) -> bool:
        """Whether a comment answers for the finding."""
        path, line, _ = answer.location.start
        comments = self._at(path).get(answer.rule.name)
        if not comments:
            return False
        first, last = self._lines(path, line)
        key = path, answer.rule.name, (first, last)
        if key not in self._asked:
            aimed = [n for n in comments if n == 0 or first <= n <= last]
            for number in aimed:
                self._used.update(comments[number])
            self._asked[key] = bool(aimed)
        return self._asked[key]

    def problems(self, meta: Rule, judged: Sequence[Rule]) -> list[_Answer]:
        """What is wrong with the comments in the script itself, said by the rule `meta`.

        Those in a program may be for another job that starts it.
        """
        path = self._job.path
        comments = suppressions.read(self.texts[path])
        return [
            _Answer(meta, finding, finding.place._replace(path=path))
            for finding in suppressions.problems(comments, self._used, judged, self.texts[path])
        ]

    def _at(self, path: str) -> Aimed:
        if path not in self._by_rule:
            if path not in self.texts:
                self.texts[path] = _read(path)
            comments = suppressions.read(self.texts[path])
            self._by_rule[path] = suppressions.by_rule(comments)
        return self._by_rule[path]

    def _lines(self, path: str, line: int) -> Lines:
        if path not in self._extents:
            self._extents[path] = lines.Extents(self._read_extents(path))
        return self._extents[path].around(line)

    def _read_extents(self, path: str) -> list[Lines]:
        script = self._job.script
        if path == self._job.path and self._job.origin is not None:
            return []
        if path != self._job.path or not script.is_shell:
            return lines.of_python(self.texts[path])
        commands = [(command.start, command.end) for command in script.shell.commands]
        return lines.of_commands(script.text, commands)


def _read(path: str) -> str:
    """The text of a program that a finding points into; "" where it has gone since."""
    try:
        return Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except (OSError, ValueError):
        return ""


def _stopped(stop: Stop, job: Job) -> Diagnostic:
    return Diagnostic(
        _locate(stop.place, job),
        *other_codes.STOPPED,
        WARNING,
        f"{stop.what} stopped here, and the rest is not looked at",
        stop.why,
        "put what a program has written into a file of its own, which the script runs",
    )


def _one_line(text: str) -> str:
    """A value of the script that is quoted in a clause can hold line breaks."""
    return text if text.isprintable() else " ".join(text.split())


def _diagnostic(answer: _Answer, job: Job) -> Diagnostic:
    rule, finding, location = answer
    # Edits are of the script, which a job file would only make again.
    edits = finding.edits if job.origin is None else ()
    return Diagnostic(
        location,
        rule.name,
        rule.code,
        finding.severity or rule.severity,
        _one_line(finding.message),
        _one_line(finding.why),
        finding.fix,
        tuple(_locate(place, job) for place in finding.also),
        edits,
        job.path if edits else "",
    )
