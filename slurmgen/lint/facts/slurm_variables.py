"""Which of Slurm's output variables a job has: many are set only where something was asked for.

Seen on 22.05.8 with `env` in jobs of each shape; sbatch(1), OUTPUT ENVIRONMENT VARIABLES.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from slurmgen.slurm.request import Request

# Variable -> the options of which one has to be given.
_ONLY_WITH = {
    "SLURM_NTASKS_PER_NODE": ("ntasks-per-node",),
    "SLURM_NTASKS_PER_CORE": ("ntasks-per-core",),
    "SLURM_NTASKS_PER_SOCKET": ("ntasks-per-socket",),
    "SLURM_NTASKS_PER_GPU": ("ntasks-per-gpu",),
    "SLURM_CPUS_PER_TASK": ("cpus-per-task",),
    "SLURM_CPUS_PER_GPU": ("cpus-per-gpu",),
    "SLURM_GPUS": ("gpus",),
    "SLURM_GPUS_PER_NODE": ("gpus-per-node",),
    "SLURM_GPUS_PER_SOCKET": ("gpus-per-socket",),
    "SLURM_GPUS_PER_TASK": ("gpus-per-task",),
    "SLURM_MEM_PER_NODE": ("mem",),
    "SLURM_MEM_PER_CPU": ("mem-per-cpu",),
    "SLURM_MEM_PER_GPU": ("mem-per-gpu",),
    **dict.fromkeys(
        (
            "SLURM_ARRAY_JOB_ID",
            "SLURM_ARRAY_TASK_ID",
            "SLURM_ARRAY_TASK_COUNT",
            "SLURM_ARRAY_TASK_MAX",
            "SLURM_ARRAY_TASK_MIN",
            "SLURM_ARRAY_TASK_STEP",
        ),
        ("array",),
    ),
}
_COUNTS_TASKS = (
    "ntasks",
    "ntasks-per-node",
    "ntasks-per-gpu",
    "ntasks-per-tres",
    "ntasks-per-socket",
    "ntasks-per-core",
    "gpus-per-task",
    "tres-per-task",
)
_ONLY_IN_STEPS = (
    "SLURM_STEP_ID",
    "SLURM_STEPID",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_NUM_NODES",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_STEP_GPUS",
)
_SINCE = {
    "SLURM_GPUS_ON_NODE": "21.08",
    "SLURM_SHARDS_ON_NODE": "22.05",
    "SLURM_JOB_START_TIME": "23.02",
    "SLURM_JOB_END_TIME": "23.02",
    "SLURM_TRES_PER_TASK": "23.11",
    "SLURM_OOM_KILL_STEP": "24.11",
}
# Names that no release has, and what was meant.
_NEVER = {
    "SLURM_RANK": "SLURM_PROCID",
    "SLURM_GLOBAL_RANK": "SLURM_PROCID",
    "SLURM_PROC_ID": "SLURM_PROCID",
    "SLURM_TASKID": "SLURM_PROCID",
    "SLURM_TASK_ID": "SLURM_PROCID",
    "SLURM_LOCAL_ID": "SLURM_LOCALID",
    "SLURM_LOCAL_RANK": "SLURM_LOCALID",
    "SLURM_LOCALRANK": "SLURM_LOCALID",
    "SLURM_LOCAL_PROCID": "SLURM_LOCALID",
    "SLURM_NODE_ID": "SLURM_NODEID",
    "SLURM_NODE_RANK": "SLURM_NODEID",
    "SLURM_WORLD_SIZE": "SLURM_NTASKS",
    "SLURM_NUM_TASKS": "SLURM_NTASKS",
    "SLURM_NUM_PROCS": "SLURM_NTASKS",
    "SLURM_JOB_NTASKS": "SLURM_NTASKS",
    "SLURM_NUM_NODES": "SLURM_NNODES",
    "SLURM_JOB_NNODES": "SLURM_NNODES",
    "SLURM_NNODE": "SLURM_NNODES",
    "SLURM_NODES": "SLURM_NNODES",
    "SLURM_NODE_LIST": "SLURM_JOB_NODELIST",
    "SLURM_JOB_NODE_LIST": "SLURM_JOB_NODELIST",
    "SLURM_GPU_ON_NODE": "SLURM_GPUS_ON_NODE",
    "SLURM_NUM_GPUS": "SLURM_GPUS_ON_NODE",
    "SLURM_NGPUS": "SLURM_GPUS_ON_NODE",
    "SLURM_GPU_COUNT": "SLURM_GPUS_ON_NODE",
    "SLURM_CPUS_PER_NODE": "SLURM_CPUS_ON_NODE",
    "SLURM_CPU_PER_TASK": "SLURM_CPUS_PER_TASK",
    "SLURM_TASK_PER_NODE": "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASK_PER_NODE": "SLURM_NTASKS_PER_NODE",
    "SLURM_JOB_NTASKS_PER_NODE": "SLURM_NTASKS_PER_NODE",
    "SLURM_ARRAY_ID": "SLURM_ARRAY_TASK_ID",
    "SLURM_ARRAY_TASKID": "SLURM_ARRAY_TASK_ID",
    "SLURM_ARRAYID": "SLURM_ARRAY_TASK_ID",
    "SLURM_ARRAY_INDEX": "SLURM_ARRAY_TASK_ID",
    "SLURM_RESTARTS": "SLURM_RESTART_COUNT",
}

NAMES = (
    *_ONLY_WITH,
    *_ONLY_IN_STEPS,
    *_SINCE,
    *_NEVER,
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_JOB_GPUS",
    "SLURM_RESTART_COUNT",
)


class Unset(NamedTuple):
    """Why a variable is not set, and what to do about it; options: those that would set it."""

    why: str
    fix: str
    options: tuple[str, ...] = ()


def unset(name: str, request: Request, slurm: str | None, *, in_step: bool) -> Unset | None:
    """Why the variable is not set in a job; None where it is, or that isn't known.

    in_step: inside a task, in place of the batch shell.
    """
    if name in _NEVER:
        return Unset("Slurm has no variable of that name", f"use {_NEVER[name]}")
    since = _SINCE.get(name)
    if since is not None and slurm is not None and slurm < since:
        return Unset(f"Slurm sets it from {since} on, and this is {slurm}", _instead(name))
    if not request.is_known:
        return None
    options = _ONLY_WITH.get(name)
    if options is not None and not request.gives(*options):
        given = " or ".join(f"--{option}" for option in options)
        if name in ("SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU"):
            given += " or a default of the partition"
        return Unset(f"Slurm sets it only with {given}", _instead(name), options)
    if in_step:
        return None
    if name in _ONLY_IN_STEPS:
        return Unset("Slurm sets it in the tasks of a step, not in the batch shell", _instead(name))
    if name in ("SLURM_NTASKS", "SLURM_NPROCS") and not request.gives(*_COUNTS_TASKS):
        return Unset(
            "in the batch shell Slurm sets it only where the number of tasks is given",
            "give --ntasks-per-node or --ntasks",
            ("ntasks", "ntasks-per-node"),
        )
    if name == "SLURM_RESTART_COUNT":
        return Unset("it is not set on the first run", "write ${SLURM_RESTART_COUNT:-0}")
    if name in ("SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS") and request.node_gpus == 0:
        if not request.gives("exclusive"):
            return Unset("Slurm sets it only where GPUs are asked for", "ask for --gpus-per-node")
    return None


def _instead(name: str) -> str:
    """What to write in place of the variable, or to add."""
    if name == "SLURM_NTASKS_PER_NODE":
        return "give --ntasks-per-node, or use $((SLURM_NTASKS / SLURM_NNODES))"
    if name in ("SLURM_GPUS", "SLURM_GPUS_PER_NODE"):
        return "use SLURM_GPUS_ON_NODE, which is set for every way to ask for GPUs (from 21.08)"
    if name.startswith("SLURM_ARRAY"):
        return f"give --array, or a default: ${{{name}:-0}}"
    if name.startswith("SLURM_STEP"):
        return f"read it inside the task, or use {name.replace('STEP_', 'JOB_')}"
    options = _ONLY_WITH.get(name)
    if options is not None:
        return f"give --{options[0]}, or a default: ${{{name}:-1}}"
    return f"give a default: ${{{name}:-}}"
