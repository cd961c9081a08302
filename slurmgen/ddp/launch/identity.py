"""Which rank this process is, read from the variables of whoever started it. No torch here.

What Slurm really sets in batch shells and in steps was recorded on 20.11, 22.05, 24.11 and 26.05;
the recorded environments are replayed by the tests.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slurmgen.ddp.failure import LaunchError

if TYPE_CHECKING:
    from collections.abc import Mapping

STEP, AGENT, FORKS, ALONE = LAUNCHERS = ("srun", "torchrun", "spawn", "plain")
"""What SLURMGEN_LAUNCHER may say of a rendered script's ranks: each is a task, a launcher sets
their variables, this program starts them, or there is one process alone. slurmgen's launchers
name theirs; nothing of slurmgen can be asked here."""

SPAWN_PARENT = "SLURMGEN_SPAWN_PARENT"
"""Set in the children of the spawn launcher to their parent's process id.

Slurm hands the submitting shell's environment to a job, so a training program that submits the
next job would hand RANK on as well; a process id that isn't the parent's shows the leftover.
"""

_TASK_COUNT = re.compile(r"(\d+)(?:\(x(\d+)\))?")


@dataclass(frozen=True)
class Identity:
    """One process's place in the run.

    source: "slurm" (a step's variables), "torchrun", "spawn", "env" (RANK and WORLD_SIZE set by
    someone else) or "single" (one process, no launcher).
    job: names the run; two processes with different values must never meet in one store.
    attempt: how often torchrun has restarted the ranks within the run.
    children: this process is no rank itself, it has to start the node's ranks (spawn launcher);
    rank and local_rank are then those of its first child.
    ignored: assignments in the environment that contradict the source, as "NAME=VALUE".
    """

    source: str
    rank: int
    local_rank: int
    world_size: int
    local_world_size: int
    node_rank: int
    nnodes: int
    node: str
    job: str
    attempt: int = 0
    children: bool = False
    ignored: tuple[str, ...] = ()

    def exports(self) -> dict[str, str]:
        """The variables by which PyTorch programs know their place."""
        return {
            "RANK": str(self.rank),
            "LOCAL_RANK": str(self.local_rank),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_WORLD_SIZE": str(self.local_world_size),
            "NODE_RANK": str(self.node_rank),
            "GROUP_RANK": str(self.node_rank),
        }


def in_step(env: Mapping[str, str]) -> bool:
    """Whether srun started this process.

    SLURM_PROCID and SLURM_NTASKS don't tell: a batch shell has both, and looks like rank 0 of
    all. Nor does SLURM_STEP_ID, which 26.05 sets to -5 in the batch shell.
    """
    return "SLURM_STEP_NUM_TASKS" in env or "SLURM_STEP_NODELIST" in env


def parse_tasks_per_node(text: str) -> list[int]:
    """Slurm's ``4(x2),3`` as a list, a number per node: ``[4, 4, 3]``.

    Raises ValueError where `text` isn't of that grammar.
    """
    counts: list[int] = []
    for part in text.split(","):
        match = _TASK_COUNT.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a list of task counts such as 4(x2),3")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def resolve_identity(env: Mapping[str, str], *, parent_pid: int | None = None) -> Identity:
    """Find out who this process is.

    The launcher the script was rendered for (SLURMGEN_LAUNCHER) decides which variables count;
    without it torchrun's come first, then a step's, then RANK and WORLD_SIZE. Raises LaunchError
    where the variables are missing or contradict the launcher, such as a rank per GPU that was
    started without srun.
    """
    launcher = env.get("SLURMGEN_LAUNCHER", "")
    if launcher == ALONE:
        return _single(env)
    if launcher == FORKS:
        return _spawn(env, os.getppid() if parent_pid is None else parent_pid)
    rendered = env.get("SLURMGEN_WORLD_SIZE")
    if launcher == STEP and rendered and env.get("SLURM_STEP_NUM_TASKS") == rendered:
        # torchrun's variables are leftovers then, of a rank that submitted this job.
        return _slurm(env)
    if "TORCHELASTIC_RUN_ID" in env:
        return _torchrun(env)
    if in_step(env):
        return _slurm(env)
    tasks = _number(env, "SLURM_NTASKS", default=1)
    if "SLURM_JOB_ID" in env and (launcher == STEP or tasks > 1):
        raise _no_srun(env)
    if "RANK" in env and "WORLD_SIZE" in env:
        return _environment(env)
    return _single(env)


def _slurm(env: Mapping[str, str]) -> Identity:
    # Inside a step NTASKS is the step's own; NODELIST and JOB_NUM_NODES stay the job's.
    world_size = _number(env, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    rank = _number(env, "SLURM_PROCID")
    local_rank = _number(env, "SLURM_LOCALID")
    node_rank = _number(env, "SLURM_NODEID")
    local_world_size = _tasks_here(env, rank, node_rank)
    return Identity(
        source="slurm",
        rank=rank,
        local_rank=local_rank,
        world_size=world_size,
        local_world_size=local_world_size,
        node_rank=node_rank,
        nnodes=_number(env, "SLURM_STEP_NUM_NODES", "SLURM_NNODES"),
        node=_node(env),
        job=_slurm_job(env),
        ignored=_contradictions(
            env,
            RANK=rank,
            WORLD_SIZE=world_size,
            LOCAL_RANK=local_rank,
            LOCAL_WORLD_SIZE=local_world_size,
        ),
    )


def _tasks_here(env: Mapping[str, str], rank: int, node_rank: int) -> int:
    # SLURM_NTASKS_PER_NODE is what was asked for, and wrong where nodes carry unequal numbers.
    global_ids = [word for word in env.get("SLURM_GTIDS", "").split(",") if word]
    if str(rank) in global_ids:
        return len(global_ids)
    name = "SLURM_STEP_TASKS_PER_NODE"
    try:
        return parse_tasks_per_node(env[name])[node_rank]
    except (KeyError, ValueError, IndexError) as error:
        raise LaunchError(
            f"{name}={env.get(name)!r} doesn't say how many tasks node {node_rank} has",
            why="without that number no rank can choose its GPU",
            fix="start the ranks with srun, and leave Slurm's variables as it set them",
        ) from error


def _torchrun(env: Mapping[str, str]) -> Identity:
    local_world_size = _number(env, "LOCAL_WORLD_SIZE")
    world_size = _number(env, "WORLD_SIZE")
    return Identity(
        source=AGENT,
        rank=_number(env, "RANK"),
        local_rank=_number(env, "LOCAL_RANK"),
        world_size=world_size,
        local_world_size=local_world_size,
        node_rank=_number(env, "GROUP_RANK"),
        nnodes=_number(env, "GROUP_WORLD_SIZE"),
        node=_node(env),
        job=_torchrun_job(env),
        attempt=_number(env, "TORCHELASTIC_RESTART_COUNT", default=0),
    )


def _spawn(env: Mapping[str, str], parent_pid: int) -> Identity:
    local_world_size = _number(env, "LOCAL_WORLD_SIZE")
    world_size = _number(env, "WORLD_SIZE")
    node_rank = _number(env, "SLURM_NODEID" if in_step(env) else "NODE_RANK")
    nnodes = -(-world_size // max(local_world_size, 1))
    child = env.get(SPAWN_PARENT) == str(parent_pid)
    local_rank = _number(env, "LOCAL_RANK") if child else 0
    if not in_step(env) and nnodes > 1:
        raise _no_srun(env)
    if in_step(env):
        tasks = _number(env, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
        nodes = _number(env, "SLURM_STEP_NUM_NODES", "SLURM_NNODES")
        if tasks != nodes:
            raise LaunchError(
                f"the step has {tasks} tasks on {nodes} node(s), but spawn wants one per node",
                why=f"each task starts {local_world_size} ranks: the same rank would start twice",
                fix="srun --ntasks-per-node=1 with --ntasks equal to the number of nodes",
            )
    return Identity(
        source=FORKS,
        rank=node_rank * local_world_size + local_rank,
        local_rank=local_rank,
        world_size=world_size,
        local_world_size=local_world_size,
        node_rank=node_rank,
        nnodes=nnodes,
        node=_node(env),
        job=_slurm_job(env) if in_step(env) else _outside_job(env),
        children=not child,
        ignored=_contradictions(env, NODE_RANK=node_rank),
    )


def _environment(env: Mapping[str, str]) -> Identity:
    world_size = _number(env, "WORLD_SIZE")
    local_world_size = _number(env, "LOCAL_WORLD_SIZE", default=world_size)
    rank = _number(env, "RANK")
    if "LOCAL_RANK" not in env and local_world_size != world_size:
        raise LaunchError(
            "RANK and WORLD_SIZE are set but LOCAL_RANK is not",
            why="which GPU of its node a rank takes can't be told from its global rank",
            fix="export LOCAL_RANK as well, or start the ranks with srun or torchrun",
        )
    return Identity(
        source="env",
        rank=rank,
        local_rank=_number(env, "LOCAL_RANK", default=rank),
        world_size=world_size,
        local_world_size=local_world_size,
        node_rank=_number(env, "NODE_RANK", default=rank // max(local_world_size, 1)),
        nnodes=-(-world_size // max(local_world_size, 1)),
        node=_node(env),
        job=_outside_job(env),
    )


def _single(env: Mapping[str, str]) -> Identity:
    tasks = _number(env, "SLURM_STEP_NUM_TASKS", default=1)
    if tasks > 1:
        raise LaunchError(
            f"the job is one plain process, but srun started {tasks} of it",
            why=f"{tasks} copies of the same training would run and overwrite each other's files",
            fix="srun --ntasks=1, or launcher: srun for a rank per task",
        )
    return Identity(
        source="single",
        rank=0,
        local_rank=0,
        world_size=1,
        local_world_size=1,
        node_rank=0,
        nnodes=1,
        node=_node(env),
        job=_slurm_job(env) if "SLURM_JOB_ID" in env else _outside_job(env),
    )


def _no_srun(env: Mapping[str, str]) -> LaunchError:
    tasks = env.get("SLURM_NTASKS", "?")
    return LaunchError(
        f"not started by srun, in a job of {tasks} tasks",
        why=f"this one process would take itself for rank 0 of {tasks} and wait for ranks that"
        " nobody started",
        fix="put srun before the command in the batch script: srun python -m slurmgen.ddp ...",
    )


def _slurm_job(env: Mapping[str, str]) -> str:
    # A requeued job keeps its id, so its predecessor's slowly dying ranks differ by the count.
    return (
        f"cluster {env.get('SLURM_CLUSTER_NAME', '?')} job {env.get('SLURM_JOB_ID', '?')}"
        f" step {env.get('SLURM_STEP_ID', '?')} restart {env.get('SLURM_RESTART_COUNT', '0')}"
    )


def _torchrun_job(env: Mapping[str, str]) -> str:
    # torchrun's default id is "none" for all jobs; its agents run in one step.
    step = f" in {_slurm_job(env)}" if in_step(env) else ""
    return f"torchrun {env['TORCHELASTIC_RUN_ID']}{step}"


def _outside_job(env: Mapping[str, str]) -> str:
    address = f"{env.get('MASTER_ADDR', '?')}:{env.get('MASTER_PORT', '?')}"
    return f"no job, {env.get('WORLD_SIZE', '1')} ranks at {address}"


def _node(env: Mapping[str, str]) -> str:
    # Several slurmd on one machine share its host name; only Slurm's own name tells them apart.
    return env.get("SLURMD_NODENAME") or socket.gethostname()


def _contradictions(env: Mapping[str, str], **expected: int) -> tuple[str, ...]:
    return tuple(
        f"{name}={env[name]}"
        for name, value in expected.items()
        if name in env and env[name].strip() != str(value)
    )


def _number(env: Mapping[str, str], *names: str, default: int | None = None) -> int:
    for name in names:
        if name in env:
            text = env[name].strip()
            if text.isdecimal():
                return int(text)
            raise LaunchError(
                f"{name}={env[name]!r} is not a number",
                why="ranks and world sizes are counted from it",
                fix=f"leave {name} to the launcher; don't export it by hand",
            )
    if default is not None:
        return default
    raise LaunchError(
        f"{names[0]} is not set",
        why="this process can't know its place among the others",
        fix="start it from a rendered batch script, with srun or with torchrun",
    )
