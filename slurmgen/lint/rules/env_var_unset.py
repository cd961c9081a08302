"""A variable is used that is not set there.

## What it does

Finds variables of Slurm's that this job doesn't have, because nothing asked for them
(SLURM_NTASKS_PER_NODE, SLURM_GPUS_PER_NODE, SLURM_ARRAY_TASK_ID, ...), because they exist in
steps only, or on other versions, or never did. And variables of the script that a task uses
although they are not exported.

A variable with a default (`${SLURM_CPUS_PER_TASK:-4}`), or one that the script tests, is left
alone; so is one that is only printed. That of an array is a warning: `--array` may be given to
sbatch.

## Why is this bad

An empty word takes its place: `$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))` is 0, and
`--fold $SLURM_ARRAY_TASK_ID` loses its value. Python raises a KeyError.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
torchrun --standalone --nproc_per_node=$SLURM_GPUS_PER_NODE train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
torchrun --standalone --nproc_per_node=$SLURM_GPUS_ON_NODE train.py
```

## References

- sbatch(1), OUTPUT ENVIRONMENT VARIABLES
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.presence import sources_something
from slurmgen.lint.facts.python import runs
from slurmgen.lint.facts.slurm_variables import NAMES, unset
from slurmgen.lint.facts.tools import is_tool
from slurmgen.lint.facts.uses import uses
from slurmgen.lint.finding import Finding
from slurmgen.lint.job import once
from slurmgen.reading.programs import truth
from slurmgen.reading.shell.words import BATCH, TASK, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.slurm_variables import Unset
    from slurmgen.lint.facts.uses import Use
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Piece, Word

NAME = "env-var-unset"
CODE = "SG415"
SEVERITY = ERROR


def check(job: Job) -> Iterator[Finding]:
    if job.is_submitter:
        return
    yield from _of_slurm(job)
    yield from _not_exported(job)
    yield from _never_set(job)
    yield from _of_programs(job)


# --- Slurm's own -----------------------------------------------------------------------------


def _of_slurm(job: Job) -> Iterator[Finding]:
    found: dict[str, list[Use]] = {}
    for use in uses(job, NAMES):
        if _reason(job, use) is not None and not _is_guarded(job, use):
            found.setdefault(use.name, []).append(use)
    for name, group in found.items():
        use = group[0]
        reason = _reason(job, use)
        assert reason is not None
        yield Finding(
            use.place,
            f"{name} is not set here",
            f"{reason.why}: "
            + ("the result is 0 or an error" if use.is_arithmetic else "it is empty"),
            reason.fix,
            ERROR if any(_is_fatal(use) for use in group) else WARNING,
            tuple(other.place for other in group[1:]),
        )


def _reason(job: Job, use: Use) -> Unset | None:
    if use.name in ("SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS") and _gives_gpus(job):
        return None
    in_step = use.piece.where == TASK
    reasons = [unset(use.name, r, job.slurm, in_step=in_step) for r in job.script.requests]
    # A component of a heterogeneous job may have what the others lack.
    if any(reason is None for reason in reasons):
        return None
    reason = reasons[0]
    if reason is not None and reason.options and _is_given_elsewhere(job, use, reason.options):
        return None
    return reason


def _gives_gpus(job: Job) -> bool:
    """Whether the partition alone gives a job its GPUs."""
    return job.profile is not None and job.profile.gpus.form == "none"


def _is_given_elsewhere(job: Job, use: Use, options: tuple[str, ...]) -> bool:
    """Whether the srun around the use gives the option, or a remark that sbatch does."""
    step = use.launch.step
    if use.piece.where == TASK and step is not None:
        if step.opaque or any(option in step.options for option in options):
            return True
    remarks = re.findall(r"^\s*#(?!SBATCH).*\bsbatch\b.*$", job.text, re.MULTILINE)
    return any(f"--{option}" in remark for option in options for remark in remarks)


def _is_guarded(job: Job, use: Use) -> bool:
    """Whether the script gives the variable a default, or looks whether it is set."""
    piece = use.piece
    if use.is_arithmetic and use.name == "SLURM_RESTART_COUNT":
        # Nothing is 0 there, which is what is meant.
        return "nounset" not in use.launch.inner.options
    if piece.kind == VARIABLE and re.match(r":?[-=?+]", piece.operator):
        return True
    if use.name in _assigned(job):
        return True
    name = re.escape(use.name)
    return bool(
        re.search(
            rf"-[nzv]\s+[\"']?(\$\{{?)?{name}\b|\$\{{{name}:?[-=?+]|\bif\b.*\b{name}\b|"
            rf"\[\[?\s.*\b{name}\b",
            job.text,
        )
    )


@once
def _assigned(job: Job) -> set[str]:
    return {assignment.name for assignment in job.script.shell.assignments}


def _is_fatal(use: Use) -> bool:
    """Whether the program can't start without it, as far as one can tell."""
    if use.name.startswith(("SLURM_MEM", "SLURM_ARRAY")):
        # The partition may have a default; an array is often asked for on the command line.
        return False
    if use.is_arithmetic:
        return True
    is_launchers = use.launch.launcher is not None and use.target in use.launch.launcher.options
    is_steps = use.launch.step is not None and use.target in use.launch.step.options
    return is_launchers or is_steps or "nounset" in use.launch.inner.options


