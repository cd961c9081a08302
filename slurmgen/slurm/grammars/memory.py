"""Memory sizes: a whole number with K, M, G or T (sbatch(1), --mem); MiB without."""

from __future__ import annotations

from typing import NamedTuple

from slurmgen.errors import Refusal

# MiB in a unit; K is rounded up to whole MiB, as Slurm does.
_UNITS = {"m": 1, "g": 1024, "t": 1024**2}
# More than any node has. Slurm keeps the top bit for itself: 8796093022208T is read as 0.
_MOST = 1024**4


def parse_memory(text: str) -> int:
    """MiB; 0 means all memory of a node. Raises Refusal."""
    number, unit = _split(text)
    if number is None:
        raise Refusal(
            f'"{text}" is not an amount of memory',
            why="it is a whole number with K, M, G or T; sbatch refuses fractions and Gi",
            fix=f"write {_suggestion(text)}",
        )
    amount = -(-number // 1024) if unit == "k" else number * _UNITS[unit or "m"]
    if amount > _MOST:
        raise Refusal(
            f'"{text}" is more memory than any node has',
            why="over some limit Slurm reads another number",
            fix="write, say, 64G, or 0 for all memory of a node",
        )
    return amount


def _split(text: str) -> tuple[int | None, str]:
    lowered = text.strip().lower()
    if lowered.endswith("b") and lowered[-2:-1] in ("k", "m", "g", "t"):
        lowered = lowered[:-1]
    unit = lowered[-1:] if lowered[-1:] in ("k", "m", "g", "t") else ""
    number = lowered[: len(lowered) - len(unit)]
    digits = number.isascii() and number.isdigit() and len(number) < 30
    return (int(number), unit) if digits else (None, unit)


def _suggestion(text: str) -> str:
    lowered = "".join(text.lower().split()).lstrip("+-").removesuffix("b").removesuffix("i")
    unit = lowered[-1:]
    try:
        amount = float(lowered[:-1]) * _UNITS[unit]
    except (KeyError, ValueError):
        return "64G"
    if not 0 < amount <= _MOST:
        return "64G"
    whole = amount / _UNITS[unit]
    return f"{int(whole)}{unit.upper()}" if whole.is_integer() else f"{round(amount)}M"


def canonical_memory(text: str) -> str:
    """The one spelling that is rendered: the number and one capital; raises Refusal."""
    amount = parse_memory(text)
    number, unit = _split(text)
    return f"{number}{unit.upper()}" if amount else "0"


class Memory(NamedTuple):
    """An amount in MiB, 0 for all memory of a node; spelled: as it is rendered."""

    mib: int
    spelled: str

    def __str__(self) -> str:
        return self.spelled


def memory(text: str) -> Memory:
    """The amount that a text says; raises Refusal."""
    return Memory(parse_memory(text), canonical_memory(text))
