"""Slurm sends another signal than the program waits for.

## What it does

Compares `--signal` with the signals that the program (or Lightning, for it) handles; with `B:`,
where the batch shell gets the signal, what its traps send on is compared.

Silent where the program handles no signal.

## Why is this bad

The signal that comes is not handled, and its default action is to kill the process: instead
of saving a checkpoint the job ends early, and nothing requeues it.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
#SBATCH --signal=USR2@120
srun python train.py
```

```python train.py
import signal
import sys

signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
#SBATCH --signal=USR1@120
srun python train.py
```

```python train.py
import signal
import sys

signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))
```

## References

- sbatch(1), --signal
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.lightning import requeue_signals
from slurmgen.lint.facts.python import directive_place, is_batch, runs
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.processes import SIGNALS, handlers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job

NAME = "signal-mismatch"
CODE = "SG511"
SEVERITY = ERROR
HIDES = ("signal-not-delivered",)

_OPTION = re.compile(r"(?:(?P<who>[BR]+):)?(?:SIG)?(?P<signal>[A-Z0-9]+)(?:@\d+)?", re.IGNORECASE)
# Handled for other reasons than the end of the job.
_OTHER = frozenset({"SIGINT", "SIGCHLD", "SIGALRM", "SIGPIPE", "SIGQUIT", "SIGSEGV", "SIGABRT"})
_KILL = re.compile(r"(?:kill|scancel)\s+(?:-s\s*|--signal[= ]|-)(\w+)")
# Ways to wait for signals that handlers do not show.
_WAITS = ("signal.sigwait", "signal.sigtimedwait", "signal.set_wakeup_fd", "signal.pthread_sigmask")


def check(job: Job) -> Iterator[Finding]:
    yield from _of_traps(job)
    for run in runs(job):
        directive = job.request_of(run.launch).directive("signal")
        sent = _sent(job, directive.value if directive is not None else None)
        if directive is None or sent in (None, "SIGINT") or is_batch(run):
            continue
        handled = _handled(run)
        if handled is None or sent in handled or not set(handled) - _OTHER:
            continue
        # SIGTERM is often handled besides.
        names = sorted(set(handled) - _OTHER, key=lambda name: (name == "SIGTERM", name))
        yield Finding(
            directive_place(directive),
            f"{sent} is sent, but the program handles {' and '.join(names)}",
            f"{sent} is not handled and kills the processes: nothing is saved, nothing requeues",
            f"write --signal={names[0].removeprefix('SIG')}@SECONDS, or handle {sent}",
            also=tuple(place for place in (handled[names[0]],) if place is not None),
        )


def _of_traps(job: Job) -> Iterator[Finding]:
    """`--signal=B:…` and traps of the batch shell, all of which are for other signals."""
    directive = job.request.directive("signal")
    match = _OPTION.fullmatch((directive.value or "") if directive is not None else "")
    if directive is None or match is None or "B" not in (match["who"] or "").upper():
        return
    sent = _full(match["signal"])
    trapped = {
        name: command
        for command in job.commands("trap")
        if len(command.words) > 2 and command.words[1].text not in ("", "-")
        for name in (_full(word.text) for word in command.words[2:])
        if name is not None and name not in _OTHER
    }
    if sent is None or sent in trapped or not trapped:
        return
    names = sorted(trapped, key=lambda name: (name == "SIGTERM", name))
    yield Finding(
        directive_place(directive),
        f"{sent} is sent to the batch shell, but it traps {' and '.join(names)}",
        f"{sent} is not trapped and ends the batch shell, and with it the job: nothing is saved",
        f"write --signal=B:{names[0].removeprefix('SIG')}@SECONDS, or trap {sent}",
        also=(job.place_of(trapped[names[0]]),),
    )


def _sent(job: Job, value: str | None) -> str | None:
    """The signal that reaches the tasks, SIGUSR1; None if none does or it isn't known."""
    match = _OPTION.fullmatch(value or "")
    if match is None:
        return None
    if "B" not in (match["who"] or "").upper():
        return _full(match["signal"])
    # The batch shell has it, and may send another one on.
    words = [
        command.words[1].text
        for command in job.commands("kill", "scancel")
        if command.context.handler and len(command.words) > 2
    ]
    for command in job.commands("trap"):
        words += _KILL.findall(command.words[1].text if len(command.words) > 2 else "")
    sent = {_full(word.removeprefix("--signal=").lstrip("-")) for word in words}
    return sent.pop() if len(sent) == 1 else None


def _full(name: str) -> str | None:
    """SIGUSR1 for USR1, usr1, SIGUSR1 and 10."""
    if name.isdecimal():
        return SIGNALS.get(int(name[:3]))
    full = f"SIG{name.upper().removeprefix('SIG')}"
    return full if full in SIGNALS.values() else None


def _handled(run: Run) -> dict[str, Place | None] | None:
    """The signals that are handled, and where; None where that isn't sure."""
    if any(run.program.called(*_WAITS)) or run.program.uses("submitit"):
        return None
    found: dict[str, Place | None] = {}
    for handler in handlers(run.program):
        if not handler.names:
            return None
        for name in handler.names:
            if not handler.is_default and run.reaches(handler.call):
                found.setdefault(name, handler.call.place)
    for name in requeue_signals(run):
        found.setdefault(name, None)
        # Lightning handles this one too, whatever it is told.
        found.setdefault("SIGTERM", None)
    return found
