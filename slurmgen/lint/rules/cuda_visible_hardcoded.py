"""CUDA_VISIBLE_DEVICES is written by hand.

## What it does

Finds CUDA_VISIBLE_DEVICES (and ROCR_VISIBLE_DEVICES) set to numbers, to a loop's index or to the
array's, in the script, in a Python program, and as `accelerate --gpu_ids`. Hiding all GPUs, lists
cut out of Slurm's own, and `$SLURM_LOCALID` where every task sees all GPUs are left alone, and so
are processes that share out the GPUs of an `--exclusive` node. As many numbers from 0 on as the
job has GPUs are a warning: that is what Slurm sets too where devices are confined.

## Why is this bad

Slurm sets the variable to the GPUs that the job was given, which may be 2 and 3. The export wins
in the batch shell, and in a Python program always: the training runs on another job's GPUs, or
finds none (seen on 22.05.8). An srun step sets the variable anew, and the export has no effect.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
export CUDA_VISIBLE_DEVICES=0
python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
python train.py
```

## References

- https://slurm.schedmd.com/gres.html#GPU_Management
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.settings import settings
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs.roles import roles
from slurmgen.reading.shell.starters import ACCELERATE, DEEPSPEED
from slurmgen.reading.shell.words import ARITHMETIC, BATCH, COMMAND, TASK, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.facts.settings import Setting
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Word

NAME = "cuda-visible-hardcoded"
CODE = "SG508"
SEVERITY = ERROR

_NAMES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_MOST = 8
_INDICES = re.compile(r"\s*[\"']?\d+(\s*,\s*\d+)*,?[\"']?\s*")
_LOCAL = ("SLURM_LOCALID", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_PROCID")


class _Hand(NamedTuple):
    """place: where it is written; wins: whether it replaces what Slurm has set.

    same: whether it is what Slurm sets where devices are confined.
    """

    place: Place
    name: str
    text: str
    wins: bool
    bound: bool = False
    same: bool = False


def check(job: Job) -> Iterator[Finding]:
    found = [*_settings(job), *_options(job)]
    if not found:
        return
    first = found[0]
    wins = any(hand.wins for hand in found)
    is_harmful = any(hand.bound or (hand.wins and not hand.same) for hand in found)
    yield Finding(
        first.place,
        f"{first.name} is set to {first.text} by hand",
        "each task sees one GPU, which is number 0: the others find none"
        if first.bound
        else "these may be another job's GPUs, or none of this job's"
        if is_harmful
        else "without confined devices these may be another job's GPUs"
        if wins
        else "srun sets the variable anew in each step: the line has no effect, or hides what "
        "Slurm gave",
        "remove it: Slurm has set it to the GPUs of the job",
        None if is_harmful else WARNING,
        tuple(dict.fromkeys(hand.place for hand in found[1:])),
    )


def _settings(job: Job) -> Iterator[_Hand]:
    for setting in settings(job):
        if setting.name not in _NAMES or _fits(job, setting):
            continue
        text = _text(job, setting)
        bound = not text and _is_bound(job, setting)
        if not text and not bound:
            continue
        if setting.run is not None and setting.write is not None:
            # Slurm has set it where GPUs were asked for.
            if setting.write.how == "setdefault" and job.request.node_gpus != 0:
                continue
        shown = text or (setting.word.text if setting.word is not None else "the local rank")
        same = setting.run is None and _is_all(job, text)
        yield _Hand(setting.place, setting.name, shown, _wins(setting), bound, same)


def _fits(job: Job, setting: Setting) -> bool:
    """Whether the numbers are right: on whole nodes, all GPUs or one for each process."""
    request = job.request
    if setting.run is not None:
        return False
    # Hardly any node has more than eight.
    is_whole = request.exclusive or (request.node_gpus or 0) >= _MOST
    if is_whole and _is_all(job, setting.literal or ""):
        return True
    return request.exclusive and any(
        launch.command.background or launch.command.loop for launch in setting.launches
    )


def _is_all(job: Job, text: str) -> bool:
    """Whether the numbers are those of as many GPUs as the job has on a node, from 0 on."""
    every = ",".join(str(number) for number in range(job.request.node_gpus or 0))
    return bool(every) and text.replace(" ", "").strip("\"',") == every


def _text(job: Job, setting: Setting) -> str:
    """The numbers, as they are written; empty where they come from Slurm."""
    literal = setting.literal
    if literal is not None:
        return literal.strip() if _INDICES.fullmatch(literal) else ""
    return _by_number(job, setting.word) if setting.word is not None else ""


def _by_number(job: Job, word: Word) -> str:
    """`$i` of a loop over numbers, `$((i % 4))`, `$(seq -s, 0 3)`, `$SLURM_ARRAY_TASK_ID`."""
    if len(word.pieces) != 1:
        return ""
    piece = word.pieces[0]
    if piece.kind == VARIABLE and not piece.operator:
        counts = piece.name == "SLURM_ARRAY_TASK_ID" or _loops_over_numbers(job, piece.name)
        return piece.text if counts else ""
    if piece.kind == COMMAND:
        return piece.text if re.match(r"\$\(\s*seq\b", piece.text) else ""
    if piece.kind == ARITHMETIC:
        names = set(re.findall(r"[A-Za-z_]\w*", piece.text))
        if names and all(
            name == "SLURM_ARRAY_TASK_ID" or _loops_over_numbers(job, name) for name in names
        ):
            return piece.text
    return ""


def _loops_over_numbers(job: Job, name: str) -> bool:
    name = re.escape(name)
    return bool(
        re.search(
            rf"\bfor\s+{name}\s+in\s+(\d+(\s+\d+)*\s*(;|$)|\{{\d+\.\.|\$\(\s*seq\b|`\s*seq\b)|"
            rf"\bfor\s*\(\(\s*{name}\s*=",
            job.text,
            re.MULTILINE,
        )
    )


def _is_bound(job: Job, setting: Setting) -> bool:
    """Whether a task takes its local rank as index, but sees one GPU."""
    for launch in setting.launches:
        extent = job.extent(launch)
        if extent.gpus_per_task != 1 or (extent.tasks_per_node or 1) < 2:
            continue
        if setting.word is not None:
            return setting.word.uses(*_LOCAL, where=TASK) is not None
        if setting.value is not None and setting.run is not None:
            return bool(roles(setting.value, setting.run.present) & {"local_rank", "rank"})
    return False


def _wins(setting: Setting) -> bool:
    if setting.run is not None:
        # The default of an option may be given another value.
        value = setting.write.value if setting.write is not None else None
        return value is None or value.kind != "option"
    return any(_is_last(launch, setting.name) for launch in setting.launches)


def _is_last(launch: Launch, name: str) -> bool:
    """Whether nothing sets the variable between the script's line and the program."""
    if launch.where == BATCH:
        return True
    assignment = launch.environment.get(name)
    return assignment is not None and assignment.where == TASK


def _options(job: Job) -> Iterator[_Hand]:
    for launch in job.trainings:
        launcher = launch.launcher
        if launcher is None or job.request.exclusive:
            continue
        for kind, option in ((ACCELERATE, "gpu_ids"), (DEEPSPEED, "include")):
            word = launcher.option(option) if launcher.kind == kind else None
            # deepspeed --include host:0,1
            literal = (word.guess if word is not None else "").rpartition(":")[2]
            if word is not None and _INDICES.fullmatch(literal):
                yield _Hand(job.place_of(word), f"{kind}'s --{option}", literal, wins=True)
