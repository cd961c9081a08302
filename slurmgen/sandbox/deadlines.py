"""Deadlines: how long anything here waits at most, and the word about what for.

All in seconds of a clock that nobody sets. They are generous: one that passes means that something
is broken, on a busy machine too.
"""

from __future__ import annotations

import sys
import time

# Another slurmgen, that starts or stops the same sandbox, or unpacks the same version of Slurm.
LOCK = 120.0
UNPACK = 900.0
# One command: of Slurm's, of apt-get's, of `ip`, and a program that says its version.
CLIENT, PACKAGES, NETWORK, VERSION = 60.0, 600.0, 30.0, 30.0
# One answer of a controller that is asked again and again.
ANSWER = 10.0
# slurmdbd and MariaDB, each until it answers; making an empty database.
DATABASE = 60.0
# A node that was killed, until the controller has it back; a job, until it is preempted.
FAULT = 60.0
# Looking for addresses that nobody uses.
ADDRESSES = 30.0
# A slurmd, until it takes a connection.
CONNECTION = 5.0
# Processes that were killed, since one last ended; and however many there are.
KILLED, ALL_KILLED = 20.0, 600.0
# After this long a wait says what it is for.
_TELL = 5.0


def step(nodes: int) -> float:
    """All daemons of a kind, until they are in the background."""
    return 60 + nodes / 2


def registration(nodes: int) -> float:
    """All nodes, until the controller has heard of them."""
    return 30 + nodes / 2


class Deadline:
    """The end of a wait that begins now.

    what: completes "waiting for …", on stderr if it takes longer than a moment.
    """

    def __init__(self, seconds: float, what: str) -> None:
        self.seconds = seconds
        self._what = what
        self._told = False
        self.restart()

    def restart(self) -> None:
        """Wait as long again: something has happened."""
        self._start = time.monotonic()

    @property
    def passed(self) -> bool:
        """Whether it is over."""
        return time.monotonic() - self._start > self.seconds

    def pause(self, seconds: float) -> None:
        """Sleep until the next look."""
        if not self._told and time.monotonic() - self._start > min(_TELL, self.seconds / 2):
            self._told = True
            sys.stderr.write(f"slurmgen: waiting for {self._what}, {self.seconds:.0f} s at most\n")
            sys.stderr.flush()
        time.sleep(seconds)
