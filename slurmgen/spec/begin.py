"""Points in time: `now+2hours`, `16:00`, `2030-01-20T12:34:00` (sbatch(1), --begin)."""

from __future__ import annotations

import re

from slurmgen.errors import Refusal

_WORDS = "midnight|noon|elevenses|fika|teatime"
_CLOCK = r"\d{1,2}:\d{2}(:\d{2})?( ?[ap]m)?"
_DATE = r"(\d{4}-\d{2}-\d{2}|\d{2}/?\d{2}(/?\d{2}(\d{2})?)?|\d{2}\.\d{2}\.\d{2}|today|tomorrow)"
_OFFSET = r"now(\+\d+ ?(second|minute|hour|day|week)?s?)?"
_ISO = r"\d{4}-\d{2}-\d{2}t\d{2}:\d{2}(:\d{2})?"


def canonical_begin(text: str) -> str:
    """The text as it is; raises Refusal for what sbatch cannot read."""
    clock = f"({_CLOCK}|{_WORDS})"
    grammar = f"({_OFFSET}|{_ISO}|{clock}( {_DATE})?|{_DATE}( {clock})?)"
    if not re.fullmatch(grammar, text.strip().lower()):
        why = "it is now+N[minutes|hours|days|weeks], HH:MM[:SS], a date, or both joined by T"
        fix = "write, say, now+2hours, 16:00 or 2030-01-20T12:34:00"
        if re.fullmatch(r"\d{1,2} ?[ap]m", text.strip().lower()):
            why = "sbatch needs the minutes"
            fix = f"write {text.strip()[:-2].strip()}:00{text.strip()[-2:]}"
        raise Refusal(f'"{text}" is not a point in time', why=why, fix=fix)
    return text.strip()
