"""The script ends while its program still runs in the background.

## What it does

Finds programs that are put into the background with `&` (or detached by `screen -d`, `tmux new -d`
or `docker run -d`) where no `wait` follows, and nothing in the foreground that the script would
stay for.

Helpers beside a program in the foreground (a monitor, a server and its client) are fine.

## Why is this bad

A job lasts as long as its script. When the script has come to its end, Slurm kills what is left
in the background: the job is COMPLETED after a second, and nothing was trained. `nohup` does not
help, it keeps off SIGHUP only.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --gpus-per-node=1
#SBATCH --time=2:00:00
nohup python train.py > train.log 2>&1 &
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --gpus-per-node=1
#SBATCH --time=2:00:00
python train.py > train.log 2>&1
```

## References

- bash(1), wait
- sbatch(1), DESCRIPTION
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts import launching
from slurmgen.lint.facts.python import others
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.words import ELSEWHERE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.commands import Command
    from slurmgen.reading.shell.launch import Launch

NAME = "background-no-wait"
CODE = "SG315"
SEVERITY = ERROR
HIDES = ("exit-status-masked",)

# A pause shorter than this many seconds lets something come up; a longer one keeps the job.
_SHORT = 300
_DETACHED = re.compile(r"-\w*d\w*|--detach|--daemon\w*")


def check(job: Job) -> Iterator[Finding]:
    if job.is_submitter:
        return
    left = [launch for launch in job.launches if _is_left(job, launch)]
    if not left or _waits_at_exit(job):
        return
    last = left[-1]
    after = _after(job, last)
    if any(_waits(job, command, last.command) for command in after):
        return
    behind = {id(command) for command in after}
    foreground = [
        launch for launch in job.launches if id(launch.command) in behind and _is_stay(job, launch)
    ]
    if any(launch.python is None or launch.python != last.python for launch in foreground):
        return
    places = dict.fromkeys(job.place_of(launch.command) for launch in left[:-1])
    is_sure = not foreground
    yield Finding(
        job.place_of(last.command),
        "the script ends without waiting for its background processes",
        "Slurm kills what still runs in the background when the script has come to its end"
        + ("" if is_sure else ", as soon as the last run is done"),
        "put `wait` at the end, or run the program in the foreground",
        None if is_sure else WARNING,
        others(*(place for place in places if place.line != job.place_of(last.command).line)),
    )


def _after(job: Job, launch: Launch) -> list[Command]:
    """What runs behind a launch, in the order in which it runs, functions called again too."""
    commands = job.script.shell.commands
    at = next(at for at, command in enumerate(commands) if command is launch.command)
    found = list(commands[at + 1 :])
    called = {command.name for command in found}
    return found + [c for c in commands[:at] if c.function in called]


def _is_left(job: Job, launch: Launch) -> bool:
    """Whether a launch goes on when the script has passed it by."""
    context = launch.command.context
    if launch.where == ELSEWHERE or context.handler or context.substitution or context.condition:
        return False
    if not launching.is_called(job, launch):
        return False
    if _detaches(launch.command):
        return True
    if not context.background or launching.is_helper(launch):
        return False
    return launch.program not in job.script.shell.functions


def _detaches(command: Command) -> bool:
    texts = [word.text for word in command.words[1:]]
    if command.name == "screen":
        return any(_DETACHED.fullmatch(text) and "m" in text for text in texts[:2])
    if command.name == "tmux":
        return bool(texts) and texts[0].startswith("new") and "-d" in texts
    if command.name in ("docker", "podman") and texts[:1] == ["run"]:
        return any(text in ("-d", "--detach", "-dit", "-itd") for text in texts)
    return False


def _waits(job: Job, command: Command, last: Command) -> bool:
    """Whether a command keeps the script until the background is done."""
    context = command.context
    if context.handler or context.background:
        return False
    texts = [word.text for word in command.words[1:]]
    # A loop that goes on to start the next one waits for no more than that.
    is_paced = context.loop and last.loop and "done" not in job.text[last.end : command.start]
    if command.name == "wait":
        return texts[:1] != ["-n"] or context.condition or not is_paced
    if command.name == "tail":
        return any(text.startswith(("--pid", "-f", "-F")) for text in texts)
    if command.name == "sleep":
        return (context.loop and not is_paced) or _seconds(texts) >= _SHORT
    is_watched = command.name in ("kill", "ps", "pgrep", "jobs") and context.loop and not is_paced
    return is_watched or command.name in ("fg", "read")


def _seconds(texts: list[str]) -> float:
    """How long sleep sleeps; for ever where it cannot be told."""
    factors = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    total = 0.0
    for text in texts:
        found = re.fullmatch(r"([0-9.]+)([smhd]?)", text)
        if found is None:
            return float("inf")
        total += float(found[1].strip(".") or 0) * factors[found[2] or "s"]
    return total


def _is_stay(job: Job, launch: Launch) -> bool:
    """Whether a launch is one that the script stays for."""
    context = launch.command.context
    if context.background or context.handler or launch.where == ELSEWHERE:
        return False
    if launch.program in job.script.shell.functions or _detaches(launch.command):
        return False
    return not launching.is_helper(launch)


def _waits_at_exit(job: Job) -> bool:
    """`trap wait EXIT`"""
    for command in job.commands("trap"):
        texts = [word.text for word in command.words[1:]]
        if "wait" in texts[0:1] and "EXIT" in texts:
            return True
    return False
