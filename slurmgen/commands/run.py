"""slurmgen run: the same job on this machine, without Slurm, through torchrun."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen import report
from slurmgen.commands.pipeline import plan_job
from slurmgen.errors import UnavailableError
from slurmgen.quoting import split_expansions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurmgen.plan import JobPlan


def run(
    job: str,
    *,
    cluster: str | None = None,
    overrides: Sequence[str] = (),
    nproc: int | None = None,
) -> int:
    """Become the job: as many ranks as one of its nodes has, or `nproc`.

    Only returns by raising: UnavailableError where torch or the program is missing.
    """
    plan = plan_job(job, cluster=cluster, overrides=overrides).plan
    ranks = nproc or _ranks(plan)
    environment = _environment(plan, ranks)
    words = _words(plan, ranks)
    program = shutil.which(words[0], path=environment.get("PATH"))
    if program is None:
        raise UnavailableError(
            f"{words[0]} is not on PATH", fix="activate the environment the job needs first"
        )
    left_out = [key for key, value in vars(plan.setup).items() if value]
    if left_out:
        report.note(f"slurmgen: left out on this machine: setup.{', setup.'.join(left_out)}")
    count = f"{ranks} rank{'s' if ranks > 1 else ''}"
    report.note(f"slurmgen: {count} on this machine of the job's {plan.world_size}")
    sys.stdout.flush()
    os.execve(program, words, environment)


def _ranks(plan: JobPlan) -> int:
    """The ranks of one node, and no more than this machine has GPUs, if it has any."""
    ranks = plan.layout.ntasks_per_node * plan.layout.nproc_per_task
    gpus = len(list(Path("/dev").glob("nvidia[0-9]*")))
    return min(ranks, gpus) if gpus and plan.gpus_per_node else ranks


def _environment(plan: JobPlan, ranks: int) -> dict[str, str]:
    environment = dict(os.environ)
    threads = max(1, (os.cpu_count() or 1) // ranks)
    environment.setdefault("OMP_NUM_THREADS", str(threads))
    for name, value in plan.env:
        environment[name] = _expand(value, environment)
    if plan.entrypoint:
        environment["SLURMGEN_LAUNCHER"] = plan.launcher
        environment["SLURMGEN_WORLD_SIZE"] = str(ranks)
    if plan.launcher == "spawn":
        environment.update(
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(_free_port()),
            WORLD_SIZE=str(ranks),
            LOCAL_WORLD_SIZE=str(ranks),
            NODE_RANK="0",
        )
    return environment


def _expand(text: str, environment: Mapping[str, str]) -> str:
    return "".join(
        literal + (environment.get(name, "") if name else "")
        for literal, name in split_expansions(text)
    )


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def _words(plan: JobPlan, ranks: int) -> list[str]:
    program = list(plan.words)
    if plan.entrypoint:
        program[0] = sys.executable
    if plan.command is not None:
        program = ["bash", "-c", plan.command]
    if plan.launcher in ("spawn", "plain"):
        return program
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise UnavailableError(
            "torch is not installed in slurmgen's own Python",
            fix="pip install 'slurmgen-torch[train]'",
        )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    # torchrun takes each argument for a template, in which $$ is a $.
    escaped = [word.replace("$", "$$") for word in program]
    return [*torchrun, f"--nproc-per-node={ranks}", "--no-python", *escaped]
