"""slurmgen run: the same job on this machine, without Slurm, through torchrun."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen import launchers
from slurmgen.cli import report
from slurmgen.cli.planning import plan_job
from slurmgen.errors import UnavailableError, UsageError
from slurmgen.launchers import AGENT, PROGRAM, TASKS
from slurmgen.script.pipeline import require_ranks
from slurmgen.slurm.quoting import split_expansions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurmgen.script.plan import JobPlan


def run(
    job: str,
    *,
    cluster: str | None = None,
    overrides: Sequence[str] = (),
    nproc: int | None = None,
) -> int:
    """Become the job: as many ranks as one of its nodes has, or `nproc`.

    Only returns by raising: UnavailableError where torch, the program or its folder is
    missing, UsageError for `nproc` ranks of one process.
    """
    plan = plan_job(job, cluster=cluster, overrides=overrides).plan
    require_ranks(plan, "run")
    launcher = launchers.find(plan.launcher)
    if nproc is not None and launcher.is_one_process:
        raise UsageError(
            f"--nproc with launcher {launcher.name}, which runs one process",
            fix=f"drop --nproc, or add --set launcher={launchers.DEFAULT}",
        )
    ranks = nproc or _ranks(plan)
    environment = _environment(plan, ranks)
    _change_folder(plan)
    words = _program(plan)
    # torchrun's own complaint would be a traceback of each rank.
    program = _find(words[0], environment)
    if launcher.ranks in (TASKS, AGENT):
        words = _under_torchrun(words if plan.entrypoint else _leashed(words), ranks)
        program = words[0]
    left_out = [key for key, value in vars(plan.setup).items() if value]
    if left_out:
        report.note(f"slurmgen: left out on this machine: setup.{', setup.'.join(left_out)}")
    count = f"{ranks} rank{'s' if ranks > 1 else ''}"
    report.note(f"slurmgen: {count} on this machine of the job's {plan.world_size}")
    try:
        os.execve(program, words, environment)
    except OSError as error:
        raise UnavailableError(
            f"cannot run {program}: {error.strerror}", fix=_FORMAT_FIX
        ) from error


def _change_folder(plan: JobPlan) -> None:
    folder = next((d.value for d in plan.directives if d.option == "chdir"), None)
    if folder is None:
        return
    try:
        os.chdir(folder)
    except OSError as error:
        raise UnavailableError(
            f"cannot work in {folder}, the job's chdir: {error.strerror}",
            fix="make the folder, or give another one: --set chdir=…",
        ) from error


def _find(name: str, environment: Mapping[str, str]) -> str:
    """The path of the program `name`."""
    found = shutil.which(name, path=environment.get("PATH"))
    if found is not None:
        _check_format(found)
        return found
    if "/" not in name:
        what, fix = f"{name} is not on PATH", "activate the environment the job needs first"
    elif os.path.exists(name):
        what, fix = f"{name} is no program", f"chmod +x {shlex.quote(name)}"
    else:
        what, fix = f"there is no program {name}", f"the job starts in {Path.cwd()}: check the path"
    raise UnavailableError(what, fix=fix)


_FORMAT_FIX = "check the program; a script needs a first line such as #!/usr/bin/env python3"


def _check_format(program: str) -> None:
    """Raises UnavailableError for a text that the kernel will not run."""
    try:
        with open(program, "rb") as file:
            start = file.read(256)
    except OSError:
        # A program need not be readable.
        return
    if not start.startswith(b"#!") and b"\0" not in start:
        raise UnavailableError(f"{program} is neither a program nor a script", fix=_FORMAT_FIX)


def _ranks(plan: JobPlan) -> int:
    """The ranks of one node, and no more than this machine has GPUs, if it has any."""
    ranks = plan.layout.ntasks_per_node * plan.layout.nproc_per_task
    gpus = len(list(Path("/dev").glob("nvidia[0-9]*")))
    return min(ranks, gpus) if gpus and plan.gpus_per_node else ranks


def _environment(plan: JobPlan, ranks: int) -> dict[str, str]:
    launcher = launchers.find(plan.launcher)
    environment = dict(os.environ)
    threads = max(1, (os.cpu_count() or 1) // ranks)
    environment.setdefault("OMP_NUM_THREADS", str(threads))
    for name, value in plan.env:
        environment[name] = _expand(value, environment)
    if plan.entrypoint:
        environment["SLURMGEN_LAUNCHER"] = launcher.entrypoint
        environment["SLURMGEN_WORLD_SIZE"] = str(ranks)
        environment["SLURMGEN_SECRET"] = secrets.token_hex(32)
    if not launcher.is_one_process:
        environment["NODE_RANK"] = "0"
    if launcher.ranks == PROGRAM:
        environment.update(
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(_free_port()),
            WORLD_SIZE=str(ranks),
            LOCAL_WORLD_SIZE=str(ranks),
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


def _program(plan: JobPlan) -> list[str]:
    """What each rank becomes, as the script has it."""
    if plan.command is not None:
        return ["bash", "-eo", "pipefail", "-c", "--", plan.command]
    words = list(plan.words)
    if plan.entrypoint:
        words[0] = sys.executable
    return words


def _leashed(program: list[str]) -> list[str]:
    """So that no rank trains on where this command is killed; `ddp` does that by itself."""
    leash = Path(__file__).parents[2] / "ddp/watch/leash.py"
    return [sys.executable, "-I", str(leash), *program]


def _under_torchrun(program: list[str], ranks: int) -> list[str]:
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
