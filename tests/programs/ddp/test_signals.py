"""Which signal is noted, and when: in processes of their own, without torch."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

BEGIN = """
import os, signal, sys
sys.modules["torch"] = None
from slurmgen.ddp.launch import signals
def send(name):
    os.kill(os.getpid(), getattr(signal, name))
signals.install({"SLURMGEN_SIGNAL": "USR2"})
"""


def run(code: str) -> int:
    return subprocess.run([sys.executable, "-c", BEGIN + code], timeout=60).returncode


def test_names() -> None:
    from slurmgen.ddp.failure import LaunchError
    from slurmgen.ddp.launch.signals import asked_for

    assert asked_for({}) is asked_for({"SLURMGEN_SIGNAL": ""}) is None
    assert asked_for({"SLURMGEN_SIGNAL": "USR1"}) is signal.SIGUSR1
    assert asked_for({"SLURMGEN_SIGNAL": "SIGUSR2"}) is signal.SIGUSR2
    for wrong in ("KILL", "USR1@120", "usr1", "10"):
        with pytest.raises(LaunchError, match="is not a signal that a run can stop at"):
            asked_for({"SLURMGEN_SIGNAL": wrong})


def test_before_training() -> None:
    assert run("send('SIGUSR2'); assert signals.received() is signal.SIGUSR2") == 0
    assert run("send('SIGTERM')") == -signal.SIGTERM
    # Not what the job asked for.
    assert run("send('SIGUSR1')") == -signal.SIGUSR1


def test_while_training() -> None:
    assert run("signals.begin(); send('SIGTERM'); assert signals.received() == 15") == 0
    twice = "signals.begin(); send('SIGUSR2'); send('SIGTERM'); send('SIGUSR2')\n"
    assert run(twice + "assert signals.received() is signal.SIGUSR2") == 0


def test_after_training() -> None:
    assert run("signals.begin(); signals.end(ignore_term=True); send('SIGTERM')") == 0
    # A job that is cancelled while rank 0 still evaluates has to end.
    late = "signals.begin(); signals.end(ignore_term=False); send('SIGUSR2')\n"
    assert run(late + "sys.exit(3)") == 3
    assert run(late + "send('SIGTERM')") == -signal.SIGTERM
    assert run(late + "signals.end(ignore_term=True); send('SIGTERM')") == 0
    # Once everything is saved, nothing changes the exit status any more.
    stopped = "signals.begin(); signals.mark_stopped(); signals.end(ignore_term=False)\n"
    assert run(stopped + "send('SIGTERM'); sys.exit(75)") == 75


def test_a_program_s_own_handler_stays() -> None:
    own = "signals.begin(); signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))\n"
    assert run(own + "signals.end(ignore_term=True); send('SIGTERM')") == 4


def test_a_forked_child_notes_nothing() -> None:
    code = (
        "signals.begin()\n"
        "if child := os.fork():\n"
        "    os.waitpid(child, 0)\n"
        "else:\n"
        "    send('SIGTERM'); os._exit(signals.received() is not None)\n"
    )
    assert run(code) == 0
