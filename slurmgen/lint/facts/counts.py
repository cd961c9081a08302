"""What a script or a program says a number of processes or nodes is, where it says so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.reading.programs.facts import whole
from slurmgen.reading.programs.roles import counts_gpus
from slurmgen.reading.shell.words import COMMAND, TASK, VARIABLE

if TYPE_CHECKING:
    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Value
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Word

_OF_A_STEP = ("SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS")
_COUNT_NODES = re.compile(r"scontrol\s+show\s+hostnames?\b.*\bwc\s+-[lw]")


def said_in(job: Job, launch: Launch, word: Word) -> int | None:
    """The number, by what the variables are in the shell that expands them."""
    piece = word.pieces[0] if len(word.pieces) == 1 else None
    if piece is not None and piece.kind == VARIABLE and piece.where == TASK:
        extent = job.extent(launch)
        if piece.name in _OF_A_STEP:
            return extent.tasks
        if piece.name == "SLURM_NNODES":
            return extent.nodes
    if piece is not None and piece.kind == COMMAND and _COUNT_NODES.search(piece.text):
        return job.request_of(launch).total_nodes
    if next(word.expansions(TASK), None) is not None:
        request = job.request_of(launch)
        if job.extent(launch).tasks != request.total_tasks:
            return None
        return job.number(word, launch.inner.variables)
    # Names in arithmetic are the batch shell's own, exported or not.
    return job.number(word, launch.command.variables)


def counted(run: Run, value: Value) -> int | None:
    """The number that a value is where the program runs."""
    number = whole(value)
    if number is None and value.is_constant and str(value.literal).isdigit():
        number = int(str(value.literal))
    if number is not None:
        return number if number > 0 else None
    extent, request = run.extent, run.job.request_of(run.launch)
    if counts_gpus(value) and value.kind == "call":
        return extent.gpus_per_task
    if value.kind == "env":
        known = {
            **dict.fromkeys(_OF_A_STEP, extent.tasks if run.launch.step is not None else None),
            "SLURM_NNODES": extent.nodes,
            "SLURM_JOB_NUM_NODES": request.total_nodes,
            "SLURM_NTASKS_PER_NODE": request.ntasks_per_node,
            "SLURM_GPUS_ON_NODE": extent.gpus_per_node or None,
        }
        return known.get(value.name)
    if value.kind == "binary" and value.name == "*":
        left, right = (counted(run, run.settled(part)) for part in value.parts)
        return None if left is None or right is None else left * right
    return None
