"""Processes: those that a sandbox started, told from everybody else's, and their end.

No pid files: one that a crash left behind may name a stranger by now, and a process that
was interrupted before it wrote its own has none. What a process carries with it can't lie.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import UnavailableError
from slurmgen.sandbox import deadlines, keeper
from slurmgen.sandbox.deadlines import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable

MARKER = "SLURMGEN_SANDBOX"
# A sandbox that only has daemons and ordinary jobs has ended by then.
_LOOKS_TO_STOP = 20
_KEEPER = Path(keeper.__file__).name


class Process(NamedTuple):
    """A process of a sandbox: its id and start, its program's name and its words."""

    pid: int
    started: str
    name: str
    argv: tuple[str, ...]

    @property
    def node(self) -> str:
        """The node whose slurmd it is; empty for everything else."""
        if self.name != "slurmd" or "-N" not in self.argv[:-1]:
            return ""
        return self.argv[self.argv.index("-N") + 1]


def find_processes(folder: Path) -> list[Process]:
    """The daemons of the sandbox in `folder`, its job steps and what those started."""
    entries = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    marked = {entry: _describe(entry) for entry in entries if _belongs(entry, folder)}
    found = [process for process in marked.values() if process is not None]
    networks = {network for process in found for network in _kept_networks(process)}
    if networks:
        # Nobody else has a business there, whatever became of its environment.
        for entry in entries:
            if entry not in marked and namespace(int(entry.name), "net") in networks:
                process = _describe(entry)
                found += [process] if process is not None else []
    return found


def namespace(pid: int, kind: str) -> str | None:
    """Which namespace of a kind (`net`, `uts`) a process is in; None where it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return None


def is_keeper(process: Process) -> bool:
    """Whether it is the one that holds the sandbox's networks; see keeper.py."""
    return any(Path(word).name == _KEEPER for word in process.argv[:-1])


def _kept_networks(process: Process) -> set[str]:
    if not is_keeper(process):
        return set()
    networks = set()
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{process.pid}/fd").iterdir():
            if int(link.name) >= keeper.SWITCH:
                networks.add(os.readlink(link))
    return {network for network in networks if network.startswith("net:")} - {
        namespace(os.getpid(), "net")
    }


class Daemons(NamedTuple):
    """Which of a sandbox's daemons live: the controller, and the slurmd of which nodes."""

    controller: bool
    nodes: frozenset[str]


def running_daemons(folder: Path) -> Daemons:
    """The Slurm daemons of the sandbox in `folder` that are there now."""
    processes = find_processes(folder)
    return Daemons(
        controller=any(process.name == "slurmctld" for process in processes),
        nodes=frozenset(process.node for process in processes if process.node),
    )


def node_processes(
    folder: Path, node: str, *, kind: str, known: str | None = None
) -> list[Process]:
    """All that runs on a node, told by the namespace of a kind (`net`, `uts`) it has to itself.

    known: which one it is; without it, those of the processes that say they are the node's.
    """
    found = find_processes(folder)
    own = {known} if known else {namespace(one.pid, kind) for one in found if _is_of(one, node)}
    own -= {namespace(os.getpid(), kind), None}
    return [process for process in found if namespace(process.pid, kind) in own]


def kill_processes(folder: Path) -> int:
    """End every process of the sandbox in `folder`, and say how many there were."""
    # The keeper's networks tell the others, so it comes last.
    ended = end(lambda: [one for one in find_processes(folder) if not is_keeper(one)])
    return ended + end(lambda: find_processes(folder))


def end(find: Callable[[], list[Process]]) -> int:
    """Kill what `find` finds until it finds nothing; how many there were.

    `UnavailableError` for those that do not end, long after the last one that did: looking at all
    processes of a busy machine, and ending those of many nodes, may take a while. Those that
    multiply meanwhile are stopped first.
    """
    what = "processes of the sandbox to end"
    deadline: Deadline | None = None
    in_all = Deadline(deadlines.ALL_KILLED, what)
    killed: set[Process] = set()
    stopped: set[Process] = set()
    before: set[Process] = set()
    # Twice nobody, since a process shows no environment for the moment of its exec.
    seen_nobody = looks = 0
    while True:
        alive = find()
        looks += 1
        if deadline is None:
            deadline = Deadline(deadlines.KILLED, what)
        if not before <= set(alive):
            deadline.restart()
        before = set(alive)
        seen_nobody = 0 if alive else seen_nobody + 1
        if seen_nobody == 2:
            return len(killed)
        if alive and (deadline.passed or in_all.passed):
            pids = " ".join(str(process.pid) for process in alive)
            raise UnavailableError(
                f"processes of the sandbox do not end: {pids}",
                fix="look at their state with ps, then run slurmgen sandbox down",
            )
        number = signal.SIGKILL
        if looks > _LOOKS_TO_STOP and not set(alive) <= stopped:
            number = signal.SIGSTOP
            stopped |= set(alive)
        # Daemons first, so that none starts another step meanwhile.
        for process in sorted(alive, key=lambda one: one.name not in {"slurmctld", "slurmd"}):
            # Looked at again, since the id may be somebody else's process by now.
            if _started(process.pid) == process.started:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, number)
                killed.add(process)
        deadline.pause(0.01)


def _is_of(process: Process, node: str) -> bool:
    if process.node:
        return process.node == node
    try:
        environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(f"SLURMD_NODENAME={node}") in environment


def _started(pid: int) -> str:
    """When it started, in ticks since boot: with the id, what no other process has."""
    try:
        # Behind the name, which may hold blanks and brackets itself.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _belongs(process: Path, folder: Path) -> bool:
    try:
        environment = set((process / "environ").read_bytes().split(b"\0"))
        if os.fsencode(f"{MARKER}={folder}") in environment:
            return True
        if (process / "comm").read_text() == "slurmstepd\n":
            # It writes its title over its environment, of which 24.11 leaves scraps behind. It
            # works in the folder of its slurmd's log.
            return (process / "cwd").readlink() == folder / "log"
    except OSError:
        return False
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
    started = _started(int(entry.name))
    return Process(int(entry.name), started, name, tuple(argv)) if started else None
