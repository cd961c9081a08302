"""A program of its own: owns a rehearsal's folder and sandbox, and outlives the rehearsal.

Makes the folder, prints its path (or why there is none, on a line that begins with a blank), and
waits for the end of its standard input, which comes when the rehearsal is done, interrupted or
killed. Then it ends what is left of the sandbox and removes the folder. So nothing stays behind
whatever ends the rehearsal, and at whatever moment.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

SANDBOX = "s"

# TMPDIR first; a rehearsal does not depend on it.
_ROOTS = ("/tmp", "/var/tmp")
# As Slurm can spell a path; see sandbox/folder.py.
_PLAIN = re.compile(r"[A-Za-z0-9/._+@:-]+")
_ROOM = 1 << 20


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    folder = None
    reasons = []
    for root in dict.fromkeys((os.environ.get("TMPDIR") or _ROOTS[0], *_ROOTS)):
        try:
            folder = _folder_in(root)
        except OSError as error:
            reasons.append(f"{root}: {error.strerror or error}")
        else:
            break
    with suppress(BrokenPipeError):
        sys.stdout.write(f"{folder}\n" if folder else f" {'; '.join(reasons)}\n")
        sys.stdout.close()
    sys.stdin.buffer.read()
    return _clear(folder) if folder else 0


def _folder_in(root: str) -> Path:
    """A new folder, in which programs can be written and run; raises OSError."""
    if not os.path.isabs(root):
        raise OSError("not an absolute path")
    if not _PLAIN.fullmatch(os.path.realpath(root)):
        raise OSError(f"Slurm can't spell it; it takes letters, digits and {'._+@:-'!r}")
    folder = Path(tempfile.mkdtemp(prefix="slurmgen-rehearsal-", dir=root)).resolve()
    program = folder / "try"
    try:
        program.write_bytes(b"#!/bin/sh\n" + b"#" * _ROOM)
        program.chmod(0o700)
        subprocess.run([program], check=True, timeout=60)
        program.unlink()
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, PermissionError):
            raise OSError("no program may be run from there") from error
        raise OSError(getattr(error, "strerror", None) or str(error)) from error
    return folder


def _clear(folder: Path) -> int:
    # Not before: a rehearsal is not to wait for this.
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from slurmgen.errors import SlurmgenError
    from slurmgen.sandbox.removal import remove

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
