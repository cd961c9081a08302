"""srun starts every rank itself: a task per GPU (or per CPU rank)."""

from __future__ import annotations

from slurmgen.errors import Refusal
from slurmgen.launchers import AGENT, PROGRAM, TASKS, Asked, Launcher, Layout, every, named


class Srun(Launcher):
    """A task per rank."""

    name = "srun"
    about = "a task, and so a rank, per GPU"
    how = "srun starts one task per rank"
    ranks = TASKS
    entrypoint = "srun"
    unstamped = "# What each task does first. Only here"

    def layout(self, spec: Asked, gpus: int) -> Layout:
        """A task per GPU; without GPUs as many as `ntasks` or `ntasks_per_node` say."""
        nodes, per_node, ntasks = spec.nodes, spec.ntasks_per_node, spec.ntasks
        if spec.nproc_per_node is not None:
            others = tuple(one for one in every() if one.ranks in (AGENT, PROGRAM))
            raise Refusal(
                f"nproc_per_node is for launcher {named(others)}",
                why="under srun every task is one rank",
                fix="write ntasks_per_node",
                key="nproc_per_node",
            )
        if gpus:
            per_node = _check_gpus(per_node, "ntasks_per_node", gpus, "on each node")
            _check_gpus(ntasks, "ntasks", nodes * gpus, "in the job")
            return Layout(nodes * gpus, gpus, 1)
        if ntasks is None:
            ntasks = nodes * (per_node or 1)
        if ntasks < nodes:
            raise Refusal(
                f"{ntasks} task(s) on {nodes} nodes",
                why="Slurm accepts it and leaves the other nodes idle",
                fix=f"write nodes: {ntasks}, or ntasks: {nodes}",
                key="ntasks",
            )
        most = -(-ntasks // nodes)
        if per_node not in (None, most):
            raise Refusal(
                f"{ntasks} tasks on {nodes} node(s) are {most} per node, not {per_node}",
                why="Slurm refuses it, or leaves nodes with fewer tasks than the others",
                fix="remove ntasks_per_node or ntasks",
                key="ntasks_per_node",
            )
        return Layout(ntasks, most, 1)


def _check_gpus(tasks: int | None, key: str, gpus: int, where: str) -> int:
    if tasks is None or tasks == gpus:
        return gpus
    idle = f"{gpus - tasks} GPU(s) would be idle" if tasks < gpus else "tasks would share a GPU"
    raise Refusal(
        f"{tasks} task(s) for {gpus} GPUs {where}",
        why=f"launcher srun is a task per GPU: {idle}",
        fix=f"remove {key}: it follows from gpus_per_node",
        key=key,
    )


LAUNCHER = Srun()
