"""The spawn launcher: one task per node starts the ranks of its node. No torch here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from slurmgen.ddp import log
from slurmgen.ddp.launch import signals
from slurmgen.ddp.launch.identity import SPAWN_PARENT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from slurmgen.ddp.launch.identity import Identity

GRACE_S = 5.0
"""Between TERM and KILL: ranks whose peer has died can't do more than leave."""


def run_ranks(identity: Identity, command: Sequence[str]) -> int:
    """Run `command` once per local rank; returns 0, or the exit code of the first that failed.

    One that dies ends the others within GRACE_S; killed by signal n counts as 128 + n. Where the
    job asks for a signal to save at, that one and TERM are the ranks' to act on: they are passed
    on, and the ranks' own exit status says how it went.
    """
    children: list[subprocess.Popen[bytes]] = []
    asked = signals.asked_for(os.environ)
    if asked is None:
        # By default TERM would end this process at once, and leave its children behind.
        signal.signal(signal.SIGTERM, _terminate)
    else:

        def forward(number: int, _frame: FrameType | None) -> None:
            for child in children:
                if child.returncode is None:
                    child.send_signal(number)

        for number in {asked, signal.SIGTERM}:
            signal.signal(number, forward)
    try:
        for local_rank in range(identity.local_world_size):
            rank = identity.node_rank * identity.local_world_size + local_rank
            place = {
                "RANK": str(rank),
                "LOCAL_RANK": str(local_rank),
                SPAWN_PARENT: str(os.getpid()),
            }
            children.append(subprocess.Popen(command, env={**os.environ, **place}))
        return _first_failure(identity, children)
    finally:
        _end(children)


def _first_failure(identity: Identity, children: Sequence[subprocess.Popen[bytes]]) -> int:
    running = dict(enumerate(children))
    while running:
        # Wakes at the first death without reaping, so that Popen learns each exit code itself.
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        for local_rank, child in list(running.items()):
            code = child.poll()
            if code is None:
                continue
            del running[local_rank]
            if code:
                rank = identity.rank + local_rank
                status = code if code > 0 else 128 - code
                how = f"exit code {code}" if code > 0 else f"signal {-code}"
                log.note(f"rank {rank} on {identity.node} ended with {how}; ending the others")
                return status
    return 0


def _end(children: Sequence[subprocess.Popen[bytes]]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    alive = [child for child in children if child.poll() is None]
    for child in alive:
        # A stopped process acts on TERM only after CONT.
        child.send_signal(signal.SIGCONT)
        child.terminate()
    end = time.monotonic() + GRACE_S
    for child in alive:
        try:
            child.wait(max(end - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _terminate(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
