"""The signals that ask a run to stop: noted by a handler, acted on by the training loop.

No torch here: the entrypoint installs the handlers before that import, which takes seconds in
which a signal would otherwise end the process.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from slurmgen.ddp.failure import LaunchError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

VARIABLE = "SLURMGEN_SIGNAL"
"""Names the signal that the job asked Slurm for, such as USR1: exported by the batch script."""

EXIT_STOPPED = 75
"""Everything is saved: requeue me (sysexits.h: EX_TEMPFAIL). Only after a completed save."""

_BEFORE, _TRAINING, _ENDED, _STOPPED = "before", "training", "ended", "stopped"


class _State:
    phase = ""
    received: int | None = None
    pid = 0


_state = _State()


def asked_for(env: Mapping[str, str]) -> signal.Signals | None:
    """The signal that `env` names, None for none. Raises LaunchError where it isn't one."""
    text = env.get(VARIABLE, "").strip()
    if not text:
        return None
    name = text.removeprefix("SIG")
    if name not in {"USR1", "USR2", "TERM"}:
        raise LaunchError(
            f"{VARIABLE}={text} is not a signal that a run can stop at",
            why="the ranks wouldn't save when Slurm sends it, and would die of it",
            fix=f"export {VARIABLE}=USR1, or USR2 or TERM, whichever --signal asks for",
        )
    return signal.Signals[f"SIG{name}"]


def install(env: Mapping[str, str]) -> None:
    """Note the signal that `env` names and TERM, instead of dying of them.

    Until `begin`, TERM still ends the process at once: there is nothing to save. Does nothing
    where a handler can't be installed (outside the main thread), nor the second time.
    """
    chosen = {signal.SIGTERM, asked_for(env) or signal.SIGTERM}
    if _state.phase and _state.pid == os.getpid():
        return
    try:
        for number in chosen:
            signal.signal(number, _note)
    except ValueError:
        return
    _state.phase, _state.pid, _state.received = _BEFORE, os.getpid(), None


def inherit() -> None:
    """In the child that goes on as the rank: the handlers of `install` are its own."""
    if _state.phase:
        _state.pid = os.getpid()


def begin() -> None:
    """From here on TERM is noted as well."""
    if _state.phase == _BEFORE:
        _state.phase = _TRAINING


def received() -> signal.Signals | None:
    """The first signal that came, None for none."""
    return None if _state.received is None else signal.Signals(_state.received)


def mark_stopped() -> None:
    """Everything is saved, and the process ends with EXIT_STOPPED, whatever comes meanwhile."""
    _state.phase = _STOPPED
    end(ignore_term=True)


def stopped() -> bool:
    """Whether `mark_stopped` was called."""
    return _state.phase == _STOPPED


def end(*, ignore_term: bool) -> None:
    """After training: ignore what would turn a run that ended well into a failed one.

    Python restores the default actions while it shuts down; an ignored signal stays ignored.
    ignore_term: as well; False where the process may live on for long, and has to end at once
    when its job is cancelled.
    """
    if not _state.phase or _state.pid != os.getpid():
        return
    ignore_term = ignore_term or _state.phase == _STOPPED
    ours = (_note, signal.SIG_IGN, signal.SIG_DFL if _state.phase == _ENDED else None)
    if _state.phase != _STOPPED:
        _state.phase = _ENDED
    try:
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            if signal.getsignal(number) is _note:
                signal.signal(number, signal.SIG_IGN)
        if signal.getsignal(signal.SIGTERM) in ours:
            signal.signal(signal.SIGTERM, signal.SIG_IGN if ignore_term else signal.SIG_DFL)
    except ValueError:
        pass


def ignore_in_child() -> None:
    """For a helper process of a rank: the rank says when it ends, not the signal.

    Slurm sends its signals to every process of a step. A rank whose DataLoader workers die of one
    can't take the step at which all ranks stop.
    """
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


def _note(number: int, _frame: FrameType | None) -> None:
    if _state.pid != os.getpid():
        # A forked child that has inherited the handler.
        return
    if number == signal.SIGTERM and _state.phase == _BEFORE:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        # Where the default doesn't end it: process 1 of a container.
        os._exit(128 + number)
    if _state.received is None:
        _state.received = number
