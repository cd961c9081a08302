"""Running one of Slurm's programs, and what is said where it can't answer."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections import deque
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from slurmgen.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_INSTALL = (
    "run it on a login node of the cluster; without Slurm, `slurmgen run JOB` runs the job on "
    "this machine and `slurmgen sandbox up` starts a real Slurm here"
)
# sbatch retries for minutes against a dead controller; a person has given up by then.
TIMEOUT = 120
# Bytes of each stream that are kept: the records of a large array are some hundred megabytes.
_MOST = 1 << 30
# Seconds: how often an answer, its deadline and a signal are looked for; how long a program
# that is told to end may take; how long what it has written is read on after its end.
_TICK, _GRACE, _DRAIN = 0.1, 2.0, 0.5
_CHUNK = 1 << 16


class NotStarted(UnavailableError):
    """The program isn't there, or can't be run."""


class NoAnswer(UnavailableError):
    """Slurm can't be asked just now."""


class TimedOut(NoAnswer):
    """The program gave no answer in time and was ended; stdout, stderr: what it had said."""

    def __init__(self, program: str, seconds: float, stdout: str, stderr: str) -> None:
        super().__init__(
            f"{program} gave no answer for {seconds:.0f} s", fix="try again, or ask the site"
        )
        self.stdout = stdout
        self.stderr = stderr


def call(
    command: Sequence[str],
    environment: Mapping[str, str],
    stdin: IO[bytes] | None = None,
    *,
    timeout: float = TIMEOUT,
    limit: int = _MOST,
    pass_fds: Sequence[int] = (),
    deadline: Callable[[float], float] = float,
) -> subprocess.CompletedProcess[str]:
    """One of Slurm's programs and what it said.

    It gets a session of its own, so that the terminal's Ctrl-C doesn't end it half-way.

    timeout: seconds; after them it is ended, with all that it has started in that session.
    limit: bytes kept of each stream, its beginning and its end; what is between is dropped.
    deadline: asked several times a second; takes the moment (of time.monotonic()) at which
        it will be ended, and returns it or an earlier one.

    Raises NotStarted, and TimedOut where it had to be ended.
    """
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            list(command),
            stdin=stdin or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except FileNotFoundError:
        raise NotStarted(f"{command[0]} is not on PATH", fix=_INSTALL) from None
    except OSError as error:
        raise NotStarted(f"cannot run {command[0]}: {error.strerror}", fix=_INSTALL) from error
    said = (_Kept(limit), _Kept(limit))
    try:
        in_time = _listen(process, said, lambda: deadline(started + timeout))
    finally:
        _end(process)
    stdout, stderr = (kept.text() for kept in said)
    if not in_time:
        raise TimedOut(command[0], time.monotonic() - started, stdout, stderr)
    return subprocess.CompletedProcess(list(command), process.returncode, stdout, stderr)


class _Kept:
    """The beginning and the end of a stream, at most `limit` bytes of it."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._length = 0
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self._head += data[:room]
        rest = data[room:]
        if not rest:
            return
        self._tail.append(rest)
        self._length += len(rest)
        while self._length - len(self._tail[0]) >= self._half:
            oldest = self._tail.popleft()
            self._length -= len(oldest)
            self._dropped += len(oldest)

    def text(self) -> str:
        gap = f"\n[{self._dropped} bytes left out]\n".encode() if self._dropped else b""
        return (bytes(self._head) + gap + b"".join(self._tail)).decode("utf-8", "replace")


def _listen(
    process: subprocess.Popen[bytes], said: Sequence[_Kept], deadline: Callable[[], float]
) -> bool:
    """Read until the process has ended; False where its deadline came first.

    Not until its output ends: what it has left in the background may hold that open for ever.
    """
    with selectors.DefaultSelector() as selector:
        for stream, kept in zip((process.stdout, process.stderr), said, strict=True):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, kept)
        until: float | None = None
        while selector.get_map():
            for key, _ in selector.select(_TICK):
                data = os.read(key.fd, _CHUNK)
                if data:
                    key.data.add(data)
                else:
                    selector.unregister(key.fileobj)
            now = time.monotonic()
            if until is None and process.poll() is not None:
                until = now + _DRAIN
            if until is not None and now >= until:
                return True
            if until is None and now >= deadline():
                return False
    while process.poll() is None:
        if time.monotonic() >= deadline():
            return False
        time.sleep(_TICK)
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing of it: neither the process nor our ends of its pipes."""
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    if process.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
            return
