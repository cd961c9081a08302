"""A directive stands behind the first command.

## What it does

Finds `#SBATCH` lines behind the first line that is neither blank nor a comment. Text in a
here-document or in a string is none.

## Why is this bad

sbatch reads no further than the first command, whatever it is (`set -e`, `module load`, `cd`, a
variable), and says nothing. The job gets the default partition, one node and one task, no GPU and
the default time limit.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --job-name=train
module load cuda
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --time=2:00:00
module load cuda
hostname
```

## References

- sbatch(1), DESCRIPTION
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING, Edit
from slurmgen.lint.facts.options import decides, expands, place
from slurmgen.lint.facts.texts import string_lines
from slurmgen.lint.finding import Finding
from slurmgen.slurm import directives

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.directives import DirectiveProblem

NAME = "directive-after-command"
CODE = "SG101"
SEVERITY = ERROR


def check(job: Job) -> Iterator[Finding]:
    block = job.script.block
    # Without a first line that is a comment sbatch refuses the script, and that is said.
    if block.ends_at_line == 1 or any(
        problem.line <= block.ends_at_line <= problem.last_line
        for problem in block.problems
        if problem.kind in ("not-recognised", "continuation")
    ):
        return
    lost = [problem for problem in block.problems if problem.kind == "after-command"]
    if lost:
        data = string_lines(job.script)
        lost = [problem for problem in lost if problem.line not in data]
    if not lost:
        return
    options = {
        directive.option
        for problem in lost
        for directive in directives.read(problem.text).directives
    }
    command = job.script.lines[block.ends_at_line - 1].strip()
    several = f"{len(lost)} directives stand" if len(lost) > 1 else f'"{lost[0].text}" stands'
    yield Finding(
        place(lost[0]),
        f'{several} behind the first command, "{_short(command)}"',
        "sbatch reads no directive behind a command, and says nothing: the job gets the defaults",
        f"move them above line {block.ends_at_line}"
        if len(lost) > 1
        else f"move it above line {block.ends_at_line}",
        severity=ERROR if not options or any(map(decides, options)) else WARNING,
        also=tuple(map(place, lost[1:])),
        edits=_moved(job, lost),
    )


def _moved(job: Job, lost: list[DirectiveProblem]) -> tuple[Edit, ...]:
    """The lines behind the last directive that counts, or the shebang.

    Not where something decides whether a line is reached: who wrote that meant a choice.
    """
    script, block = job.script, job.script.block
    if any(problem.column != 1 or expands(problem.text) for problem in lost):
        return ()
    if script.shebang is None or "\r" in job.text:
        return ()
    last = max((directive.line for directive in block.directives), default=1)
    edits = []
    for problem in lost:
        start = script.offset(problem.line)
        if problem.line == len(script.lines):
            # Without a line end of its own it takes the one before it.
            edits.append(Edit(start - 1, len(job.text), ""))
        else:
            edits.append(Edit(start, script.offset(problem.line + 1), ""))
    text = "".join(f"{script.lines[problem.line - 1]}\n" for problem in lost)
    at = script.offset(last + 1)
    return (Edit(at, at, text), *edits)


def _short(command: str) -> str:
    return command if len(command) <= 40 else f"{command[:39]}…"
