"""Directives as rules look at them: where they stand, and which have a value to judge."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import Edit, Place
from slurmgen.slurm.options import catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.directives import Directive, DirectiveProblem

_EXPANSION = re.compile(r"\$[A-Za-z_{(]|`")
# What a job gets, and what starts it at all; without the others it runs, if not as it should.
_DECIDING = catalog.decided_by_the_plan() | frozenset(
    "account array constraint dependency exclusive mem mem-per-cpu mem-per-gpu nodelist "
    "partition".split()
)


def place(item: Directive | DirectiveProblem) -> Place:
    """Where a directive, or what is wrong with one, stands."""
    return Place(item.line, item.column, item.length)


def value_place(job: Job, directive: Directive) -> Place:
    """Where a directive's value stands; the whole of it where it has none."""
    if directive.value_start is None or directive.value_end is None:
        return place(directive)
    return job.place(directive.value_start, directive.value_end)


def expands(value: str) -> bool:
    """Whether a value holds what only a shell would expand."""
    return _EXPANSION.search(value) is not None


def decides(option: str | None) -> bool:
    """Whether what the job gets depends on an option."""
    return option in _DECIDING


def sound(job: Job, *options: str) -> Iterator[Directive]:
    """The directives of these options (all, where none is named) whose values can be judged.

    Not those which sbatch would read otherwise, nor those with variables in the value:
    other rules say so. Of one that is given several times, only the last counts.
    """
    spoilt = [
        (problem.start, problem.end)
        for problem in job.script.block.problems
        if problem.kind not in ("after-command", "not-recognised", "glued-keyword", "continuation")
    ]
    judged: set[int] = set()
    for request in job.script.requests:
        for directive in request.directives:
            is_last = request.directive(directive.option) is directive
            is_asked = not options or directive.option in options
            # What holds for the whole job is in every component's request.
            if not is_last or not is_asked or directive.start in judged:
                continue
            judged.add(directive.start)
            if any(start < directive.end and directive.start <= end for start, end in spoilt):
                continue
            if directive.value is None or not expands(directive.value):
                yield directive


def new_value(job: Job, directive: Directive, value: str) -> tuple[Edit, ...]:
    """The edit that gives a directive another value, if it is written without quotes."""
    start, end = directive.value_start, directive.value_end
    if start is None or end is None or job.text[start:end] != directive.value:
        return ()
    return (Edit(start, end, value),)
