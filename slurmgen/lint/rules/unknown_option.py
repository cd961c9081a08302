"""A directive names an option that sbatch does not have.

## What it does

Finds misspelt options, options with underscores, capitals or one dash, options of srun or of
other schedulers, and those that the release of Slurm does not have (yet, or any more). Options
that well-known plugins add (pyxis' `--container-image`) are left alone; a name that resembles no
option may be that of a site's own plugin and is a warning.

## Why is this bad

sbatch refuses the script: "unrecognized option", exit status 255. A long option behind one dash is
worse: `-nodes=2` is `-n` with the value `odes=2`, and `-output=x` a log called `utput=x`.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks_per_node=1
#SBATCH --time=2:00:00
srun hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=2:00:00
srun hostname
```

## References

- sbatch(1), OPTIONS
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
    from slurmgen.slurm.directives import Directive, DirectiveProblem

NAME = "unknown-option"
CODE = "SG106"
SEVERITY = ERROR

# Of older releases, of other schedulers and of people's memory.
_CALLED = {
    "cores": "cpus-per-task",
    "cpus-per-node": "cpus-per-task",
    "cwd": "chdir",
    "email": "mail-user",
    "email-type": "mail-type",
    "gpu-per-node": "gpus-per-node",
    "mail-address": "mail-user",
    "memory": "mem",
    "name": "job-name",
    "ppn": "ntasks-per-node",
    "project": "account",
    "queue": "partition",
    "share": "oversubscribe",
    "stderr": "error",
    "stdout": "output",
    "walltime": "time",
    "workdir": "chdir",
    "working-dir": "chdir",
}
# What pyxis, shifter, uenv and the X11 plugins add where they are installed.
_PLUGINS = (
    "auks",
    "container-",
    "entrypoint",
    "environment",
    "image",
    "module",
    "no-container-",
    "private-tmp",
    "repo",
    "uenv",
    "use-env",
    "view",
    "volume",
    "vs",
    "x11",
)


def check(job: Job) -> Iterator[Finding]:
    # A job file says which of its options are a plugin's, and knows all others.
    planned = {d.option for d in job.origin.plan.directives} if job.origin else set()
    for problem in job.script.block.problems:
        if problem.text.lstrip("-").partition("=")[0] in planned:
            continue
        if problem.kind == "unknown-option" and not _is_plugin(problem.text):
            yield _unknown(problem)
    unknown = {p.start for p in job.script.block.problems if p.kind == "unknown-option"}
    for directive in job.script.directives:
        option = catalog.find(directive.option)
        if option is None or directive.start in unknown:
            continue
        if not catalog.is_known_in(option, job.slurm):
            yield _of_another_release(job, directive, option)


def _is_plugin(text: str) -> bool:
    name = text.removeprefix("--")
    return text.startswith("--") and any(
        name.startswith(known) if known.endswith("-") else name == known for known in _PLUGINS
    )


def _unknown(problem: DirectiveProblem) -> Finding:
    text = problem.text.split("=")[0]
    name = text.lstrip("-").replace("_", "-").lower()
    why = "sbatch ends with: unrecognized option"
    severity = None
    edits: tuple[Edit, ...] = ()
    is_long = text.startswith("--")
    if catalog.is_srun_only(name):
        message = f"{text} is an option of srun"
        fix = "give it to srun" if name != "exact" else "give it to the srun of each step"
    elif not is_long and problem.option is not None:
        message = f"{text} has one dash in front of a long option"
        why = f"sbatch reads it as -{text[1]} with the value {text[2:]}…, or as several letters"
        fix = f"write --{problem.option}"
    else:
        message = f"sbatch has no option {text}"
        meant = _CALLED.get(name) or problem.option
        fix = f"write --{meant}" if meant is not None else "check its name in sbatch(1)"
        if meant is None and is_long:
            # A site's own plugin may have it.
            severity = WARNING
            why += ", unless a plugin of the site adds it"
        elif not is_long:
            why = "sbatch ends with: invalid option"
    if problem.meant is not None:
        edits = (Edit(problem.start, problem.end, problem.meant),)
    return Finding(place(problem), message, why, fix, severity=severity, edits=edits)


def _of_another_release(job: Job, directive: Directive, option: catalog.Option) -> Finding:
    known = f"since {option.since}" if option.since else f"until {option.until}"
    release = f"Slurm {job.slurm}" if job.slurm is not None else "Slurm"
    return Finding(
        place(directive),
        f"{release} has no option --{option.name}",
        f"sbatch has it {known}, and ends with: unrecognized option",
        "remove it",
    )
