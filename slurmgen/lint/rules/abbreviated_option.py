"""A directive names the beginning of an option only.

## What it does

Finds long options that are not written in full. Where several options begin so, it is an error.

## Why is this bad

sbatch takes any beginning that only one option has. `--tasks` is not `--ntasks` but
`--tasks-per-node`, which multiplies the tasks by the nodes; and a beginning becomes ambiguous, or
another option's name, with the next release of Slurm: up to 22.05 `--extra` is
`--extra-node-info`.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --tasks=8
#SBATCH --time=2:00:00
srun hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=8
#SBATCH --time=2:00:00
srun hostname
```

## References

- getopt(3), "long option names may be abbreviated"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING, Edit
from slurmgen.lint.facts.options import place
from slurmgen.lint.finding import Finding
from slurmgen.slurm.options import catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.directives import Directive

NAME = "abbreviated-option"
CODE = "SG108"
SEVERITY = WARNING


def check(job: Job) -> Iterator[Finding]:
    for problem in job.script.block.problems:
        if problem.kind == "ambiguous-option":
            name = problem.text.lstrip("-")
            meant = [f"--{known}" for known in catalog.options() if known.startswith(name)]
            yield Finding(
                place(problem),
                f"{problem.text} is the beginning of several options",
                "sbatch refuses it as ambiguous",
                f"write {' or '.join(meant[:6])}",
                severity=ERROR,
            )
    unknown = {p.start for p in job.script.block.problems if p.kind == "unknown-option"}
    for directive in job.script.directives:
        if directive.start not in unknown and _is_short(directive):
            yield _abbreviated(directive)


def _is_short(directive: Directive) -> bool:
    name = directive.spelled.removeprefix("--")
    return directive.spelled.startswith("--") and (
        name != directive.option and directive.option.startswith(name)
    )


def _abbreviated(directive: Directive) -> Finding:
    written = directive.spelled
    if directive.option == "tasks-per-node":
        return Finding(
            place(directive),
            f"{written} is --tasks-per-node, the number of tasks on each node",
            "sbatch completes the name: --ntasks, the number of all tasks, does not begin so",
            "write --ntasks or --ntasks-per-node in full",
        )
    end = directive.start + len(written)
    return Finding(
        place(directive),
        f"{written} is only the beginning of --{directive.option}",
        "sbatch completes it, until a release has another option that begins so",
        f"write --{directive.option}",
        edits=(Edit(directive.start, end, f"--{directive.option}"),),
    )
