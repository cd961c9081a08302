"""What ``python -m slurmgen.ddp`` does, from the command line to the exit status."""

from __future__ import annotations

import faulthandler
import importlib
import io
import os
import signal
import sys
import traceback
import types
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.ddp import log
from slurmgen.ddp.failure import (
    EXIT_FAILED,
    EXIT_LAUNCH,
    LaunchError,
    bound_exit,
)
from slurmgen.ddp.launch import fork, preflight, signals
from slurmgen.ddp.launch.identity import resolve_identity
from slurmgen.ddp.watch import supervised
from slurmgen.ddp.watch.failures import lost_peer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.ddp.launch.identity import Identity

USAGE = """usage: python -m slurmgen.ddp TARGET [ARGS...]

TARGET is a script (train.py) or a function (package.module:function), which is called without
arguments; both find ARGS in sys.argv. Runs it as one rank of the run that the environment
describes: a Slurm step, torchrun, or a single process.

exit status: the program's own, or that of the rank that failed first; 1 after an exception or a
hang; 69 where a node or the network is gone; 75 where it was asked to stop and has saved
everything; 78 where the ranks were launched wrongly
"""

_INTERRUPTED = 128 + signal.SIGINT


def main(argv: Sequence[str]) -> int:
    """Run one rank, in a child of this process, and return its exit status there.

    0, the program's own status, 1 after an exception, 75 (EXIT_STOPPED) where a signal stopped it
    and everything is saved, 78 (EXIT_LAUNCH) where the processes were started wrongly, said on
    stderr before any rank can hang.
    """
    if not argv or argv[0] in {"-h", "--help"}:
        sys.stdout.write(USAGE) if argv else log.say(USAGE)
        return 0 if argv else EXIT_LAUNCH
    target, *args = argv
    try:
        # A collective mismatch can end in SIGABRT inside gloo, with no traceback of Python's.
        faulthandler.enable()
        if signals.asked_for(os.environ):
            signals.install(os.environ)
        identity = resolve_identity(os.environ)
        log.speak_as(identity.rank)
        preflight.check(identity, os.environ)
        function = preflight.parse_target(target)
        if identity.children:
            from slurmgen.ddp.launch.spawn import run_ranks

            return run_ranks(identity, [sys.executable, "-m", "slurmgen.ddp", *argv])
        fork.divide(identity, os.environ)
    except LaunchError as error:
        log.refuse(error)
        return EXIT_LAUNCH
    try:
        from slurmgen.ddp import group

        group.prepare(identity)
    except LaunchError as error:
        log.refuse(error)
        supervised.failed(EXIT_LAUNCH, f"{error.what}\n", secondary=False)
        return EXIT_LAUNCH
    sys.argv = [target, *args]
    try:
        if function is None:
            _run_script(target)
        else:
            group.init()
            _call(*function)
    except BaseException as error:
        return _failed(error, identity)
    return _done()


def _done() -> int:
    from slurmgen.ddp import group

    group.shutdown()
    signals.end(ignore_term=True)
    supervised.ended(0)
    return 0


def _run_script(path: str) -> None:
    """As ``python path`` would: as ``__main__``, with its folder first on sys.path."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = str(Path(path).resolve().parent)
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=str(Path(path).absolute()), __builtins__=__builtins__)
    with io.open_code(str(Path(path).absolute())) as file:
        code = compile(file.read(), path, "exec")
    # Stays there: what the program pickled as __main__.X must be found after it has ended, too.
    sys.modules["__main__"] = module
    exec(code, module.__dict__)  # noqa: S102 - running the user's program is the purpose


def _call(module: str, function: str) -> None:
    target: object = importlib.import_module(module)
    for name in function.split("."):
        target = getattr(target, name)
    if not callable(target):
        raise TypeError(f"{module}:{function} is {type(target).__name__}, not a function")
    target()


def _failed(error: BaseException, identity: Identity) -> int:
    from slurmgen.ddp import group

    status, text = _status(error)
    if status == 0:
        return _done()
    if status == signals.EXIT_STOPPED and signals.stopped():
        supervised.ended(status)
        return status
    bound_exit()
    place = f"rank {identity.rank} on {identity.node} (local rank {identity.local_rank})"
    note = f"{place} failed with exit code {status}"
    first = group.mark_failed(note)
    if text:
        log.say(text)
    log.note(note)
    if first != note:
        log.note(f"before that, {first}")
    supervised.failed(status, text, secondary=first != note or lost_peer(text))
    return status


def _status(error: BaseException) -> tuple[int, str]:
    """The exit status Python would give, and what it would print."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF, ""
        return EXIT_FAILED, f"{error.code}\n"
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED, ""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return EXIT_FAILED, "".join(traceback.format_exception(type(error), error, frames))
