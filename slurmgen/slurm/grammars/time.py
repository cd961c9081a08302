"""Time limits: Slurm's forms and the shorthand people write.

sbatch(1), --time: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`, and `infinite`,
`UNLIMITED`, `-1` and `0` for no limit. Ours besides: `90m`, `4h`, `2d12h`, `1h30m`,
`45s`, which sbatch itself refuses. Seconds are kept; Slurm rounds up to minutes.
"""

from __future__ import annotations

from typing import NamedTuple

from slurmgen.errors import Refusal

UNLIMITED = "UNLIMITED"
_UNLIMITED = ("infinite", "unlimited", "-1", "0")
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
# Slurm counts seconds in 31 bits while it reads a time: 24856-00 becomes 2957761-21:49:00
# (seen on 22.05).
_MOST = 24_855 * 86_400


def parse_time(text: str) -> int | None:
    """Seconds, or None for no limit (which `0:00` is, too); raises Refusal."""
    lowered = text.strip().lower()
    if lowered in _UNLIMITED:
        return None
    seconds = _shorthand(lowered) if lowered[-1:] in _UNITS else _slurm_form(lowered)
    if seconds is None:
        raise Refusal(
            f'"{text}" is not a time',
            why="a time is minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S, or such as 90m, 4h, 2d12h",
            fix=f"write {_suggestion(lowered)}",
        )
    if seconds > _MOST:
        raise Refusal(
            f'"{text}" is longer than Slurm can count',
            why="it counts seconds in 31 bits, and over 24855 days the limit becomes another",
            fix="write UNLIMITED",
        )
    return seconds or None


def _slurm_form(text: str) -> int | None:
    days, dash, rest = text.partition("-")
    if not dash:
        days, rest = "0", text
    parts = rest.split(":")
    if len(parts) > 3 or not all(part.isascii() and part.isdigit() for part in (days, *parts)):
        return None
    numbers = [_number(part) for part in parts]
    if dash:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
    elif len(numbers) == 3:
        hours, minutes, seconds = numbers
    else:
        hours, (minutes, seconds) = 0, [*numbers, 0][:2]
    return _number(days) * 86_400 + hours * 3_600 + minutes * 60 + seconds


def _number(digits: str) -> int:
    """Over _MOST for what has more digits than int() takes."""
    return int(digits[:20])


def _shorthand(text: str) -> int | None:
    """`2d12h`: whole numbers with units, largest unit first, each once."""
    total, number, last = 0, "", 86_401
    for character in text:
        if character.isascii() and character.isdigit():
            number += character
            continue
        unit = _UNITS.get(character)
        if unit is None or not number or unit >= last:
            return None
        total, number, last = total + _number(number) * unit, "", unit
    return None if number else total


def _suggestion(text: str) -> str:
    """The whole minutes of a fraction such as `1.5h`, else an example."""
    number, unit = text[:-1], text[-1:]
    if unit.isdigit():
        number, unit = text, "m"
    try:
        seconds = float(number) * _UNITS[unit]
    except (KeyError, ValueError, OverflowError):
        return "4:00:00, 90m or 2d12h"
    return format_time(round(seconds)) if 0 < seconds < _MOST else "4:00:00, 90m or 2d12h"


def format_time(seconds: int | None) -> str:
    """`D-HH:MM:SS`, or `HH:MM:SS` under a day; every Slurm reads it back equal."""
    if seconds is None:
        return UNLIMITED
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def canonical_time(text: str) -> str:
    """The one spelling that is rendered; raises Refusal. Under a second means no limit."""
    seconds = parse_time(text)
    if seconds == 0:
        return UNLIMITED
    return format_time(seconds)


class Duration(NamedTuple):
    """A time limit in seconds, None for no limit; as text what is rendered."""

    seconds: int | None

    def __str__(self) -> str:
        return format_time(self.seconds)


def duration(text: str) -> Duration:
    """The time limit that a text says; raises Refusal."""
    return Duration(parse_time(text))
