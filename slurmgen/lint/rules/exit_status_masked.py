"""The job is COMPLETED although its training has failed.

## What it does

Finds trainings whose exit status is lost: an `echo` or `cp` as the script's last command,
`| tee` without pipefail, `|| true`, `exit 0`. Not under `set -e` (where that helps), not where
the status is kept and returned.

## Why is this bad

The job's state is the status of the script's last command (seen on 22.05.8: COMPLETED 0:0).
`--dependency=afterok` starts the next job, mail says "COMPLETED", and `sacct` hides the failure.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
srun python train.py
echo "finished at $(date)"
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
set -e
srun python train.py
echo "finished at $(date)"
```

## References

- bash(1), set -e and set -o pipefail
- sbatch(1), --dependency
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.texts import other_branches
from slurmgen.lint.facts.tools import TOOLS, is_tool
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.words import BATCH, TASK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.commands import Command
    from slurmgen.reading.shell.launch import Launch

NAME = "exit-status-masked"
CODE = "SG507"
SEVERITY = WARNING

# What may stand behind || without anybody learning of the failure.
_FORGETS = frozenset("echo printf true : date sleep touch cat logger mail".split())
_REMEMBERS = re.compile(r"\w=(\$|\d|[\"']?\$)")
_KEEPS = re.compile(r"\$\?|\$\{?PIPESTATUS")
# A test as the script's last line.
_TEST = re.compile(r"^\s*(\[\[?\s.*\]\]?|\(\(.*\)\)|test\s.*)\s*\Z", re.MULTILINE)
# Whoever submits or requeues by the outcome looks at it.
_ACTS = re.compile(r"\bscontrol\s+requeue|\bsbatch\b|\bscancel\b")


class _Mask(NamedTuple):
    """command: whose status counts in place of the training's."""

    command: Command
    what: str
    fix: str


def check(job: Job) -> Iterator[Finding]:
    if job.is_submitter:
        return
    launch = _training(job)
    if launch is None or _traps_errors(job):
        return
    mask = None
    if launch.inner is not launch.command:
        inside = [other.inner for other in job.launches if other.command is launch.command]
        mask = _mask(job, launch.inner, inside, launch.command.end)
    if mask is None:
        mask = _mask(job, launch.command, job.script.shell.commands, len(job.text))
    if mask is None:
        return
    what = "training" if launch.is_training else "program"
    yield Finding(
        job.place_of(mask.command),
        mask.what.replace("training", what),
        f"the job is COMPLETED, and its dependants start, although the {what} has failed",
        mask.fix.replace("training", what),
        also=(job.place_of(launch.command),),
    )


def _training(job: Job) -> Launch | None:
    """The last training in the foreground; without one, the last program that srun starts."""
    trainings = [launch for launch in job.trainings if _counts(launch)]
    steps = [launch for launch in job.steps if _counts(launch) and not is_tool(launch)]
    found = trainings or steps
    return max(found, key=lambda launch: launch.inner.start, default=None)


def _counts(launch: Launch) -> bool:
    if launch.where not in (BATCH, TASK):
        return False
    return not any(
        context.background or context.condition or context.handler or context.substitution
        for context in (launch.command.context, launch.inner.context)
    )


def _traps_errors(job: Job) -> bool:
    """Whether a trap deals with failures, or sets the status at the end."""
    for command in job.commands("trap"):
        signals = {word.text for word in command.words[2:]}
        handler = command.words[1].text if len(command.words) > 1 else ""
        if "ERR" in signals or (signals & {"EXIT", "0"} and "exit" in handler):
            return True
    return False


def _mask(job: Job, command: Command, commands: Sequence[Command], end: int) -> _Mask | None:
    """What hides the status of `command` among the commands of its shell."""
    skipped = other_branches(job.text, command.end)
    behind = [
        other
        for other in commands
        if other.start >= command.end
        and not other.context.handler
        and not other.context.substitution
        and other.start not in skipped
    ]
    tail = job.text[command.end : end]
    if command.caught:
        line = _logical_line(tail)
        handlers = [other for other in behind if other.start < command.end + len(line)]
        if _REMEMBERS.search(line) or any(other.name not in _FORGETS for other in handlers):
            return None
        caught = handlers[0] if handlers else command
        return _Mask(caught, "the failure is caught and forgotten", "exit behind it: || exit 1")
    if command.context.piped and "pipefail" not in command.options and "PIPESTATUS" not in tail:
        last = next((other for other in behind if other.context.fed), command)
        return _Mask(
            last,
            f"the status of the pipe is {last.name or 'the last command'}'s",
            "write set -o pipefail above it",
        )
    if "errexit" in command.options:
        return None
    return _hidden(job, command, behind, end)


def _hidden(job: Job, command: Command, behind: Sequence[Command], end: int) -> _Mask | None:
    """Whether a later command has the last word."""
    # What is joined by && or a pipe belongs to the training.
    at = command.end
    rest = list(behind)
    while rest:
        between = job.text[at : rest[0].start].lstrip(" \t\\\n;)}\"'")
        if not between.startswith(("&&", "|", "2>&1")):
            break
        at = rest.pop(0).end
    rest = [other for other in rest if other.name not in ("trap", "export", "local", "declare")]
    if not rest:
        return None
    first, last = rest[0], rest[-1]
    tail = job.text[at:end]
    if _ACTS.search(tail):
        return None
    if first.name == "exit" and _argument(first) in ("", "$?", '"$?"'):
        return None
    exits = [_argument(other) for other in rest if other.name in ("exit", "return")]
    if any(argument not in ("", "0") for argument in exits):
        return None
    if _KEEPS.search(tail) and (_TEST.search(tail) or any(o.name == "false" for o in rest)):
        return None
    if last.name not in TOOLS and last.name not in ("conda", "deactivate", "mail", "seff"):
        return None
    if last.name == "wait" and len(last.words) > 1:
        return None
    return _Mask(
        last,
        f"the job's status is that of {last.name}, not of the training",
        "write set -e at the top, or exit $? right behind the training",
    )


def _argument(command: Command) -> str:
    return command.words[1].text if len(command.words) > 1 else ""


def _logical_line(text: str) -> str:
    """The rest of a line, with what a brace or a backslash carries on."""
    lines = text.split("\n")
    taken = [lines[0]]
    depth = lines[0].count("{") - lines[0].count("}")
    for line in lines[1:]:
        if depth <= 0 and not taken[-1].rstrip().endswith(("\\", "||", "|| {")):
            break
        taken.append(line)
        depth += line.count("{") - line.count("}")
    return "\n".join(taken)
