"""plain: one process, no distribution (single GPU, DataParallel, CPU jobs)."""

from __future__ import annotations

from slurmgen.errors import Refusal
from slurmgen.launchers import DEFAULT, ONE, Asked, Launcher, Layout


class Plain(Launcher):
    """One task that sees all GPUs of its node."""

    name = "plain"
    about = "one process"
    ranks = ONE
    entrypoint = "plain"
    seated_under = ()

    def layout(self, spec: Asked, gpus: int) -> Layout:  # noqa: ARG002
        for key in ("nodes", "ntasks", "ntasks_per_node", "nproc_per_node"):
            if (getattr(spec, key) or 1) > 1:
                raise Refusal(
                    f"launcher plain runs one process, not {key}: {getattr(spec, key)}",
                    why="nothing would start or join the others: they would be idle",
                    fix=f"use launcher: {DEFAULT} for one rank per GPU, or remove the key",
                    key=key,
                )
        return Layout(1, 1, 1)


LAUNCHER = Plain()
