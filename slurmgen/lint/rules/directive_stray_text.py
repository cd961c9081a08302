"""A directive holds words that are no option, or an option without the value it needs.

## What it does

Finds what sbatch calls an invalid directive: a blank inside a value (`--mem 64 GB`,
`--mail-type=END, FAIL`, `--time=3 days`), blanks around `=`, remarks without `#`, typographic
dashes, a blank behind a backslash, and words that sbatch reads over silently (behind `""` or
`hetjob` on the same line).

## Why is this bad

sbatch splits a line at blanks. A word that is neither an option nor its value ends it with
"Invalid directive found in batch script". Up to 22.05 a backslash does not protect a blank. Slurm
20.11 takes `hetjob` for the start of another component wherever a directive holds these letters, in
the job's name and in a comment too.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --mem 64 GB
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --mem 64GB
#SBATCH --time=2:00:00
hostname
```

## References

- sbatch(1), DESCRIPTION
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING, Edit, Place
from slurmgen.lint.facts.options import place
from slurmgen.lint.finding import Finding
from slurmgen.slurm.options import catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.directives import DirectiveProblem

NAME = "directive-stray-text"
CODE = "SG104"
SEVERITY = ERROR

_OPEN = re.compile(r"\$\([^)]*$|^[^`]*`[^`]*$|\$\{[^}]*$")
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
# The line on which a backslash protects a blank.
_ESCAPES_SINCE = "24.11"
_SEPARATOR = re.compile("(het|pack)job", re.IGNORECASE)
# Seen on 20.11; 22.05 wants it to be the line's first word.
_SEPARATES_ANYWHERE_BEFORE = "22.05"


def check(job: Job) -> Iterator[Finding]:
    for problem in job.script.block.problems:
        if problem.kind == "escaped-blank":
            if job.slurm is None or job.slurm < _ESCAPES_SINCE:
                yield _escaped(job, problem)
        elif problem.kind == "missing-value":
            yield Finding(
                place(problem),
                f"{problem.text} has no value",
                "sbatch takes the next option for its value, or refuses the script",
                f"write {problem.text}{'=' if problem.text.startswith('--') else ' '}VALUE",
            )
        elif problem.kind == "stray-text" and not _is_expansion(job, problem):
            yield _stray(job, problem)
    if job.slurm is not None and job.slurm < _SEPARATES_ANYWHERE_BEFORE:
        yield from _separators(job)


def _escaped(job: Job, problem: DirectiveProblem) -> Finding:
    known = job.slurm is not None
    return Finding(
        place(problem),
        "a blank stands behind a backslash",
        "up to 22.05 the backslash does not protect it: the word ends there",
        "put the value in double quotes",
        severity=ERROR if known else WARNING,
    )


def _separators(job: Job) -> Iterator[Finding]:
    """Each `hetjob` that old versions take for a separator, on a line that has options."""
    stray = {problem.line for problem in job.script.block.problems}
    for line in sorted({directive.line for directive in job.script.directives} - stray):
        text = job.script.lines[line - 1]
        found = _SEPARATOR.search(text)
        if found is not None:
            yield Finding(
                Place(line, found.start() + 1, len(found[0])),
                f'the line holds the letters "{found[0]}"',
                "up to 20.11 another component of the job starts there, and the line's options"
                " are cut",
                "write it otherwise, say het-job",
            )


def _stray(job: Job, problem: DirectiveProblem) -> Finding:
    text = problem.text.strip()
    refused = "sbatch ends with: Invalid directive found in batch script"
    edits: tuple[Edit, ...] = ()
    fix = "put # before it if it is a remark, or quotes around a value with blanks"
    if problem.meant is not None:
        edits = (Edit(problem.start, problem.end, problem.meant),)
        fix = f"write {_mended(job, problem)}"
    message = f'"{text}" is neither an option nor the value of one'
    if (
        job.text[problem.start : problem.end].strip("\u2010\u2011\u2012\u2013\u2014\u2015\u2212")
        == ""
    ):
        message = f'"{text}" is a typographic dash'
    elif text.startswith("=") or _is_behind_equals(job, problem):
        message = "a blank stands beside the = of an option"
    elif problem.meant is not None and job.text[problem.start - 1] in " =":
        message = f'a blank stands in the value "{text}"'
    elif catalog.find(text.partition("=")[0]) is not None:
        message = f'"{text}" has no dashes before it'
        fix = f"write --{text}"
    elif text.startswith('""'):
        message = f'sbatch reads nothing from "{text}" on'
        refused = "behind an empty word sbatch reads no further on the line"
        fix = "remove the empty quotes"
    elif re.match("(het|pack)job", text, re.IGNORECASE) or _behind_separator(job, problem):
        message = f'sbatch reads over "{text}"'
        refused = "hetjob parts the components of a job, and the rest of its line is not read"
        fix = "put hetjob on a line of its own: #SBATCH hetjob"
    return Finding(place(problem), message, refused, fix, edits=edits)


def _is_behind_equals(job: Job, problem: DirectiveProblem) -> bool:
    """Whether a blank stands at the place, and = before it."""
    return job.text[problem.start - 1 : problem.start + 1] in ("= ", "=\t")


def _mended(job: Job, problem: DirectiveProblem) -> str:
    """The line as it was meant."""
    start = job.script.offset(problem.line)
    end = start + len(job.script.lines[problem.line - 1])
    line = job.text[start : problem.start] + (problem.meant or "") + job.text[problem.end : end]
    return line.rstrip()


def _behind_separator(job: Job, problem: DirectiveProblem) -> bool:
    line = job.script.lines[problem.line - 1]
    return bool(re.match(r"#SBATCH\s*(het|pack)job\s", line, re.IGNORECASE))


def _is_expansion(job: Job, problem: DirectiveProblem) -> bool:
    """Whether the words are the rest of a `$(…)` with a blank in it."""
    return any(
        directive.line == problem.line
        and directive.start < problem.start
        and _OPEN.search(job.text[directive.start : problem.start].rstrip()) is not None
        for directive in job.script.directives
    )
