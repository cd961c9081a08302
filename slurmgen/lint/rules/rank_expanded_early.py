r"""A rank is read in the batch shell, once for all tasks.

## What it does

Finds SLURM_PROCID, SLURM_LOCALID, SLURM_NODEID and the like where the batch shell expands them
for a step of several tasks: in `export RANK=$SLURM_PROCID`, on the `srun` line, in a
double-quoted `bash -c "…"`, in a here-document, or in a variable that becomes a part of the
command. A rank written as a number is found too.

## Why is this bad

The batch shell is a process of its own, in which all three are 0 (seen on 20.11 to 26.05), and
it expands its words before `srun` starts a task. Every task is told that it is rank 0: the
second one fails with "address already in use", or all wait for ranks that never come.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export WORLD_SIZE=$SLURM_NTASKS
export RANK=$SLURM_PROCID
export LOCAL_RANK=$SLURM_LOCALID
srun --kill-on-bad-exit=1 python train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export WORLD_SIZE=$SLURM_NTASKS
srun --kill-on-bad-exit=1 bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID
    exec python train.py'
```

## References

- srun(1), OUTPUT ENVIRONMENT VARIABLES
- bash(1), EXPANSION
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.spread import has_nodes, has_tasks, is_one_of_many, spans_nodes
from slurmgen.lint.facts.tools import is_tool
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.starters import MPIRUN, TORCH_LAUNCH, TORCHRUN
from slurmgen.reading.shell.words import BATCH, TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Word

NAME = "rank-expanded-early"
CODE = "SG401"
SEVERITY = ERROR

_OF_A_TASK = (
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_TASK_PID",
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_NODE_RANK",
    "MPI_LOCALRANKID",
)
_RANKS = ("RANK", "LOCAL_RANK", "GLOBAL_RANK", "NODE_RANK", "MACHINE_RANK", "GROUP_RANK")
_RANK_OPTIONS = ("node_rank", "machine_rank")
# `srun python "$1"`
_ARGUMENT = re.compile(r"\$\{?[1-9@*]")
_REMOTE_SHELLS = ("ssh", "pdsh", "clush")
# Names of what a rank is told; elsewhere (a log's name) a wrong rank does less harm.
_TELLS_RANKS = re.compile(
    r"rank|proc|local|node|machine|worker|shard|index|device|gpu|visible|(^|[-_ ])id\b",
    re.IGNORECASE,
)


class _Use(NamedTuple):
    """What is expanded, and what is told of it; sure: whether it does harm."""

    start: int
    end: int
    text: str
    target: str
    sure: bool


def check(job: Job) -> Iterator[Finding]:
    uses: dict[int, _Use] = {}
    for launch in job.launches:
        if launch.program in _REMOTE_SHELLS and has_nodes(job):
            for use in _early(launch):
                uses.setdefault(use.start, use)
        if launch.where != TASK or is_tool(launch):
            continue
        if has_tasks(job, launch) or is_one_of_many(launch):
            for use in (*_early(launch), *_constant(job, launch)):
                uses.setdefault(use.start, use)
    for use in _written(job):
        uses.setdefault(use.start, use)
    if not uses:
        return
    first, *others = sorted(uses.values())
    is_number = first.text.isdigit()
    yield Finding(
        job.place(first.start, first.end),
        f"every task gets {first.text} as its {first.target}"
        if is_number
        else f"{first.text} is expanded by the batch shell, before srun starts a task",
        "all tasks are told the same rank: they collide, or wait for ranks that never come"
        if is_number
        else "there it is 0, so all tasks are told the same: they collide, or wait for ranks that "
        "never come",
        "read it inside the task: srun bash -c '…' with single quotes and "
        + (f"${_instead(first.target)}" if is_number else f"{first.text} in it"),
        None if any(use.sure for use in uses.values()) else WARNING,
        tuple(job.place(use.start, use.end) for use in others),
    )


def _instead(target: str) -> str:
    name = target.lower()
    if "local" in name:
        return "SLURM_LOCALID"
    return "SLURM_NODEID" if "node" in name or "machine" in name else "SLURM_PROCID"


def _early(launch: Launch) -> Iterator[_Use]:
    for target, word, sure in _words(launch):
        piece = word.uses(*_OF_A_TASK, where=BATCH)
        if piece is not None:
            text = piece.text if len(piece.text) < 40 else f"{piece.text[:37]}..."
            yield _Use(piece.start, piece.end, text, target, sure)


def _words(launch: Launch) -> Iterator[tuple[str, Word, bool]]:
    """What a task gets from the batch shell: by what name, and whether it matters for sure."""
    launcher, step = launch.launcher, launch.step
    before = ""
    for word in launch.words:
        yield "argument", word, bool(_TELLS_RANKS.search(f"{before} {word.text}"))
        before = word.text
    if launcher is not None:
        backend = launcher.option("rdzv_backend")
        finds_ranks = backend is not None and backend.literal not in (None, "static")
        for name, word in launcher.options.items():
            # With c10d, torchrun gives out the ranks itself.
            yield f"--{name}", word, not (finds_ranks and name == "node_rank")
    if launch.mpirun is not None:
        for name, word in launch.mpirun.options.items():
            yield f"--{name}", word, True
    if launcher is None or launcher.kind == MPIRUN:
        for name, assignment in launch.environment.items():
            # A program that is named at submission may read Slurm's rank itself.
            is_read = launch.python is not None or not any(
                _ARGUMENT.match(word.text) for word in launch.words
            )
            yield name, assignment.value, is_read and bool(_TELLS_RANKS.search(name))
    if step is not None:
        for name, word in step.options.items():
            yield f"--{name}", word, name not in ("output", "error", "input", "job-name")
    if launch.container is not None and launch.container.options is not (step and step.options):
        for name, word in launch.container.options.items():
            yield f"--{name}", word, True


def _constant(job: Job, launch: Launch) -> Iterator[_Use]:
    """Ranks that are written as a number."""
    launcher = launch.launcher
    if launcher is None or launcher.kind == MPIRUN:
        for name in _RANKS:
            assignment = launch.environment.get(name)
            if assignment is None or assignment.conditional or not has_tasks(job, launch):
                continue
            if "NODE" in name and not spans_nodes(job, launch):
                continue
            extent = job.extent(launch)
            # Where a task is alone with its GPU, that is number 0.
            if name == "LOCAL_RANK" and 1 in (extent.tasks_per_node, extent.gpus_per_task):
                continue
            literal = assignment.value.literal or ""
            if literal.isdigit():
                yield _Use(assignment.start, assignment.end, literal, name, sure=True)
        return
    nodes = launcher.option("nnodes", "num_machines")
    several = nodes is not None and nodes.literal != "1"
    for option in _RANK_OPTIONS:
        word = launcher.option(option)
        number = (word.literal or "") if word is not None else ""
        if word is not None and number.isdigit() and several and spans_nodes(job, launch):
            is_static = launcher.kind not in (TORCHRUN, TORCH_LAUNCH) or (
                launcher.option("rdzv_backend") is None
            )
            yield _Use(word.start, word.end, number, f"--{option}", is_static)


def _written(job: Job) -> Iterator[_Use]:
    """Ranks in a here-document that is written to a file which a step runs later."""
    for command in job.commands("cat", "tee"):
        bodies = [r.body for r in command.redirects if r.body is not None]
        files = [r.target for r in command.redirects if r.target is not None]
        files += command.words[1:] if command.name == "tee" else ()
        names = {word.text.rsplit("/", 1)[-1] for word in files}
        for body in bodies:
            piece = body.word().uses(*_OF_A_TASK, where=BATCH)
            if piece is not None and any(
                launch.where == TASK
                and launch.start > command.start
                and has_tasks(job, launch)
                and any(word.text.rsplit("/", 1)[-1] in names for word in launch.words)
                for launch in job.launches
            ):
                yield _Use(piece.start, piece.end, piece.text, "argument", sure=True)
