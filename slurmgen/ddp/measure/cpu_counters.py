"""The CPU time of this process and of those it has started."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def cpus() -> int:
    """How many CPUs this process may run on."""
    return len(os.sched_getaffinity(0))


def cpu_seconds() -> float:
    """User and system time so far, of this process and its children, in seconds.

    The kernel adds a child's to ours once the child has been waited for; those that live, such as
    the workers of a DataLoader, are read from /proc (proc(5): /proc/pid/stat, fields 14 to 17).
    """
    times = os.times()
    own = times.user + times.system + times.children_user + times.children_system
    ticks = sum(_ticks(child) for child in _children())
    return own + ticks / os.sysconf("SC_CLK_TCK")


def _children() -> list[str]:
    found: list[str] = []
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            # A thread may end meanwhile.
            with suppress(OSError):
                found += Path(f"/proc/self/task/{thread}/children").read_text().split()
    return found


def _ticks(pid: str) -> int:
    try:
        # The name, in brackets, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))
