"""A program of its own: becomes a command that sees another version of Slurm in /usr.

    inside.py TREE [PARENT] -- COMMAND...   TREE: what release.unpacked() has made, or "" for
                                            what is there anyway; PARENT: the process that has
                                            started it, and with which the command ends

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
            return _become(tree, program, argv[2:])
        case [tree, parent, "--", program, *_]:
            return _become(tree, program, argv[3:], int(parent))
    sys.stderr.write("usage: inside.py TREE [PARENT] -- COMMAND...\n")
    return 2


def _become(tree: str, program: str, argv: list[str], parent: int | None = None) -> int:
    from slurmgen.sandbox.isolation import die_with

    if tree and (status := _show(Path(tree))):
        return status
    try:
        if parent is not None:
            die_with(parent)
        os.execvp(program, argv)
    except OSError as error:
        sys.stderr.write(f"{program}: {error.strerror}\n")
        # As a shell has it.
        return 127 if isinstance(error, FileNotFoundError) else 126


def _show(tree: Path) -> int:
    from slurmgen.errors import SlurmgenError
    from slurmgen.sandbox import release

    try:
        release.show(tree)
    except SlurmgenError as error:
        sys.stderr.write(f"slurmgen: {error}\n")
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    sys.exit(main(sys.argv[1:]))
