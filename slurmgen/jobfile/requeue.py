"""`requeue: {signal: USR1@180, max_restarts: 20}`: what ends a run, and how often it returns.

A signal at a number of seconds before the time limit tells the program to save and to exit
75; the script then puts the job back into the queue. With `on_node_fail` it does so as well
where the bundled entrypoint ends with 69, since a node or the network is gone; as the only
word (`requeue: on_node_fail`) for nothing else.
"""

from __future__ import annotations

from slurmgen.errors import Refusal
from slurmgen.slurm.grammars.signal import canonical_signal, flags_and_name

SIGNAL = "USR1@180"
MAX_RESTARTS = 20
ON_NODE_FAIL = "on_node_fail"
# Every restart waits for two minutes at least (Slurm's BeginTime after a requeue).
_MOST_RESTARTS = 10_000
# What no launcher, shell or time limit means otherwise: TERM is preemption's and scancel's.
_NAMES = {"USR1": "USR1", "USR2": "USR2", "10": "USR1", "12": "USR2"}
# Slurm looks every 30 seconds and sends it up to a minute early (seen on 20.11 to 26.05).
EARLY_SECONDS = 60


def requeue_signal(text: str) -> str:
    """`NAME@SECONDS`, both always written; raises Refusal."""
    given = canonical_signal(text)
    flags, name = flags_and_name(given)
    seconds = given.partition("@")[2] or SIGNAL.partition("@")[2]
    if flags:
        raise Refusal(
            f'"{text}" has the flags {flags}',
            why="the signal goes to the program itself, and what the batch shell alone gets is "
            "passed on to it",
            fix=f"write {_NAMES.get(name, 'USR1')}@{seconds}",
        )
    if name not in _NAMES:
        raise Refusal(
            f'"{text}" is not USR1 or USR2',
            why="any other signal means something else already: TERM is what preemption and "
            "scancel send, and most programs end by the rest",
            fix=f"write USR1@{seconds}, or USR2@{seconds} where a library takes USR1",
        )
    if int(seconds) == 0:
        raise Refusal(
            f'"{text}" leaves no time to save',
            why="the signal would come with the time limit itself",
            fix=f"write {_NAMES[name]}@180, or as long as a checkpoint takes",
        )
    return f"{_NAMES[name]}@{int(seconds)}"


def signal_seconds(signal: str) -> int:
    """The seconds of a canonical `NAME@SECONDS`."""
    return int(signal.partition("@")[2])


def restarts(text: str) -> int:
    """How often the job may come back; raises Refusal."""
    given = text.strip()
    if not (given.isascii() and given.isdigit()) or int(given[:9]) > _MOST_RESTARTS:
        raise Refusal(
            f'"{text}" is not a number of restarts',
            why=f"it is a whole number up to {_MOST_RESTARTS}, and what ends a job that would "
            "come back for ever",
            fix=f"write max_restarts: {MAX_RESTARTS}",
        )
    if int(given) == 0:
        raise Refusal(
            "max_restarts 0 lets the job never come back",
            why="then there is nothing to requeue",
            fix="write requeue: false, or max_restarts: 1 or more",
        )
    return int(given)
