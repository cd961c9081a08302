"""The ways of starting a job's ranks: a module each, found by name.

A launcher module has `layout(spec, gpus)`: how many tasks Slurm starts and how many
ranks each becomes, raising Problem for a shape it cannot start rightly; `program()`: the
words that stand before the job's own command in each task, already Bash; and `ARGUMENTS`:
how they are given that command. The text around them is
`templates/partials/task-NAME.sbatch.j2`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from slurmgen.errors import Refusal

if TYPE_CHECKING:
    from slurmgen.spec.job import JobSpec

NAMES = ("srun", "torchrun", "spawn", "plain")


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


class Problem(ValueError):
    """A Refusal together with the key it is about."""

    def __init__(self, key: str | tuple[str | int, ...], refusal: Refusal) -> None:
        super().__init__(refusal.what)
        self.key = key
        self.refusal = refusal


class Launcher(Protocol):
    """What a launcher module offers."""

    ARGUMENTS: str

    def layout(self, spec: JobSpec, gpus: int) -> Layout: ...

    def program(self, world: Layout, nodes: int, rdzv: str) -> tuple[str, ...]: ...


def find(name: str) -> Launcher:
    """The launcher module of that name (one of NAMES)."""
    return cast("Launcher", import_module(f"slurmgen.launchers.{name}"))


def one_task_per_node(spec: JobSpec, gpus: int) -> Layout:
    """The layout of launchers whose task starts the node's ranks by itself."""
    if spec.ntasks_per_node not in (None, 1):
        raise Problem(
            "ntasks_per_node",
            Refusal(
                f"launcher {spec.launcher} runs one task per node, not {spec.ntasks_per_node}",
                why=f"each task would start {gpus or 'all'} ranks of its own on the same GPUs",
                fix="remove ntasks_per_node, or use launcher: srun for a task per GPU",
            ),
        )
    if spec.ntasks not in (None, spec.nodes):
        raise Problem(
            "ntasks",
            Refusal(
                f"launcher {spec.launcher} runs one task per node: {spec.nodes}, not {spec.ntasks}",
                why="each task starts all ranks of its node",
                fix="remove ntasks",
            ),
        )
    nproc = spec.nproc_per_node
    if gpus and nproc not in (None, gpus):
        raise Problem(
            "nproc_per_node",
            Refusal(
                f"{nproc} ranks for {gpus} GPUs on each node",
                why="a rank per GPU leaves none idle and none shared",
                fix=f"remove nproc_per_node, or write nproc_per_node: {gpus}",
            ),
        )
    return Layout(spec.nodes, 1, nproc or gpus or 1)