# --- the script's own ------------------------------------------------------------------------


def _not_exported(job: Job) -> Iterator[Finding]:
    """`A=1` in the batch shell, and `$A` in single quotes behind `srun bash -c`."""
    seen: set[str] = set()
    for launch in job.launches:
        if launch.where != TASK or launch.inner is launch.command or is_tool(launch):
            continue
        for word in _given(launch):
            for piece in word.variables(TASK):
                name = piece.name
                assigned = launch.command.variables.get(name)
                if name in seen or assigned is None or assigned.exported or piece.operator:
                    continue
                if name in launch.inner.variables or assigned.where != BATCH:
                    continue
                if re.search(
                    rf"\b(for|read)\b[^\n;]*\b{name}\b",
                    job.text[launch.command.start : launch.command.end],
                ):
                    continue
                seen.add(name)
                yield Finding(
                    job.place_of(assigned),
                    f"{name} is not exported, but used in the tasks",
                    "the shell of a task has the exported variables only: it is empty there",
                    f"export {name}",
                    also=(job.place_of(piece),),
                )


def _given(launch: Launch) -> Iterator[Word]:
    yield from launch.words
    if launch.launcher is not None:
        yield from launch.launcher.options.values()
    for assignment in launch.environment.values():
        yield assignment.value


# What a launcher can't do without.
_NEEDED = (
    "nnodes",
    "nproc_per_node",
    "node_rank",
    "master_addr",
    "master_port",
    "rdzv_endpoint",
    "num_machines",
    "num_processes",
    "machine_rank",
    "main_process_ip",
    "main_process_port",
)


def _never_set(job: Job) -> Iterator[Finding]:
    """A launcher's option made of a variable that the script nowhere sets: a typing error."""
    seen: set[str] = set()
    for launch in job.trainings:
        launcher = launch.launcher
        if launcher is None or sources_something(job, launch):
            continue
        for option in _NEEDED:
            word = launcher.option(option)
            for piece in word.variables() if word is not None else ():
                if piece.name in seen or not _is_own(job, piece):
                    continue
                seen.add(piece.name)
                yield Finding(
                    job.place_of(piece),
                    f"{piece.name} is nowhere set",
                    f"unless the submitting shell has exported it, --{option} is empty",
                    "set it above, or write the name of the variable that is meant",
                    WARNING,
                )


def _is_own(job: Job, piece: Piece) -> bool:
    """Whether a variable could only come from the script, and doesn't."""
    name = piece.name
    if piece.operator or piece.value is not None or not name.isidentifier() or name in _KNOWN:
        return False
    if name.startswith(("SLURM", "PMI", "OMPI", "CUDA")) or name in _assigned(job):
        return False
    export = job.request.export or ""
    return name not in export and name not in _set_somehow(job)


@once
def _set_somehow(job: Job) -> set[str]:
    """The names that some command may set, or that have a default."""
    found = set(_SET.findall(job.text)) | set(_WITH_DEFAULT.findall(job.text))
    for line in job.script.lines:
        setter = _SETTER.search(line)
        if setter is not None:
            found.update(re.findall(r"\w+", line[setter.end() :]))
    return found


_SET = re.compile(r"\b(\w+)(?:\[|\+?=)")
_WITH_DEFAULT = re.compile(r"\$\{(\w+):?[-=?]")
_SETTER = re.compile(r"\b(?:read|for|mapfile|readarray|local|declare|printf|getopts|sbatch|let)\b")


_KNOWN = frozenset(
    "HOME USER PWD HOSTNAME HOST SHELL TMPDIR SCRATCH WORK RANDOM UID EUID PPID LOGNAME".split()
)


# --- Python ----------------------------------------------------------------------------------


def _of_programs(job: Job) -> Iterator[Finding]:
    seen: set[str] = set()
    for run in runs(job):
        written = {write.name for write in run.program.env_writes}
        tested = {read.name for read in run.program.env_reads if read.how == "in"}
        for read in run.program.reads(*NAMES):
            is_needed = read.how == "item" or (read.is_int and read.default is None)
            if not is_needed or read.name in seen | written | tested:
                continue
            if read.name in run.launch.environment or read.name in _assigned(job):
                continue
            if any(truth(c.test, run.present) not in (None, c.holds) for c in read.conditions):
                continue
            in_step = run.launch.where == TASK
            request = job.request_of(run.launch)
            reason = unset(read.name, request, job.slurm, in_step=in_step)
            step = run.launch.step
            if reason is None or (
                step is not None and (step.opaque or step.option(*reason.options) is not None)
            ):
                continue
            seen.add(read.name)
            yield Finding(
                read.place,
                f"{read.name} is not set here",
                f"{reason.why}: the program stops with a "
                f"{'KeyError' if read.how == 'item' else 'TypeError'}",
                reason.fix.partition(", or a default")[0],
            )
