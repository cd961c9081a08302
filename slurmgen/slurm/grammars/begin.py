"""Points in time: `now+2hours`, `16:00`, `2030-01-20T12:34:00` (sbatch(1), --begin).

sbatch takes some of its words in any case and others only in small letters, wants a
capital T in the middle, and turns 2030-02-30 into the second of March (seen on 22.05):
the words are written small here and the days counted.
"""

from __future__ import annotations

import re
from calendar import monthrange

from slurmgen.errors import Refusal

_UNITS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_OFFSET = re.compile(r"now(?: ?\+ ?(\d{1,9}) ?(?:(second|minute|hour|day|week)s?)?)?")
_CLOCK = re.compile(
    r"(\d{1,2}):(\d{2})(?::(\d{2}))?( ?[ap]m)?|midnight|noon|elevenses|fika|teatime"
)
_DATE = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
    r"|(\d{2})[/.]?(\d{2})(?:[/.]?(\d{2}))?|(\d{1,2})/(\d{1,2})|today|tomorrow"
)


def canonical_begin(text: str) -> str:
    """The text with words in small letters; raises Refusal for what sbatch cannot read."""
    lowered = re.sub(r"\s+", " ", text.strip().lower())
    if _OFFSET.fullmatch(lowered) and text.isascii():
        return lowered.replace(" ", "")
    # The T of an ISO date, and not the one of "teatime" or "tomorrow".
    spaced = re.sub(r"(?<=\d)t(?=\d)", " ", lowered)
    joint = "T" if spaced != lowered else " "
    for head, tail in _splits(spaced) if spaced and text.isascii() else ():
        if any(_is_clock(a) and _is_date(b) for a, b in ((head, tail), (tail, head))):
            return f"{head}{joint}{tail}" if head and tail else head or tail
    why = "it is now+N[minutes|hours|days|weeks], HH:MM[:SS], a date, or both joined by T"
    fix = "write, say, now+2hours, 16:00 or 2030-01-20T12:34:00"
    if re.fullmatch(r"\d{1,2} ?[ap]m", lowered):
        why = "sbatch needs the minutes"
        fix = f"write {lowered[:-2].strip()}:00{lowered[-2:]}"
    elif short := re.fullmatch(r"now ?\+ ?(\d+) ?([smhdw])[a-z]{0,3}", lowered):
        why = "sbatch takes the whole name of the unit"
        unit = next(unit for unit in _UNITS if unit.startswith(short[2]))
        fix = f"write now+{short[1]}{unit}s"
    elif re.match(r"\d", lowered):
        why += "; no such hour, minute, day or month exists"
    raise Refusal(f'"{text}" is not a point in time', why=why, fix=fix)


def offset_seconds(text: str) -> int | None:
    """The seconds from now of `now+N…`, None for a point that only the clock can tell."""
    found = _OFFSET.fullmatch(text)
    return int(found[1] or 0) * _UNITS[found[2] or "second"] if found else None


def _splits(text: str) -> list[tuple[str, str]]:
    """Every way to cut the text in two at a blank, and the whole of it."""
    cuts = [(text[: found.start()], text[found.end() :]) for found in re.finditer(" ", text)]
    return [(text, ""), *cuts]


def _is_clock(text: str) -> bool:
    found = _CLOCK.fullmatch(text)
    if found is None or found[1] is None:
        return not text or found is not None
    most = 12 if found[4] else 23
    return int(found[1]) <= most and int(found[2]) <= 59 and int(found[3] or 0) <= 59


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None or text in ("today", "tomorrow"):
        return not text or found is not None
    year, month, day, *american = found.groups()
    if year is None:
        month, day = american[0] or american[3], american[1] or american[4]
        # A leap year, where none is given: it may be the next one.
        year = f"20{american[2] or '28'}"
    if not 1 <= int(month) <= 12 or int(year) < 1970:
        return False
    return 1 <= int(day) <= monthrange(int(year), int(month))[1]
