"""A program of its own: clears away a sandbox whose start was killed before its end.

    guard.py FOLDER   waits for the end of its standard input, which comes when the start is over
                      or killed. Without a word before it, nothing of the sandbox in FOLDER stays.

The start itself clears away what it can; nothing that is killed with SIGKILL can.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_DONE = b"done"
_SECONDS = 10.0
# What the killed start was just starting may show itself a little later.
_LOOKS, _BETWEEN = 3, 0.3


@contextlib.contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """If this process is killed inside the `with`, nothing of the sandbox in `folder` is left."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(folder)],
        stdin=subprocess.PIPE,
        # Ctrl-C is the start's to deal with.
        start_new_session=True,
        cwd="/",
    )
    try:
        yield
    finally:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(_DONE)
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS)


def main(folder: Path) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read() == _DONE:
        return 0
    # Not before: nearly every start ends well, and is not to wait for this.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from slurmgen.errors import SlurmgenError
    from slurmgen.sandbox.removal import remove

    try:
        for _ in range(_LOOKS):
            remove(folder.name, directory=folder.parent)
            time.sleep(_BETWEEN)
    except SlurmgenError as error:
        sys.stderr.write(f"slurmgen: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
