"""A program of its own: becomes a command that sees another version of Slurm in /usr.

    inside.py TREE -- COMMAND...      TREE: what release.unpacked() has made

Its status is the command's, or what slurmgen's errors have. Run by path with `python -I -S`, so
that neither the folder nor the variables that the command is given matter to it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(argv: list[str]) -> int:
    match argv:
        case [tree, "--", program, *_]:
            return _become(Path(tree), program, argv[2:])
    sys.stderr.write("usage: inside.py TREE -- COMMAND...\n")
    return 2


def _become(tree: Path, program: str, argv: list[str]) -> int:
    from slurmgen.errors import SlurmgenError
    from slurmgen.sandbox import release

    try:
        release.show(tree)
    except SlurmgenError as error:
        sys.stderr.write(f"slurmgen: {error}\n")
        return error.exit_status
    try:
        os.execvp(program, argv)
    except OSError as error:
        sys.stderr.write(f"{program}: {error.strerror}\n")
        # As a shell has it.
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    sys.exit(main(sys.argv[1:]))
