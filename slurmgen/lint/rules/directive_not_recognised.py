"""A line that was meant for a directive is a comment for sbatch.

## What it does

Finds lines with options whose keyword is not `#SBATCH` in column 1: in small letters, misspelt
(`#SABTCH`), indented, with a blank or something else in it (`# SBATCH`, `#!SBATCH`,
`//SBATCH`), glued to what follows (`#SBATCH:`), or with a no-break space behind it. What people
write to switch a directive off (`##SBATCH`, `## SBATCH`) is left alone, and so is a `# SBATCH`
line whose options are all given elsewhere. `# SBATCH` is a warning: it may be switched off.

## Why is this bad

sbatch takes the line for a comment, or for the first command, and says nothing: its options do
not count. Where it does read the keyword, it refuses the script.

## Example

```bash job.sbatch
#!/bin/bash
#sbatch --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=2:00:00
srun hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=2:00:00
srun hostname
```

## References

- sbatch(1), DESCRIPTION
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING, Edit
from slurmgen.lint.facts.options import decides, place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.directives import DirectiveProblem

NAME = "directive-not-recognised"
CODE = "SG102"
SEVERITY = ERROR


def check(job: Job) -> Iterator[Finding]:
    given = {directive.option for directive in job.script.directives}
    alike: dict[str, list[DirectiveProblem]] = {}
    for problem in job.script.block.problems:
        if problem.kind not in ("not-recognised", "glued-keyword"):
            continue
        options = (problem.option or "").split()
        if problem.spaced and options and given.issuperset(options):
            continue
        alike.setdefault(problem.text.lstrip(), []).append(problem)
    for problems in alike.values():
        yield _finding(job, problems)


def _finding(job: Job, problems: list[DirectiveProblem]) -> Finding:
    first = problems[0]
    line = job.script.lines[first.line - 1]
    written = first.text.rstrip("\u00a0").strip()
    options = {option for problem in problems for option in (problem.option or "").split()}
    is_read = line.startswith("#SBATCH")
    severity = WARNING if first.spaced or (options and not any(map(decides, options))) else ERROR
    if is_read:
        message = f'"{written}" is not the keyword of a directive'
        why = (
            "sbatch takes what follows #SBATCH for a word of the directive, and refuses the script"
        )
        if first.text != first.text.rstrip("\u00a0"):
            message = "a no-break space stands behind #SBATCH"
    elif written == "#SLURM":
        message = '"#SLURM" is an old keyword'
        why = "sbatch complains of it, and other tools take it for a comment"
        severity = WARNING
    elif line[:1].isspace() and written.upper() == "#SBATCH":
        message = "the directive is indented"
        why = "sbatch takes it for a comment: its options do not count"
    else:
        message = f'"{written}" is not the keyword of a directive'
        why = "sbatch takes the line for a comment: its options do not count"
        if not written.startswith("#"):
            why = "sbatch takes the line for the first command, and reads no directive from it on"
    fix = "write #SBATCH, in capitals and in column 1"
    if first.spaced:
        fix = "remove the blank behind #, or write ##SBATCH if it is switched off"
    return Finding(
        place(first),
        message,
        why,
        fix,
        severity=severity,
        also=tuple(map(place, problems[1:])),
        # `# SBATCH` may be switched off on purpose.
        edits=tuple(
            Edit(problem.start, problem.end, problem.meant)
            for problem in problems
            if problem.meant is not None and not problem.spaced
        ),
    )
