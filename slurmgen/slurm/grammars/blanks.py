"""Blanks in values that have none for Slurm."""

from __future__ import annotations

import re

from slurmgen.errors import Refusal


def without_blanks(text: str, separators: str) -> str:
    """`text` without the blanks beside its separators; raises Refusal for any other.

    A blank between two words must not vanish: `afterok:1 2` would become job 12.
    """
    marks = re.escape(separators)
    squeezed = re.sub(rf"\s*([{marks}])\s*", r"\1", text.strip())
    if any(character.isspace() for character in squeezed):
        raise Refusal(
            f'"{text}" holds a blank between two words',
            why="Slurm would refuse it or take it for one word",
            fix=f"join them by one of {' '.join(separators)}",
        )
    return squeezed
