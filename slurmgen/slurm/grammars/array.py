"""Array specifications: `0-15:4%2` (sbatch(1), --array)."""

from __future__ import annotations

from typing import NamedTuple

from slurmgen.errors import Refusal

# src/common/slurm_protocol_defs.h MAX_ARRAY_SPEC; over it Slurm complains of a path name.
_MAX_LENGTH = 4096
_MAX_INDEX = 4_000_000


class Array(NamedTuple):
    """The tasks of an array: how many, the highest index, and how many run at once.

    spelled: as it is rendered, without blanks and brackets.
    """

    tasks: int
    max_index: int
    throttle: int | None
    spelled: str

    def __str__(self) -> str:
        return self.spelled


def parse_array(text: str) -> Array:
    """Raises Refusal for what Slurm refuses, and for what it takes but nobody can mean."""
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1]  # squeue prints [0-3%2]
    body, *throttles = inner.split("%")
    if len(text) > _MAX_LENGTH:
        raise _refusal(
            text[:40] + "…", f"Slurm takes at most {_MAX_LENGTH} characters", "shorten it"
        )
    if len(throttles) > 1:
        raise _refusal(text, "sbatch accepts two %, but one counts", f"write {body}%{throttles[0]}")
    throttle = None
    if throttles:
        if not _digits(throttles[0]) or int(throttles[0]) == 0:
            why = "the number behind % is how many tasks run at once; Slurm takes %0 for no limit"
            raise _refusal(text, why, f"write {body}, or {body}%1 for one at a time")
        throttle = int(throttles[0])
    if body.startswith("[") and body.endswith("]"):
        body = body[1:-1]
    ranges = [_item(item, text) for item in body.split(",")]
    if len(ranges) > 1:
        _refuse_repeats(ranges, text)
    spelled = "".join(text.split()).replace("[", "").replace("]", "")
    return Array(sum(map(len, ranges)), max(indices[-1] for indices in ranges), throttle, spelled)


def _refuse_repeats(ranges: list[range], text: str) -> None:
    seen: set[int] = set()
    for indices in ranges:
        twice = next((index for index in indices if index in seen), None)
        if twice is not None:
            raise _refusal(text, f"index {twice} is named twice; it runs once", "name it once")
        seen.update(indices)


def _item(item: str, text: str) -> range:
    first, dash, rest = item.strip().partition("-")
    last, colon, step = rest.partition(":")
    why = "an item is N, N-M or N-M:STEP, and indices start at 0"
    if not _digits(first) or (dash and not _digits(last)) or (colon and not _digits(step)):
        raise _refusal(text, why, "write, say, 0-15 or 1,3,5-7%2")
    if int(last or first) > _MAX_INDEX:
        raise _refusal(text, "Slurm's MaxArraySize is at most 4000001", "split the array")
    if not dash:
        return range(int(first), int(first) + 1)
    if int(last) < int(first):
        raise _refusal(text, f"{item} counts down", f"write {last}-{first}")
    if colon and int(step) == 0:
        raise _refusal(text, f"the step of {item} is 0", f"write {first}-{last}")
    return range(int(first), int(last) + 1, int(step) if colon else 1)


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _refusal(text: str, why: str, fix: str) -> Refusal:
    return Refusal(f'"{text}" is not an array of tasks', why=why, fix=fix)
