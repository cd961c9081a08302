"""How a process becomes a rank and its supervisor. No torch here."""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from typing import TYPE_CHECKING

from slurmgen.ddp.failure import EXIT_FAILED
from slurmgen.ddp.launch import signals
from slurmgen.ddp.launch.identity import in_step
from slurmgen.ddp.watch import leash, secret, supervised
from slurmgen.ddp.watch.child import PASSED
from slurmgen.ddp.watch.supervisor import Ends, Supervisor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.ddp.launch.identity import Identity

_PR_SET_PDEATHSIG = 1
_STDERR = 2


def divide(identity: Identity, env: Mapping[str, str]) -> None:
    """Fork; returns in the child, which is the rank. The parent ends when and as the rank does."""
    sys.stdout.flush()
    sys.stderr.flush()
    control, own_control = socket.socketpair()
    stacks, own_stacks = os.pipe()
    seen, own_seen = os.pipe()
    stderr = None if os.isatty(_STDERR) else os.pipe()
    progress = supervised.Progress()
    # Neither process may die of a signal before it has its handlers.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED, signal.SIGCHLD})
    supervisor, own_launcher = os.getpid(), leash.Launcher(waits=_is_waited_for(identity, env))
    rank = os.fork()
    if rank == 0:
        _die_with(supervisor)
        for end in (stacks, seen):
            os.close(end)
        control.close()
        if stderr is not None:
            os.dup2(stderr[1], _STDERR)
            os.close(stderr[0])
            os.close(stderr[1])
        # Python notes each signal that it handles there, whoever has installed the handler.
        os.set_blocking(own_seen, False)
        signal.set_wakeup_fd(own_seen, warn_on_full_buffer=False)
        signals.inherit()
        # Only supervisors need it. A program may print its environment, or submit a job with it.
        os.environ.pop(secret.VARIABLE, None)
        supervised.sit(supervised.Desk(own_control, progress, own_stacks))
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return
    own_control.close()
    for end in (own_stacks, own_seen):
        os.close(end)
    if stderr is not None:
        os.close(stderr[1])
    ends = Ends(control, progress, stacks, seen, stderr[0] if stderr else None)
    try:
        Supervisor(identity, env, rank, own_launcher, ends, mask).run()
    except BaseException:
        # A bug of ours. Not into the caller, which would go on as a second rank.
        os.write(_STDERR, traceback.format_exc().encode())
        os._exit(EXIT_FAILED)


def _is_waited_for(identity: Identity, env: Mapping[str, str]) -> bool:
    return identity.source in {"slurm", "torchrun", "spawn"} or in_step(env)


def _die_with(supervisor: int) -> None:
    """The kernel ends this process when the supervisor is gone, however it went."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return
    if os.getppid() != supervisor:
        os._exit(EXIT_FAILED)
