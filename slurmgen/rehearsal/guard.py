"""A program of its own: owns a rehearsal's folder and sandbox, and outlives the rehearsal.

Makes the folder, prints its path, and waits for the end of its standard input, which comes when
the rehearsal is done, interrupted or killed. Then it ends what is left of the sandbox and removes
the folder. So nothing stays behind whatever ends the rehearsal, and at whatever moment.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from slurmgen.errors import SlurmgenError
from slurmgen.sandbox import remove

SANDBOX = "s"


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        folder = Path(tempfile.mkdtemp(prefix="slurmgen-rehearsal-")).resolve()
    except OSError:
        # No path is the answer: the rehearsal says what is wrong.
        return 1
    try:
        sys.stdout.write(f"{folder}\n")
        sys.stdout.close()
    except BrokenPipeError:
        pass
    sys.stdin.buffer.read()
    status = 0
    try:
        remove(SANDBOX, directory=folder)
        _end_clients(folder)
    except SlurmgenError as error:
        sys.stderr.write(f"slurmgen: {error}\n")
        status = 1
    shutil.rmtree(folder, ignore_errors=status != 0)
    return status


def _end_clients(folder: Path) -> None:
    """The commands that a killed rehearsal had asked: they call a controller that is gone."""
    configuration = os.fsencode(f"SLURM_CONF={folder}/")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            variables = (entry / "environ").read_bytes().split(b"\0")
            if any(variable.startswith(configuration) for variable in variables):
                os.kill(int(entry.name), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
