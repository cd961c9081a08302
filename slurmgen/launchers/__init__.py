"""The ways of starting a job's ranks: a module each, which holds all that is known of it.

A launcher is a module `NAME.py` here with its `LAUNCHER`, its name in `Name`, and, unless it
starts one process, what each task does in `templates/partials/task-NAME.sbatch.j2`. Whoever
else has to know something of a launcher asks the object; no other module says its name.
"""

from __future__ import annotations

from importlib import import_module
from typing import Literal, NamedTuple, Protocol, cast, get_args

from slurmgen.errors import Refusal

Name = Literal["srun", "torchrun", "spawn", "plain"]
NAMES: tuple[Name, ...] = get_args(Name)
DEFAULT: Name = NAMES[0]

Ranks = Literal["tasks", "agent", "program", "one"]
"""Who makes ranks: Slurm, whose every task is one; an agent that each task runs, which starts
the node's ranks and sets their variables; the program itself; or there is one process alone."""
TASKS: Ranks = "tasks"
AGENT: Ranks = "agent"
PROGRAM: Ranks = "program"
ONE: Ranks = "one"


class Asked(Protocol):
    """What a layout follows from: these keys of a job file, as `jobfile.job.JobSpec` has them."""

    @property
    def launcher(self) -> str: ...
    @property
    def nodes(self) -> int: ...
    @property
    def ntasks(self) -> int | None: ...
    @property
    def ntasks_per_node(self) -> int | None: ...
    @property
    def nproc_per_node(self) -> int | None: ...


class Layout(NamedTuple):
    """Tasks are Slurm's, ranks are PyTorch's.

    ntasks: tasks in all; ntasks_per_node: the most on one node; nproc_per_task: ranks
    that each task becomes.
    """

    ntasks: int
    ntasks_per_node: int
    nproc_per_task: int

    @property
    def world_size(self) -> int:
        return self.ntasks * self.nproc_per_task


class Launcher:
    """All that is known of one launcher; each module's `LAUNCHER` is one.

    name: as job files say it. about: what it starts, for people who choose one. ranks: who
    makes them. entrypoint: what `SLURMGEN_LAUNCHER` tells the entrypoint, one of
    `slurmgen.ddp.launch.identity.LAUNCHERS`.
    """

    name: Name
    about: str
    ranks: Ranks
    entrypoint: str

    how = ""
    """What srun starts, for the script's summary of a job with ranks."""
    arguments = '"$@"'
    """How the words in front of the program are given the job's own command: Bash."""
    rendezvous: tuple[str, ...] = ("static",)
    """What the key rdzv may say."""
    seated_under: tuple[str, ...] = ("static",)
    """The values of rdzv under which each rank sits where the plan shows it."""
    stands_for: tuple[str, ...] = ()
    """What other people's scripts start in its place (a kind of `reading.shell.starters`)."""
    dies_of_signals = ""
    """Why a signal to all processes is the end of the job; empty: each rank gets it."""
    loses_status = ""
    """Why a job can't be told to save and exit 75; empty: the step ends with a rank's status."""
    unstamped = ""
    """How its task began in scripts that have no stamp yet; an importer knows it by that."""

    @property
    def is_one_process(self) -> bool:
        """Whether the step is the command itself: no task around it, and nobody to meet."""
        return self.ranks == ONE

    @property
    def partial(self) -> str:
        """The template of what each task does."""
        return f"partials/task-{self.name}.sbatch.j2"

    def layout(self, spec: Asked, gpus: int) -> Layout:
        """How many tasks Slurm starts and how many ranks each becomes.

        gpus: on each node. Raises Refusal for a shape that it cannot start rightly. This is the
        layout of launchers whose task starts the node's ranks by itself.
        """
        return _one_task_per_node(spec, gpus)

    def program(self, world: Layout, nodes: int, rdzv: str) -> tuple[str, ...]:  # noqa: ARG002
        """The words that stand before the job's own command in each task, already Bash."""
        return ()


def find(name: str) -> Launcher:
    """The launcher of that name (one of NAMES)."""
    return cast("Launcher", import_module(f"slurmgen.launchers.{name}").LAUNCHER)


def every() -> tuple[Launcher, ...]:
    """All launchers, in the order in which they are offered."""
    return tuple(find(name) for name in NAMES)


def with_ranks(ranks: Ranks) -> Launcher:
    """The launcher, the first of several, whose ranks are made like this."""
    return next(launcher for launcher in every() if launcher.ranks == ranks)


def standing_for(kind: str) -> Launcher:
    """The launcher that does what a launch program of other people's scripts does."""
    return next(launcher for launcher in every() if kind in launcher.stands_for)


def named(launchers: tuple[Launcher, ...]) -> str:
    """Their names in words: `torchrun or spawn`."""
    return " or ".join(launcher.name for launcher in launchers)


def _one_task_per_node(spec: Asked, gpus: int) -> Layout:
    if spec.ntasks_per_node not in (None, 1):
        raise Refusal(
            f"launcher {spec.launcher} runs one task per node, not {spec.ntasks_per_node}",
            why=f"each task would start {gpus or 'all'} ranks of its own on the same GPUs",
            fix=f"remove ntasks_per_node, or use launcher: {DEFAULT} for a task per GPU",
            key="ntasks_per_node",
        )
    if spec.ntasks not in (None, spec.nodes):
        raise Refusal(
            f"launcher {spec.launcher} runs one task per node: {spec.nodes}, not {spec.ntasks}",
            why="each task starts all ranks of its node",
            fix="remove ntasks",
            key="ntasks",
        )
    nproc = spec.nproc_per_node
    if gpus and nproc not in (None, gpus):
        raise Refusal(
            f"{nproc} ranks for {gpus} GPUs on each node",
            why="a rank per GPU leaves none idle and none shared",
            fix=f"remove nproc_per_node, or write nproc_per_node: {gpus}",
            key="nproc_per_node",
        )
    return Layout(spec.nodes, 1, nproc or gpus or 1)
