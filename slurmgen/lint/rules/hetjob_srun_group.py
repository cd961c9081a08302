"""srun in a heterogeneous job runs in the first component only.

## What it does

Finds srun without `--het-group` in a job with several components where no step names another
component.

## Why is this bad

Without `--het-group` srun starts its tasks in component 0. The nodes and GPUs of the others are
allocated, idle, and are charged (seen on 22.05: one task in place of three).

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --mem=8G --time=2:00:00
#SBATCH hetjob
#SBATCH --nodes=1 --ntasks=2 --gpus-per-node=2
srun python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --mem=8G --time=2:00:00
#SBATCH hetjob
#SBATCH --nodes=1 --ntasks=2 --gpus-per-node=2
srun --het-group=0,1 python train.py
```

## References

- srun(1), --het-group
- Slurm, Heterogeneous Job Support: https://slurm.schedmd.com/heterogeneous_jobs.html
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts import launching
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "hetjob-srun-group"
CODE = "SG310"
SEVERITY = WARNING
HIDES = ("parallel-steps-serialise",)

_GROUP = re.compile(r"--(het|pack)-group(?:=(.*))?$", re.DOTALL)


def check(job: Job) -> Iterator[Finding]:
    components = len(job.script.requests)
    if components < 2 or not job.steps or _others_are_named(job):
        return
    launch = next((item for item in job.steps if not launching.is_helper(item)), job.steps[0])
    last = components - 1
    groups = "0,1" if last == 1 else f"0-{last}"
    yield Finding(
        launching.start_place(job, launch),
        f"srun runs in the first of {components} components",
        "Without --het-group it starts tasks in component 0 alone; the nodes of the others idle",
        f"say where: srun --het-group={groups} for all, or an srun with --het-group=N for each",
    )


def _others_are_named(job: Job) -> bool:
    """Whether any step may run outside component 0: by --het-group, or by `:` between parts."""
    for command in job.script.shell.commands:
        texts = [word.text for word in command.words]
        for text, behind in zip_longest(texts, texts[1:], fillvalue=""):
            found = _GROUP.search(text)
            if found is not None and (found[2] or behind) != "0":
                return True
        if ":" in texts and "srun" in " ".join(texts[: texts.index(":")]):
            return True
    return "SLURM_HET_SIZE" in job.text
