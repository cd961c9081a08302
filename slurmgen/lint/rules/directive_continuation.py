r"""A directive is continued on a line without `#SBATCH`.

## What it does

Finds options on lines of their own that do not start with `#SBATCH`, behind a backslash or not.
So do
options behind `#` alone, where a backslash stands before. A backslash before another directive, a
remark or a blank line does no harm.

## Why is this bad

For sbatch a backslash at the end of a line means nothing: the next line is the first command of
the script. Its options do not count, the directives below do not either, and sbatch says nothing;
the shell then looks for a program called `--ntasks-per-node=4`.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2 \
        --ntasks-per-node=4
#SBATCH --time=2:00:00
srun hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=2:00:00
srun hostname
```

## References

- sbatch(1), DESCRIPTION
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, Edit, Place
from slurmgen.lint.facts.options import place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "directive-continuation"
CODE = "SG105"
SEVERITY = ERROR
# The shell takes the bare lines for commands, and that is said here.
HIDES = ("directive-after-command", "broken-continuation")


def check(job: Job) -> Iterator[Finding]:
    for problem in job.script.block.problems:
        if problem.kind != "continuation":
            continue
        bare = range(problem.line + 1, problem.last_line + 1)
        is_comment = job.script.lines[problem.last_line - 1].lstrip().startswith("#")
        is_alone = not problem.text.startswith("\\")
        yield Finding(
            place(problem),
            "options stand on a line without #SBATCH"
            if is_alone
            else "a directive is continued on a line without #SBATCH",
            "sbatch takes that line for a comment: its options do not count"
            if is_comment
            else "sbatch takes that line for the first command: its options do not count, nor do "
            "the directives below it",
            "write #SBATCH before the options of each line",
            also=tuple(Place(number, 1, len(job.script.lines[number - 1])) for number in bare),
            edits=()
            if problem.meant is None
            else (Edit(_blanks_before(job, problem.start), problem.end, problem.meant),),
        )


def _blanks_before(job: Job, start: int) -> int:
    """Where the blanks in front of a backslash start."""
    at = start
    while job.text[start] == "\\" and job.text[at - 1] in " \t":
        at -= 1
    return at
