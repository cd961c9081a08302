"""Ends what a process has started once whoever started that process is gone.

Whoever kills torchrun or ``slurmgen run`` with KILL leaves it no moment to end its ranks, and
they would train on. Supervisors look at their parent's process id each second; for programs
without the entrypoint, ``python leash.py PROGRAM...`` does. The kernel's own signal at a parent's
death (PR_SET_PDEATHSIG) won't do: it comes at the end of the *thread* that has forked, too, and
reaches no grandchild. The standard library alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_ROUNDS = 10
_PASSED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Launcher:
    """The process that has started this one; to be made before anything that takes long.

    waits: whether it always waits for what it starts. A person may start a run, log out, and want
    it to go on.
    """

    def __init__(self, *, waits: bool) -> None:
        self._pid, self._waits = os.getppid(), waits

    @property
    def gone(self) -> bool:
        """Whether it has ended, and nobody is left to end this process."""
        return self._waits and os.getppid() != self._pid


def kill_tree(pid: int) -> None:
    """Kill the process `pid`, a child of this one, with all of its descendants.

    Stopped first, so that none starts another one meanwhile.
    """
    stopped: list[int] = []
    for _ in range(_ROUNDS):
        found = [one for one in (pid, *descendants(pid)) if one not in stopped]
        if not found:
            break
        _send(found, signal.SIGSTOP)
        stopped += found
    # The root last: until then its children are found through it.
    _send(reversed(stopped), signal.SIGKILL)


def descendants(pid: int) -> Iterator[int]:
    """The processes below `pid`, as proc(5) has them; none where /proc doesn't tell."""
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                for child in map(int, file.read().split()):
                    yield child
                    yield from descendants(child)


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


def main(words: Sequence[str]) -> int:
    """Run the program `words` and end as it does; kill it where the parent is gone."""
    launcher = Launcher(waits=True)
    child = subprocess.Popen(words)
    for number in _PASSED:
        signal.signal(number, lambda number, _: child.send_signal(number))
    while True:
        with suppress(subprocess.TimeoutExpired):
            code = child.wait(1.0)
            break
        if launcher.gone:
            kill_tree(child.pid)
    if code < 0:
        # By the same signal, for whoever looks.
        with suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
