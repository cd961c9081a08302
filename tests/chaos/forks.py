"""A slurmgen that has been imported once and is then forked: a submission costs a tenth of the CPU.

What runs in the fork is `slurmgen.cli.main.main()`, as in a process of its own: it can be killed
and interrupted, and its streams are files.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).resolve().parents[2]
_HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(NamedTuple):
    """status: as subprocess gives it, -9 for one that was killed."""

    status: int
    out: str
    err: str


class Forks:
    """Runs one at a time. prepare: Python that runs once, before the first."""

    def __init__(self, environment: Mapping[str, str], prepare: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, prepare],
            env={**environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def run(self, folder: Path, arguments: list[str], during: Callable[[int], None]) -> Ended:
        """during: called with its pid while it runs."""
        stem = f"{folder}/{os.urandom(4).hex()}"
        told, heard = self._process.stdin, self._process.stdout
        assert told is not None
        assert heard is not None
        told.write(json.dumps([str(folder), stem, arguments]) + "\n")
        during(int(heard.readline()))
        status = int(heard.readline())
        # Without them it was killed before it was slurmgen.
        files = [Path(f"{stem}.{kind}") for kind in ("stdout", "stderr")]
        out, err = (file.read_text(errors="replace") if file.exists() else "" for file in files)
        return Ended(status, out, err)

    def close(self) -> None:
        self._process.communicate(timeout=60)


def _serve() -> None:
    for line in sys.stdin:
        folder, stem, arguments = json.loads(line)
        # Until the fork is what it is to be, nothing can end it half-way.
        signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
        pid = os.fork()
        if pid == 0:
            _become(folder, stem, arguments)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(folder: str, stem: str, arguments: list[str]) -> None:
    from slurmgen.cli.main import main

    # As in a terminal, whatever ran the tests.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.chdir(folder)
    for number, name in ((0, os.devnull), (1, f"{stem}.stdout"), (2, f"{stem}.stderr")):
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        os.dup2(os.open(name, flags, 0o600), number)
    sys.argv = ["slurmgen", *arguments]
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
        main()
    except KeyboardInterrupt:
        # Outside of what main() guards Python would say so, too.
        os._exit(130)
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(int(end.code or 0))
    finally:
        os._exit(1)


if __name__ == "__main__":
    exec(sys.argv[1])
    _serve()
