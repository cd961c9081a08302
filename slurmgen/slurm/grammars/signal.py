"""Signals before the time limit: `[R][B]:NAME[@SECONDS]` (sbatch(1), --signal)."""

from __future__ import annotations

from slurmgen.errors import Refusal

# The names that 22.05 takes; the others it refuses, CHLD and PIPE too.
_NAMES = "HUP INT QUIT ABRT KILL ALRM TERM USR1 USR2 URG CONT STOP TSTP TTIN TTOU XCPU".split()
_MOST_SECONDS = 65_535
_HELP = "write, say, USR1@120 (steps), or B:USR1@120 (batch shell only)"


def canonical_signal(text: str) -> str:
    """Flags and name in capitals, without SIG; raises Refusal."""
    head, colon, rest = text.strip().upper().rpartition(":")
    name, at, seconds = rest.partition("@")
    name = name.removeprefix("SIG")
    if colon and head not in ("B", "R", "RB", "BR"):
        raise Refusal(
            f'"{text}" has the flags {head or "(none)"}', why="the flags are B and R", fix=_HELP
        )
    number = name.isascii() and name.isdigit() and len(name) < 3 and 1 <= int(name) <= 64
    if name not in _NAMES and not number:
        raise Refusal(
            f'"{name}" in "{text}" is no signal that Slurm knows',
            why=f"it knows {', '.join(_NAMES)}",
            fix=_HELP,
        )
    if at and (not seconds.isascii() or not seconds.isdigit() or int(seconds[:9]) > _MOST_SECONDS):
        raise Refusal(
            f'"{seconds}" in "{text}" is not a number of seconds',
            why=f"it is 0 to {_MOST_SECONDS} seconds before the time limit",
            fix=_HELP,
        )
    return (f"{head}:" if colon else "") + name + (f"@{seconds}" if at else "")


def flags_and_name(text: str) -> tuple[str, str]:
    """The flags and the name of a canonical signal: `RB:USR1@120` is ("RB", "USR1")."""
    flags, _, name = text.partition("@")[0].rpartition(":")
    return flags, name
