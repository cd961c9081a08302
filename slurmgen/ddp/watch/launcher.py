"""The srun that has started a rank, where it runs on the same machine."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LISTENING = "0A"


def give_up(env: Mapping[str, str]) -> None:
    """Tell srun to end the step without the tasks that it can't reach.

    srun waits for the tasks of a node that is gone until slurmctld has noticed, five minutes by
    default (SlurmdTimeout), whatever --kill-on-bad-exit says. TERM makes it wait for KillWait and
    a little, and its status is then that of the tasks that did end (seen on 22.05).
    """
    port = env.get("SLURM_SRUN_COMM_PORT", "")
    if not port.isdecimal():
        return
    sockets = set(_listeners(int(port)))
    for process in Path("/proc").glob("[0-9]*") if sockets else ():
        # Gone meanwhile, or another user's.
        with suppress(OSError):
            if (process / "comm").read_text() == "srun\n" and sockets & set(_sockets(process)):
                os.kill(int(process.name), signal.SIGTERM)


def _listeners(port: int) -> Iterator[str]:
    """Of this network namespace, as proc(5) has them under /proc/net/tcp."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == _LISTENING and words[1].endswith(f":{port:04X}"):
                    yield f"socket:[{words[9]}]"


def _sockets(process: Path) -> Iterator[str]:
    for entry in (process / "fd").iterdir():
        with suppress(OSError):
            yield os.readlink(entry)
