"""plain: one process, no distribution (single GPU, DataParallel, CPU jobs)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.errors import Refusal
from slurmgen.launchers import Layout, Problem

if TYPE_CHECKING:
    from slurmgen.spec.job import JobSpec

ARGUMENTS = '"$@"'


def layout(spec: JobSpec, gpus: int) -> Layout:
    """One task that sees all GPUs of its node."""
    for key in ("nodes", "ntasks", "ntasks_per_node", "nproc_per_node"):
        if (getattr(spec, key) or 1) > 1:
            raise Problem(
                key,
                Refusal(
                    f"launcher plain runs one process, not {key}: {getattr(spec, key)}",
                    why="nothing would start or join the others: they would be idle",
                    fix="use launcher: srun for one rank per GPU, or remove the key",
                ),
            )
    return Layout(1, 1, 1)


def program(world: Layout, nodes: int, rdzv: str) -> tuple[str, ...]:
    """Nothing stands before the command."""
    return ()
