"""What the entrypoint says: a line for each event, with the time and the rank, on stderr.

Rank 0 talks; the others speak where something is wrong with them. No torch here.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurmgen.ddp.failure import LaunchError

_NAME = "slurmgen.ddp"


class _Speaker:
    rank: int | None = None


_speaker = _Speaker()


def speak_as(rank: int) -> None:
    """From here on each line says that it is of this rank."""
    _speaker.rank = rank


def note(text: str) -> None:
    """Say that something happened, in one line."""
    say(f"{_stamp()}: {text}")


def warn(text: str) -> None:
    """Say that something is wrong, though the run goes on."""
    note(f"warning: {text}")


def refuse(error: LaunchError) -> None:
    """Say why the run can't start, on a line each: what, why, how to fix it; unless rank 0 does."""
    if not error.said:
        note(f"error: {error.what}\n  = why: {error.why}\n  = fix: {error.fix}")


def say(text: str) -> None:
    """Write `text` in one call, so that ranks sharing a file don't tear lines apart.

    Where it can't be written, such as on a full disk, the training is worth more than the line.
    """
    with suppress(OSError, ValueError):
        sys.stderr.write(text if text.endswith("\n") else text + "\n")
        sys.stderr.flush()


def _stamp() -> str:
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"{_NAME} {now}" if _speaker.rank is None else f"{_NAME} {now} rank {_speaker.rank}"
