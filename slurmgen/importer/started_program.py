"""What a launcher of ours starts, and what it takes for the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.importer.nodes import variables, walk
from slurmgen.reading.shell.syntax import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.importer.container import Container
    from slurmgen.launchers import Launcher

# What the batch shell and a task, or two tasks, see differently.
TASK_VARIABLES = frozenset(
    """
    SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_GTIDS SLURM_STEP_ID SLURM_STEPID
    SLURM_STEP_NODELIST SLURM_STEP_NUM_NODES SLURM_STEP_NUM_TASKS SLURM_STEP_TASKS_PER_NODE
    SLURM_STEP_GPUS SLURM_LAUNCH_NODE_IPADDR SLURM_SRUN_COMM_HOST SLURM_SRUN_COMM_PORT
    SLURM_TASK_PID SLURMD_NODENAME SLURM_TOPOLOGY_ADDR SLURM_JOB_GPUS SLURM_CPUS_ON_NODE
    SLURM_DISTRIBUTION SLURM_UMASK SLURM_CPU_BIND HOSTNAME RANDOM SECONDS BASHPID PPID SHLVL
    CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ZE_AFFINITY_MASK
    GPU_DEVICE_ORDINAL TMPDIR PWD OLDPWD IFS OPTIND OPTARG REPLY PIPESTATUS
    RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK OMP_NUM_THREADS
    SLURM_NTASKS_PER_NODE SLURM_CPUS_PER_TASK SLURM_TASKS_PER_NODE
    """.split()
)
# These follow from directives that the rendered script has in any case.
GIVEN = frozenset({"SLURM_CPUS_PER_TASK"})
# The one task of a job has them otherwise than its batch shell, or has them alone.
STEP_VARIABLES = frozenset(
    name
    for name in TASK_VARIABLES
    if "STEP" in name or "SRUN" in name or "LAUNCH" in name or "DISTRIBUTION" in name
) | {
    "SLURM_TASK_PID",
    "SLURM_CPU_BIND",
    "SLURM_UMASK",
    "SHLVL",
    "BASHPID",
    "PPID",
}
COUNTS = {
    "ntasks": ("$SLURM_NTASKS", "${SLURM_NTASKS}", "$SLURM_NPROCS"),
    "nodes": ("$SLURM_NNODES", "${SLURM_NNODES}", "$SLURM_JOB_NUM_NODES", "${SLURM_JOB_NUM_NODES}"),
    "ntasks-per-node": ("$SLURM_NTASKS_PER_NODE", "${SLURM_NTASKS_PER_NODE}"),
    "cpus-per-task": ("$SLURM_CPUS_PER_TASK", "${SLURM_CPUS_PER_TASK}"),
    "gpus": ("$SLURM_GPUS_ON_NODE", "${SLURM_GPUS_ON_NODE}", "gpu", "auto"),
}


class NotIdiomaticError(Exception):
    """The script is something else than a job file's keys say; the message says what."""


class Started(NamedTuple):
    """A launcher of ours and its command.

    words: the command inside a container, where it is literal; `text` is as it is written.
    variables: those that the batch shell expands in the command. needs: shell options without
    which the job's own would make a difference. exports: what srun is told by variables.
    dropped: what the launch block does by itself. before, start: of a torchrun command, the
    words in front of the program's, and where those stand.
    """

    launcher: Launcher
    text: str
    rdzv: str = "static"
    nproc: int | None = None
    variables: tuple[str, ...] = ()
    name: str = ""
    needs: tuple[str, ...] = ()
    container: Container | None = None
    words: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    start: int = 0


class Shape(NamedTuple):
    """What the directives ask for; cpus: None where it is left to the site."""

    nodes: int
    tasks: int
    per_node: int
    gpus: int
    cpus: int | None

    @property
    def is_single(self) -> bool:
        """Whether the job has one task, which sees what its batch shell sees."""
        return self.nodes == self.tasks == 1


def names_in(text: str) -> Sequence[str]:
    root = parse(text)
    return [] if root is None else list(variables(root, text))


def substitutes(text: str) -> bool:
    """Whether something is run, or counted, in expanding the text."""
    root = parse(text)
    return root is None or any(
        node.type in ("command_substitution", "process_substitution") for node in walk(root)
    )
