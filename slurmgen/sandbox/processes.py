"""Processes: those that a sandbox started, told from everybody else's, and their end.

No pid files: one that a crash left behind may name a stranger by now, and a process that
was interrupted before it wrote its own has none. What a process carries with it can't lie.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from slurmgen.errors import UnavailableError

MARKER = "SLURMGEN_SANDBOX"
_KILL_SECONDS = 20


class Process(NamedTuple):
    """A process of a sandbox: its id, its program's name and its words."""

    pid: int
    name: str
    argv: tuple[str, ...]


def find_processes(folder: Path) -> list[Process]:
    """The daemons of the sandbox in `folder`, its job steps and what those started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _belongs(entry, folder):
            process = _describe(entry)
            if process is not None:
                found.append(process)
    return found


class Daemons(NamedTuple):
    """Which of a sandbox's daemons live: the controller, and the slurmd of which nodes."""

    controller: bool
    nodes: frozenset[str]


def running_daemons(folder: Path) -> Daemons:
    """The Slurm daemons of the sandbox in `folder` that are there now."""
    processes = find_processes(folder)
    return Daemons(
        controller=any(process.name == "slurmctld" for process in processes),
        nodes=frozenset(
            process.argv[process.argv.index("-N") + 1]
            for process in processes
            if process.name == "slurmd" and "-N" in process.argv[:-1]
        ),
    )


def kill_processes(folder: Path) -> int:
    """End every process of the sandbox in `folder`, and say how many there were."""
    deadline = time.monotonic() + _KILL_SECONDS
    killed: set[int] = set()
    # Twice nobody, since a process shows no environment for the moment of its exec.
    seen_nobody = 0
    while True:
        alive = find_processes(folder)
        seen_nobody = 0 if alive else seen_nobody + 1
        if seen_nobody == 2:
            return len(killed)
        if alive and time.monotonic() > deadline:
            pids = " ".join(str(process.pid) for process in alive)
            raise UnavailableError(
                f"processes of the sandbox in {folder} do not end: {pids}",
                fix="look at their state with ps, then run slurmgen sandbox down again",
            )
        # Daemons first, so that none starts another step meanwhile.
        for process in sorted(alive, key=lambda one: one.name not in {"slurmctld", "slurmd"}):
            # Looked at again, since the id may have gone to somebody else's process.
            if _belongs(Path("/proc", str(process.pid)), folder):
                _kill(process.pid)
                killed.add(process.pid)
        time.sleep(0.01)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _belongs(process: Path, folder: Path) -> bool:
    try:
        environment = set((process / "environ").read_bytes().split(b"\0"))
        if not environment - {b""}:
            # slurmstepd writes its title over its environment; it works in the folder of
            # its slurmd's log.
            is_step = (process / "comm").read_text() == "slurmstepd\n"
            return is_step and (process / "cwd").readlink() == folder / "log"
    except OSError:
        return False
    if os.fsencode(f"{MARKER}={folder}") in environment:
        return True
    # A job's own process, which may have left its step (setsid, nohup). The user's shells
    # have SLURM_CONF alone: `exec` started them, not Slurm.
    configuration = (folder / "slurm.conf", folder / "slurmd.conf")
    is_ours = any(os.fsencode(f"SLURM_CONF={path}") in environment for path in configuration)
    return is_ours and any(name.startswith(b"SLURMD_NODENAME=") for name in environment)


def _describe(entry: Path) -> Process | None:
    try:
        name = (entry / "comm").read_text().rstrip("\n")
        argv = os.fsdecode((entry / "cmdline").read_bytes()).split("\0")
    except OSError:
        return None
    return Process(int(entry.name), name, tuple(argv))
