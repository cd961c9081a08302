"""A wrong launch: what is said about it, and the exit status it ends with."""

from __future__ import annotations

import signal

EXIT_FAILED = 1
EXIT_LAUNCH = 78
"""The job was launched wrongly, so running it again can't help (sysexits.h: EX_CONFIG)."""

EXIT_LOST = 69
"""A node or the network is gone, and with it a rank (sysexits.h: EX_UNAVAILABLE)."""

LINGER_S = 3.0
"""How long a rank that ends because of another one waits for that one to be gone.

torchrun, srun and the spawn launcher report the exit code of the rank that ended first.
"""

_EXIT_GRACE_S = 60


class LaunchError(Exception):
    """The processes were started wrongly; ends with exit status 78.

    what: one line, greppable. why: what would have happened. fix: what to do. said: rank 0 has
    found it and says it for all.
    """

    def __init__(self, what: str, *, why: str, fix: str, said: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix
        self.said = said


def arrived_twice(rank: int, where: str) -> LaunchError:
    """Two processes that meet at `where` take themselves for this rank."""
    return LaunchError(
        f"rank {rank} arrived twice at {where}",
        why="two processes take themselves for the same rank: their variables were expanded once,"
        " in the batch shell, or the command was started twice",
        fix="let srun set RANK inside each task; export RANK=$SLURM_PROCID only there",
    )


def bound_exit() -> None:
    """Make sure that this process is gone within a minute, by SIGALRM if need be.

    NCCL and gloo may hang in their destructors once a peer is gone, and would keep the launcher
    from ending the other ranks. The kernel's alarm works even after Python has been finalised.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_EXIT_GRACE_S)
