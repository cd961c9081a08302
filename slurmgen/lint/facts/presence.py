"""Which environment variables are set where a program of a job runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.lint.job import once
from slurmgen.reading.programs.facts import ANY
from slurmgen.reading.programs.roles import LOCAL_RANK, RANK
from slurmgen.reading.shell.starters import DEEPSPEED, MPIRUN, TORCH_LAUNCH, TORCHRUN

if TYPE_CHECKING:
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Program
    from slurmgen.reading.programs.values import Present
    from slurmgen.reading.shell.launch import Launch

# What torchrun and its relatives set for each process.
_OF_LAUNCHERS = frozenset(
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
)
_OF_TORCHRUN = frozenset({"GROUP_RANK", "ROLE_RANK", "TORCHELASTIC_RUN_ID"})
# Slurm sets these in every job, in the batch shell too.
_OF_SLURM = frozenset(
    """
    SLURM_JOB_ID SLURM_JOBID SLURM_JOB_NAME SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_NNODES
    SLURM_JOB_NUM_NODES SLURM_NODELIST SLURM_JOB_NODELIST SLURM_TASKS_PER_NODE SLURM_SUBMIT_DIR
    """.split()
)
_OF_A_STEP = frozenset(
    "SLURM_NTASKS SLURM_NPROCS SLURM_STEP_ID SLURM_STEP_NUM_TASKS SLURM_STEP_NODELIST".split()
)
# Set only where the option is given.
_OF_OPTIONS = {
    "SLURM_CPUS_PER_TASK": "cpus-per-task",
    "SLURM_NTASKS_PER_NODE": "ntasks-per-node",
    "SLURM_ARRAY_JOB_ID": "array",
    "SLURM_ARRAY_TASK_ID": "array",
}
_NAME = re.compile(r"[A-Z_]{4,}")
# Files that are sourced and set none of them.
_HARMLESS = re.compile(r"activate|conda|mamba|bashrc|profile|modules?\b|lmod|init/(ba)?sh|spack")


def environment(job: Job, launch: Launch, program: Program) -> Present:
    """Whether a variable is set where a launch's program runs; None where that isn't known."""
    launcher = launch.launcher
    exported = {
        item.partition("=")[0] for item in (job.request.export or "").split(",") if "=" in item
    }
    kind = launcher.kind if launcher is not None else ""
    mentioned = _mentioned(job)
    written = {write.name for write in program.env_writes}
    is_closed = not (
        launch.script is not None
        or sources_something(job, launch)
        or (launch.step is not None and (launch.step.opaque or launch.step.option("task-prolog")))
        or (launch.container is not None and launch.container.runtime in ("docker", "podman"))
    )

    def present(name: str) -> bool | None:
        if name in launch.environment or name in exported:
            return True
        if name in written or (ANY in written and not name.startswith("SLURM_")):
            return None
        if launch.entrypoint and (name in _OF_LAUNCHERS or name == "NODE_RANK"):
            return True
        if name in _OF_LAUNCHERS or name in _OF_TORCHRUN:
            if kind in (TORCHRUN, TORCH_LAUNCH) or (kind == DEEPSPEED and name not in _OF_TORCHRUN):
                return True
            # One that the script mentions may come from whoever submits it.
            is_sure = is_closed and kind in ("", MPIRUN) and name not in mentioned
            return False if is_sure else None
        if name in _OF_SLURM:
            return True
        if name in _OF_A_STEP and launch.step is not None:
            return True
        if name in _OF_OPTIONS:
            option = _OF_OPTIONS[name]
            in_step = launch.step is not None and launch.step.option(option) is not None
            return in_step or job.request_of(launch).gives(option)
        if name in RANK | LOCAL_RANK and not name.startswith("SLURM") and kind == "":
            # srun's own MPI plugins set some of them.
            return False if is_closed and name.startswith(("OMPI", "MV2")) else None
        return None

    return present


def sources_something(job: Job, launch: Launch) -> bool:
    """Whether a file that may set anything is sourced before the launch."""
    first = _first_source(job)
    return first is not None and first < launch.command.start


@once
def _first_source(job: Job) -> int | None:
    return min(
        (
            command.start
            for command in job.commands("source", ".")
            if len(command.words) > 1 and not _HARMLESS.search(command.words[1].text)
        ),
        default=None,
    )


@once
def _mentioned(job: Job) -> frozenset[str]:
    return frozenset(_NAME.findall(job.text))
