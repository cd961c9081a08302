"""An option is given twice, with different values.

## What it does

Finds options that a later directive overrides, also under another spelling (`-N` and `--nodes`).
The same value twice does no harm, and mail types are added up, but not by Slurm 26.05. Each
component of a heterogeneous job has its own.

## Why is this bad

The last one wins and the others do not count: of two `--export` lists or two `--gres` lines the
first is lost, without a message.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --export=ALL,DATA=/data
#SBATCH --export=ALL,TAG=first
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --export=ALL,DATA=/data,TAG=first
#SBATCH --time=2:00:00
hostname
```

## References

- sbatch(1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.errors import Refusal
from slurmgen.lint.facts.options import place
from slurmgen.lint.finding import Finding
from slurmgen.slurm.grammars.memory import parse_memory
from slurmgen.slurm.grammars.time import parse_time
from slurmgen.slurm.options.catalog import ALIASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.directives import Directive

NAME = "duplicate-option"
CODE = "SG113"
SEVERITY = WARNING

# Comma lists that can be written in one.
_LISTS = ("export", "gres", "licenses", "exclude", "nodelist", "mail-type")
# Seen to add up the types of several lines until 24.11, and to take the last one on 26.05.
_MAIL_OVERRIDES_SINCE = "26.05"


def check(job: Job) -> Iterator[Finding]:
    given: dict[tuple[int, str], list[Directive]] = {}
    for directive in job.script.directives:
        option = ALIASES.get(directive.option, directive.option)
        given.setdefault((directive.component, option), []).append(directive)
    for (_, option), directives in given.items():
        if option == "mail-type" and (job.slurm is None or job.slurm < _MAIL_OVERRIDES_SINCE):
            continue
        last = directives[-1]
        lost = [d for d in directives if _meaning(d) != _meaning(last)]
        if not lost or last.value is None:
            continue
        has_lost_gpus = any(map(_has_gpus, lost)) and not _has_gpus(last)
        yield Finding(
            place(lost[-1]),
            f"--{option} is given again on line {last.line}, with another value"
            if last.line != lost[-1].line
            else f"--{option} is given twice, with different values",
            f'the last one counts: "{last.value}"' + ", without the GPUs" * has_lost_gpus,
            "write one list" if option in _LISTS else "keep one of them",
            severity=ERROR if has_lost_gpus else WARNING,
            also=(*map(place, lost[:-1]), place(last)),
        )


def _has_gpus(directive: Directive) -> bool:
    return directive.option == "gres" and "gpu" in (directive.value or "")


def _meaning(directive: Directive) -> object:
    value = directive.value
    try:
        if value is not None and directive.option in ("time", "time-min"):
            return parse_time(value)
        if value is not None and directive.option.startswith("mem"):
            return parse_memory(value)
    except Refusal:
        pass
    return value
