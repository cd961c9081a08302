"""Two options are given that sbatch does not take together.

## What it does

Finds pairs of options of which Slurm refuses the one beside the other, or ignores one of them: two
kinds of `--mem`, `--ntasks-per-gpu` with `--ntasks-per-node`, `--cpus-per-task` with
`--cpus-per-gpu`, `--exclusive` with `--oversubscribe`, and more.

## Why is this bad

sbatch ends with "… are mutually exclusive"; older releases take the last one, or drop one without
a word.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --mem=64G
#SBATCH --mem-per-cpu=4G
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --mem-per-cpu=4G
#SBATCH --time=2:00:00
hostname
```

## References

- sbatch(1), --mem, --ntasks-per-gpu, --cpus-per-gpu, --exclusive
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.options import place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.slurm.request import Request

NAME = "mutually-exclusive-options"
CODE = "SG112"
SEVERITY = ERROR

_FATAL = "sbatch ends with a fatal error: they are mutually exclusive"


class _Pair(NamedTuple):
    """since: the line from which Slurm refuses the two; before: what it did until then."""

    first: str
    second: str
    since: str = ""
    before: str = ""
    why: str = _FATAL
    value: str = ""


_PAIRS = (
    _Pair("mem", "mem-per-cpu"),
    _Pair("mem", "mem-per-gpu"),
    _Pair("mem-per-cpu", "mem-per-gpu"),
    _Pair("ntasks-per-gpu", "ntasks-per-node"),
    _Pair("ntasks-per-gpu", "gpus-per-task"),
    _Pair("ntasks-per-gpu", "gpus-per-socket"),
    _Pair("ntasks-per-gpu", "tres-per-task", "23.02"),
    _Pair("cpus-per-task", "cpus-per-gpu", "22.05", "20.11 takes both"),
    _Pair("cpus-per-task", "tres-per-task", "23.11", value=r"(^|,)cpu\b"),
    _Pair("gpus-per-task", "tres-per-task", "24.11", value=r"(^|,)gres[/:]gpu\b"),
    _Pair("exclusive", "oversubscribe", "23.02", "up to 22.05 the last one wins"),
    _Pair("core-spec", "thread-spec", "22.05", "up to 21.08 the last one wins"),
    _Pair("bb", "bbf"),
    _Pair("quiet", "verbose", why="sbatch refuses to be both"),
    _Pair("spread-segments", "consolidate-segments"),
    _Pair("gpu-bind", "tres-bind", "23.11", why="both are the binding of the GPUs"),
)
_IGNORED = (
    _Pair("hint", "threads-per-core", before="the hint is ignored beside it"),
    _Pair("hint", "ntasks-per-core", before="the hint is ignored beside it"),
    _Pair("requeue", "no-requeue", before="the last one wins"),
)


def check(job: Job) -> Iterator[Finding]:
    for index, request in enumerate(job.script.requests):
        for pair in _PAIRS:
            yield from _judge(job, request, index, pair)
        for pair in _IGNORED:
            yield from _judge(job, request, index, pair._replace(since="99.99"))


def _judge(job: Job, request: Request, component: int, pair: _Pair) -> Iterator[Finding]:
    # A flag that takes back the other is no longer in the request.
    given = {d.option: d for d in request.directives}
    given.update({d.option: d for d in request.directives if request.directive(d.option) is d})
    first, second = (
        given.get(name) or request.directive(name) for name in (pair.first, pair.second)
    )
    if first is None or second is None:
        return
    if pair.value and not re.search(pair.value, second.value or ""):
        return
    is_refused = job.slurm is None or job.slurm >= pair.since
    if pair.since == "99.99":
        is_refused = False
    elif not is_refused and not pair.before:
        return
    if component and max(first.component, second.component) < component:
        # Said of the component that they come from.
        return
    early, late = sorted((first, second), key=lambda directive: directive.start)
    why = pair.why if is_refused else pair.before
    if is_refused and pair.since > "22.05":
        why += f" (from {pair.since} on{'; ' + pair.before if pair.before else ''})"
    yield Finding(
        place(late),
        f"{late.spelled} is given beside {early.spelled}",
        why,
        "keep one of them",
        severity=ERROR if is_refused else WARNING,
        also=(place(early),),
    )
