"""Mail types (sbatch(1), --mail-type)."""

from __future__ import annotations

from difflib import get_close_matches

from slurmgen.errors import Refusal

TYPES = (
    "NONE BEGIN END FAIL REQUEUE ALL INVALID_DEPEND STAGE_OUT TIME_LIMIT TIME_LIMIT_90 "
    "TIME_LIMIT_80 TIME_LIMIT_50 ARRAY_TASKS"
).split()


def canonical_mail_type(text: str) -> str:
    """Types in capitals, joined by commas.

    Raises Refusal for every unknown word: Slurm refuses one that stands alone and drops
    it silently behind a known one (`BEGIN,FOO` becomes `BEGIN`, seen on 20.11 to 26.05).
    """
    words = [word.strip().upper() for word in text.split(",")]
    for word in words:
        if word not in TYPES:
            close = get_close_matches(word, TYPES, n=1)
            raise Refusal(
                f'"{word}" is no mail type',
                why="behind a known one Slurm drops it silently, and the mail never comes",
                fix=f"write {close[0]}" if close else f"known: {', '.join(TYPES)}",
            )
    if "NONE" in words and len(words) > 1:
        raise Refusal(
            f'"{text}" holds NONE and something else',
            why="they say opposite things",
            fix=f"write {','.join(word for word in words if word != 'NONE') or 'NONE'}",
        )
    return ",".join(words)
