"""A directive holds something that only a shell would expand.

## What it does

Finds variables (`$USER`, `${SLURM_JOB_ID}`), command substitutions (`$(date)`, backticks) and a
leading `~` in the values of directives. `--comment` may say what it likes.

## Why is this bad

sbatch reads directives before any shell does and expands nothing in them. A log file is called
`${SLURM_JOB_ID}.out` literally; a dependency, a time or a number is refused; a path with `~` names
a folder of that name, and up to 22.05 the job fails without a log. Seen on 20.11 to 26.05.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --output=log-${SLURM_JOB_ID}.out
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --output=log-%j.out
#SBATCH --time=2:00:00
hostname
```

## References

- sbatch(1), FILENAME PATTERN
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.options import expands, new_value, value_place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Edit
    from slurmgen.lint.job import Job
    from slurmgen.slurm.directives import Directive

NAME = "directive-variable"
CODE = "SG103"
SEVERITY = ERROR

_FILES = ("output", "error", "input")
_PATHS = (*_FILES, "chdir", "export-file", "container", "bbf")
_PATTERNS = {
    "SLURM_JOB_ID": "%j",
    "SLURM_JOBID": "%j",
    "SLURM_JOB_NAME": "%x",
    "SLURM_ARRAY_JOB_ID": "%A",
    "SLURM_ARRAY_TASK_ID": "%a",
    "SLURMD_NODENAME": "%N",
    "HOSTNAME": "%N",
    "USER": "%u",
    "LOGNAME": "%u",
}
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_FIRST = re.compile(r"\$\{[^}]*\}?|\$\(\(.*?\)\)|\$\([^)]*\)?|\$\w+|`[^`]*`?")


def check(job: Job) -> Iterator[Finding]:
    for directive in job.script.directives:
        if directive.option == "comment":
            # Free text, for people.
            continue
        value = directive.value or ""
        is_home = directive.option in _PATHS and re.match(r"~[\w-]*(/|$)", value)
        if not expands(value) and not is_home:
            continue
        found = _FIRST.search(value)
        what = found[0] if expands(value) and found is not None else "~"
        yield Finding(
            value_place(job, directive),
            f'"{what}" in --{directive.option} is not expanded',
            "sbatch takes directives as they stand, before any shell runs",
            _fix(directive, what),
            # Under an odd name, but the job runs.
            severity=WARNING if directive.option == "job-name" else ERROR,
            edits=_edits(job, directive, value),
        )


def _fix(directive: Directive, what: str) -> str:
    option = directive.option
    variable = _VARIABLE.fullmatch(what)
    name = (variable[1] or variable[2]) if variable is not None else ""
    if what == "~" or (option in _PATHS and name in ("HOME", "SCRATCH", "WORK", "PWD")):
        return "write the whole path"
    if option in _FILES:
        pattern = _PATTERNS.get(name)
        if pattern is not None:
            return f"write {pattern}"
        return "write the whole path, with %j for the job's id, %x for its name, %u for the user"
    if option == "mail-user":
        return "write the address"
    return f"give --{option} on sbatch's command line, where the shell expands it"


def _edits(job: Job, directive: Directive, value: str) -> tuple[Edit, ...]:
    """The file name with a pattern for each variable, where there is one for all."""
    if directive.option not in _FILES or value.startswith("~") or "\\" in value:
        return ()
    names = [first or second for first, second in _VARIABLE.findall(value)]
    if not all(name in _PATTERNS for name in names):
        return ()
    plain = _VARIABLE.sub(lambda found: _PATTERNS[found[1] or found[2]], value)
    return () if expands(plain) else new_value(job, directive, plain)
