"""The program takes its local rank as an option that the launcher does not pass.

## What it does

Finds programs started by `torchrun` (or by srun, several to a node) that declare `--local_rank`
and read the rank from nowhere else, and programs whose parser refuses the `--local-rank` that
`torch.distributed.launch` adds.

## Why is this bad

torchrun passes nothing and sets LOCAL_RANK, srun SLURM_LOCALID; the option keeps its default in
every process, and all of them use one GPU. From torch 2.0 on `torch.distributed.launch` passes
`--local-rank=N`, with a dash: argparse stops with "unrecognized arguments: --local-rank=0" (seen
with 2.13).

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --time=1:00:00
torchrun --standalone --nproc_per_node=4 train.py
```

```python train.py
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()
torch.cuda.set_device(args.local_rank)
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --time=1:00:00
torchrun --standalone --nproc_per_node=4 train.py
```

```python train.py
import os

import torch

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
```

## References

- https://docs.pytorch.org/docs/stable/elastic/run.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.python import others, runs, sets_up_elsewhere
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.frameworks import CARING, frameworks
from slurmgen.reading.shell.starters import TORCH_LAUNCH, TORCHRUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Argument, Call

NAME = "local-rank-arg"
CODE = "SG604"
SEVERITY = ERROR
HIDES = ("no-set-device",)


def check(job: Job) -> Iterator[Finding]:
    for run in runs(job):
        launcher = run.launch.launcher
        flag = next((item for item in run.program.arguments if _is_local_rank(item)), None)
        if launcher is not None and launcher.kind == TORCH_LAUNCH:
            if launcher.option("use_env") is None:
                yield from _refused(run, flag)
                continue
        elif (launcher is not None and launcher.kind != TORCHRUN) or (
            launcher is None and (run.extent.tasks_per_node or 1) < 2
        ):
            continue
        if flag is not None and not _knows_better(run) and _is_used(run, flag):
            starter = launcher.kind if launcher is not None else "srun"
            yield Finding(
                flag.place,
                f"{starter} does not pass {flag.flags[0]}",
                _why_unset(flag),
                f"read int(os.environ[{'LOCAL_RANK' if launcher else 'SLURM_LOCALID'!r}]) "
                "in place of the option",
                also=(run.place,),
            )


def _refused(run: Run, flag: Argument | None) -> Iterator[Finding]:
    """What torch.distributed.launch passes is not among the program's options."""
    flags = {item for argument in run.program.arguments for item in argument.flags}
    parse = next((call for call in run.program.calls if _parses(call) and run.reaches(call)), None)
    if parse is None or "--local-rank" in flags or any(run.program.methods("parse_known_args")):
        return
    if frameworks(run.program) & CARING and flag is None:
        return
    yield Finding(
        flag.place if flag is not None else parse.place,
        "torch.distributed.launch passes --local-rank, which the program does not take",
        "argparse stops with “unrecognized arguments: --local-rank=0” (torch 2.0 and later)",
        'start it with torchrun, and read int(os.environ["LOCAL_RANK"]) in place of the option',
        also=others(run.place, parse.place if flag is not None else None),
    )


def _parses(call: Call) -> bool:
    """``parse_args()`` of an argparse parser, without a list of its own."""
    receiver = call.receiver
    return (
        call.method == "parse_args"
        and not call.args
        and receiver is not None
        and receiver.kind == "call"
        and receiver.name == "argparse.ArgumentParser"
    )


def _is_local_rank(argument: Argument) -> bool:
    return any(flag.lstrip("-").replace("-", "_") == "local_rank" for flag in argument.flags)


def _knows_better(run: Run) -> bool:
    """Whether the rank comes from elsewhere as well."""
    program = run.program
    return (
        any(program.reads("LOCAL_RANK", "SLURM_LOCALID", "SLURM_PROCID"))
        or run.word_of("local_rank") is not None
        or bool(frameworks(program) & CARING)
        or sets_up_elsewhere(program)
    )


def _is_used(run: Run, flag: Argument) -> bool:
    return flag.is_required or flag.dest in run.program.words


def _why_unset(flag: Argument) -> str:
    if flag.is_required:
        return "The option is required: every process stops with a usage error"
    default = flag.default.literal if flag.default.is_constant else None
    return f"It stays {default} in every process: they share a GPU, or each thinks it is alone"
