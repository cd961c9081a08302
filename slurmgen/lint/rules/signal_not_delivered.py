"""The signal of --signal reaches nobody who waits for it.

## What it does

Finds `--signal` where its target does not exist: without `B:` for programs that no srun starts,
and for traps of the batch script; with `B:` where the script has no trap, or where its trap can't
run because the training is in the foreground.

## Why is this bad

`--signal=USR1@90` goes to the steps, not to the batch shell; `B:USR1@90` to the batch shell
alone. Bash runs a trap between two commands only: with `srun` in the foreground, when it is over.
And a batch shell without a trap is killed by USR1, with the job. No checkpoint is written before
the time limit (all seen on 22.05.8).

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=12:00:00
#SBATCH --signal=USR1@90
python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=12:00:00
#SBATCH --signal=USR1@90
srun python train.py
```

## References

- sbatch(1), --signal
- bash(1), SIGNALS
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.presence import sources_something
from slurmgen.lint.facts.python import directive_place
from slurmgen.lint.facts.texts import other_branches
from slurmgen.lint.facts.tools import is_tool
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.processes import processes
from slurmgen.reading.shell.words import BATCH, TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.commands import Command
    from slurmgen.reading.shell.launch import Launch

NAME = "signal-not-delivered"
CODE = "SG510"
SEVERITY = ERROR

_NUMBERS = {"1": "HUP", "2": "INT", "3": "QUIT", "10": "USR1", "12": "USR2", "15": "TERM"}
_INTERPRETERS = frozenset({"Rscript", "R", "julia", "matlab", "octave", "perl", "node", "java"})


def check(job: Job) -> Iterator[Finding]:
    directive = job.request.directive("signal")
    if directive is None or directive.value is None or not job.script.is_shell:
        return
    *flags, rest = directive.value.split(":")
    signal = _name(rest.partition("@")[0])
    place = directive_place(directive)
    traps = [trap for trap in job.commands("trap") if signal in _signals(trap) and _handles(trap)]
    if any("B" in flag.upper() for flag in flags):
        yield from _to_batch(job, place, signal, traps)
    else:
        yield from _to_steps(job, place, signal, traps)


def _name(text: str) -> str:
    text = text.upper().removeprefix("SIG")
    return _NUMBERS.get(text, text)


def _signals(trap: Command) -> set[str]:
    return {_name(word.text) for word in trap.words[2:]}


def _handles(trap: Command) -> bool:
    return len(trap.words) > 2 and trap.words[1].text not in ("", "-")


# --- without B: ------------------------------------------------------------------------------


def _to_steps(job: Job, place: Place, signal: str, traps: list[Command]) -> Iterator[Finding]:
    in_steps = [launch for launch in job.launches if launch.where == TASK and not is_tool(launch)]
    if traps and in_steps and all(_passes_on(job, trap, signal) for trap in traps):
        # What the batch shell alone gets (scancel --batch) reaches the steps too.
        return
    if traps:
        yield Finding(
            place,
            f"the script's trap waits for {signal}, which Slurm sends to the steps only",
            "the trap never runs" + ("" if in_steps else ", and there is no step"),
            f"write --signal=B:{signal}@…, and put srun into the background with wait behind it",
            also=tuple(job.place_of(trap) for trap in traps),
        )
        return
    outside = [launch for launch in job.trainings if launch.where == BATCH]
    if not job.trainings:
        outside = [
            launch
            for launch in job.launches
            if launch.where == BATCH and launch.program in _INTERPRETERS
        ]
    if in_steps or not outside or any(_starts_steps(job, launch) for launch in outside):
        return
    yield Finding(
        place,
        f"{signal} goes to the steps of the job, but no srun starts one",
        "the program never gets it, and writes no checkpoint before the time limit",
        "start the program with srun",
        also=tuple(job.place_of(launch.command) for launch in outside),
    )


def _passes_on(job: Job, trap: Command, signal: str) -> bool:
    """Whether what a trap does is to send the same signal on."""
    handler = trap.words[1].text
    texts = [handler]
    texts += [
        " ".join(word.text for word in command.words)
        for command in job.commands("kill", "scancel")
        if command.function is not None and command.function == handler.strip()
    ]
    return any(re.search(rf"\b(kill|scancel)\b.*\b(SIG)?{signal}\b", text) for text in texts)


def _starts_steps(job: Job, launch: Launch) -> bool:
    """Whether a program calls srun itself."""
    program = job.program(launch)
    return program is not None and any("srun" in p.text for p in processes(program))


# --- with B: ---------------------------------------------------------------------------------


def _to_batch(job: Job, place: Place, signal: str, traps: list[Command]) -> Iterator[Finding]:
    programs = _programs(job)
    if any("exec" in launch.wrappers and launch.where != BATCH for launch in programs):
        return
    if any(launch.inner.name == "exec" for launch in programs):
        return
    if not traps:
        if programs and not sources_something(job, programs[-1]):
            yield Finding(
                place,
                f"{signal} goes to the batch shell alone, which has no trap for it",
                "the shell is killed by it, and the job with it; the program is not told",
                f"drop B: so that the steps get it, or set a trap for {signal} that passes it on",
            )
        return
    # One in the background lets the shell go on to the trap.
    if programs and all(
        launch.inner.start < traps[0].start and not launch.command.background for launch in programs
    ):
        yield Finding(
            job.place_of(traps[0]),
            f"the trap for {signal} is set behind the program",
            "while the program runs, the shell has no trap, and the signal kills it",
            "set the trap above the program",
            also=(place,),
        )
        return
    elsewhere = other_branches(job.text, traps[0].end)
    blocking = [
        launch
        for launch in programs
        if not launch.command.background
        and launch.inner.start > traps[0].start
        and launch.command.start not in elsewhere
    ]
    if blocking:
        yield Finding(
            job.place_of(blocking[0].command),
            f"the trap for {signal} can't run while the program is in the foreground",
            "Bash runs traps between commands: this one's turn comes when the program is over",
            "put it into the background with & and write wait $! behind it",
            also=(place, job.place_of(traps[0])),
        )


def _programs(job: Job) -> list[Launch]:
    """What the script is about: its trainings, or else whatever is no tool."""
    if job.trainings:
        return [t for t in job.trainings if not t.command.context.handler]
    return [
        launch
        for launch in job.launches
        if launch.where in (BATCH, TASK)
        and not is_tool(launch)
        and not launch.command.context.handler
        and not launch.command.context.substitution
        and launch.program
    ]
