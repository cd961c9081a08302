"""What was meant where words follow an option's value: `--mem 64 GB`, `END, FAIL`, `3 days`."""

from __future__ import annotations

import re

from slurmgen.slurm.options import catalog

_NAMES = ("job-name", "comment")
_GLUED = {
    "exclusive": r"user|mcs|topo",
    "nice": r"-?\d+",
    "no-kill": r"off",
    "propagate": r"ALL|NONE|[A-Z]+(,[A-Z]+)*",
    "requeue": r"expedite",
}
_UNIT_OF_MEMORY = re.compile(r"[KMGT]i?B?", re.IGNORECASE)
_UNIT_OF_TIME = re.compile(r"(d|h|m)(ays?|ours?|rs?|in|ins|inutes?)?", re.IGNORECASE)


def meant_value(option: str, value: str, stray: list[str]) -> str | None:
    """The value that was meant by `value` and all words behind it; None where it is a guess."""
    if option in ("mem", "mem-per-cpu", "mem-per-gpu", "tmp"):
        if len(stray) == 1 and value.isdecimal() and _UNIT_OF_MEMORY.fullmatch(stray[0]):
            return value + stray[0].upper().replace("I", "")
    elif option in ("time", "time-min"):
        return _time(value, stray)
    elif option in catalog.lists():
        joined = value
        for word in stray:
            if not joined.endswith(",") and not word.startswith(","):
                return None
            joined += word
        return joined
    elif option in _NAMES and not any(word.startswith(("(", "<", "-", "=")) for word in stray):
        return " ".join([value, *stray])
    return None


def _time(value: str, stray: list[str]) -> str | None:
    found = _UNIT_OF_TIME.fullmatch(stray[0])
    if len(stray) != 1 or not value.isdecimal() or found is None:
        return None
    return {"d": f"{value}-00:00:00", "h": f"{value}:00:00", "m": value}[found[1].lower()]


def is_value(option: str, word: str) -> bool:
    """Whether a word is a value for an option that takes one only behind `=`."""
    return re.fullmatch(_GLUED.get(option, "(?!)"), word) is not None
