"""How many processes a launch starts, where, and how many GPUs each of them sees."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.shell.starters import (
    ACCELERATE,
    DEEPSPEED,
    HOROVODRUN,
    MPIRUN,
    TORCH_LAUNCH,
    TORCHRUN,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.starters import Launcher
    from slurmgen.reading.shell.variables import Assignment
    from slurmgen.reading.shell.words import Word
    from slurmgen.slurm.request import Request

    Number = Callable[[Word, Mapping[str, Assignment]], int | None]


_MASK = re.compile(r"(?:0x)?[0-9a-fA-F]{1,16}")


class Extent(NamedTuple):
    """A launch's size. None is unknown; it is never a guess.

    nodes: on which it runs. tasks: what srun (or mpirun) starts, 1 in the batch shell.
    tasks_per_node: the largest number. gpus_per_node: of the step. gpus_per_task: that a
    task sees. workers: processes that a task starts (torchrun's nproc_per_node); 1 without
    a launcher.
    """

    nodes: int | None
    tasks: int | None
    tasks_per_node: int | None
    gpus_per_node: int | None
    gpus_per_task: int | None
    workers: int | None

    @property
    def processes_per_node(self) -> int | None:
        """Processes of the program on the fullest node."""
        if self.tasks_per_node is None or self.workers is None:
            return None
        return self.tasks_per_node * self.workers

    @property
    def processes(self) -> int | None:
        """Processes of the program in all."""
        if self.tasks is None or self.workers is None:
            return None
        return self.tasks * self.workers


def measure(launch: Launch, request: Request, slurm: str | None, number: Number) -> Extent:
    """The Extent of `launch` in a job that asks for `request`."""
    return _Measure(launch, request, slurm, number).extent()


class _Measure:
    def __init__(self, launch: Launch, request: Request, slurm: str | None, number: Number) -> None:
        self.launch = launch
        self.request = request
        self.slurm = slurm
        self._number = number

    def number(self, word: Word | None) -> int | None:
        return None if word is None else self._number(word, self.launch.inner.variables)

    def extent(self) -> Extent:
        request, step = self.request, self.launch.step
        if self.launch.mpirun is not None and step is None:
            return self._under_mpi(self.launch.mpirun)
        if step is None:
            gpus = request.node_gpus
            return Extent(1, 1, 1, gpus, gpus, self._workers(gpus))
        nodes, tasks, per_node = self._tasks()
        on_node = self._gpus_on_node(nodes)
        per_task = self._gpus_of_task(on_node, per_node)
        return Extent(nodes, tasks, per_node, on_node, per_task, self._workers(per_task))

    def _under_mpi(self, launcher: Launcher) -> Extent:
        request = self.request
        asked = launcher.option("np")
        tasks = self.number(asked) if asked is not None else request.total_tasks
        per_node = self.number(launcher.option("npernode", "ppn", "perhost"))
        if per_node is None and tasks is not None and tasks == request.total_tasks:
            per_node = request.tasks_per_node
        gpus = request.node_gpus
        return Extent(request.total_nodes, tasks, per_node, gpus, gpus, self._workers(gpus))

    def _tasks(self) -> tuple[int | None, int | None, int | None]:
        """Nodes, tasks and tasks per node of the step: the job's, or srun's own."""
        request, step = self.request, self.launch.step
        assert step is not None
        asked_nodes = step.option("nodes", "N")
        asked_tasks = step.option("ntasks")
        asked_per_node = step.option("ntasks-per-node")
        if step.opaque and asked_tasks is None:
            return None, None, None
        nodes = self.number(asked_nodes) if asked_nodes is not None else request.total_nodes
        if asked_tasks is not None:
            tasks = self.number(asked_tasks)
        elif step.option("nodelist", "ntasks-per-gpu", "multi-prog") is not None or (
            asked_nodes is not None and nodes != request.total_nodes
        ):
            tasks = None
        elif request.ntasks is None and request.ntasks_per_node is None and asked_per_node:
            # Nothing in the job says how many, so srun's own option counts.
            per_node = self.number(asked_per_node)
            tasks = nodes * per_node if nodes is not None and per_node is not None else None
        else:
            tasks = request.total_tasks
        if tasks is None or nodes is None:
            return nodes, tasks, None
        if asked_nodes is None and tasks < nodes:
            nodes = tasks
        if nodes < 1:
            return None, tasks, None
        per_node = self.number(asked_per_node)
        if per_node is None or nodes * per_node < tasks:
            per_node = -(-tasks // nodes)
            if tasks == request.total_tasks and nodes == request.total_nodes:
                per_node = request.tasks_per_node or per_node
        return nodes, tasks, per_node

    def _gpus_on_node(self, nodes: int | None) -> int | None:
        step, request = self.launch.step, self.request
        assert step is not None
        gres = step.option("gres")
        if gres is not None:
            return _gres_count(gres.literal) if gres.literal is not None else None
        per_node = step.option("gpus-per-node")
        if per_node is not None:
            return self._typed(per_node)
        total = step.option("gpus")
        if total is not None:
            count = self._typed(total)
            return None if count is None or not nodes else -(-count // nodes)
        return request.node_gpus

    def _typed(self, word: Word) -> int | None:
        """`4` or `a100:4`."""
        literal = word.literal
        if literal is not None and ":" in literal:
            tail = literal.rsplit(":", 1)[1]
            return int(tail) if tail.isascii() and tail.isdigit() else None
        return self.number(word)

    def _gpus_of_task(self, on_node: int | None, per_node: int | None) -> int | None:
        step, request = self.launch.step, self.request
        assert step is not None
        bind = step.option("gpu-bind")
        text = bind.literal if bind is not None else request.gpu_bind
        if bind is not None and text is None:
            return None
        binding = (text or "").removeprefix("verbose,").removeprefix("gres/gpu:")
        if binding == "none":
            return on_node
        kind, _, count = binding.partition(":")
        if kind in ("single", "per_task") and count.isdigit():
            # single:N is tasks to a GPU; a task sees one.
            return 1 if kind == "single" else int(count)
        if kind == "map_gpu":
            return 1
        if kind == "mask_gpu":
            masks = [int(mask, 16) for mask in count.split(",") if _MASK.fullmatch(mask)]
            return min((mask.bit_count() for mask in masks), default=None)
        if kind == "closest":
            return None
        per_task = step.option("gpus-per-task")
        asked = self._typed(per_task) if per_task is not None else request.gpus_per_task
        if per_task is None and step.option("gres", "gpus", "gpus-per-node") is not None:
            return on_node if request.gpus_per_task is None else None
        if per_task is not None and asked is None:
            return None
        if asked is not None:
            # Up to 20.11 the others stay visible.
            return on_node if self.slurm is not None and self.slurm < "21.08" else asked
        if request.ntasks_per_gpu is not None:
            return 1
        return on_node if per_node is not None or on_node is not None else None

    def _workers(self, visible: int | None) -> int | None:
        launcher = self.launch.launcher
        if launcher is None or launcher.kind == MPIRUN:
            return 1
        if launcher.kind in (TORCHRUN, TORCH_LAUNCH):
            asked = launcher.option("nproc_per_node")
            if asked is None:
                return None if launcher.opaque else 1
            if asked.literal in ("gpu", "auto"):
                return visible
            return self.number(asked)
        if launcher.kind == ACCELERATE:
            total = self.number(launcher.option("num_processes"))
            machines = launcher.option("num_machines")
            count = self.number(machines) if machines is not None else 1
            if launcher.opaque or total is None or not count:
                return visible if not launcher.opaque and total is None and count == 1 else None
            return -(-total // count)
        if launcher.kind == DEEPSPEED:
            asked = launcher.option("num_gpus")
            if asked is not None:
                return self.number(asked)
            return None if launcher.opaque or launcher.option("include") else visible
        if launcher.kind == HOROVODRUN:
            return self.number(launcher.option("np", "num_proc"))
        return None


def _gres_count(text: str) -> int | None:
    """GPUs in a --gres value; 0 where it names none."""
    total = 0
    for item in text.split(","):
        name, _, rest = item.partition(":")
        if name != "gpu":
            continue
        tail = rest.rsplit(":", 1)[-1]
        if not rest or not tail[:1].isdigit():
            total += 1
        elif tail.isascii() and tail.isdigit():
            total += int(tail)
        else:
            return None
    return total
