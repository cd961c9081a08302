"""`--fix`: the edits of findings, applied until nothing is left to apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from slurmgen.diagnostics import Diagnostic, Edit

# Each mends all that lies apart; a second is rare, and so many are a sign of a rule whose fix
# does not mend.
_ROUNDS = 20


def fixed(
    text: str,
    find: Callable[[str], Iterable[Diagnostic]],
    count_errors: Callable[[str], int],
) -> str:
    """`text` with every edit made that can be made.

    find: the findings with edits of a text. count_errors: how many syntax errors it has;
    a fix that makes more of them is dropped.
    """
    versions = [text]
    for _ in range(_ROUNDS):
        now = versions[-1]
        after = _round(now, [d.edits for d in find(now) if d.edits], count_errors)
        if after == now:
            return now
        if after in versions:
            break
        versions.append(after)
    # Rules that undo each other, or never have enough: a second run has to change nothing.
    return text


def _round(
    text: str, wanted: Sequence[tuple[Edit, ...]], count_errors: Callable[[str], int]
) -> str:
    errors = count_errors(text)
    fitting = _apart(wanted, len(text))
    after = apply(text, [edit for edits in fitting for edit in edits])
    if after == text or count_errors(after) <= errors:
        return after
    kept: list[Edit] = []
    for edits in fitting:
        if count_errors(apply(text, [*kept, *edits])) <= errors:
            kept += edits
    return apply(text, kept)


def _apart(wanted: Iterable[tuple[Edit, ...]], length: int) -> list[tuple[Edit, ...]]:
    """The fixes, all edits of each or none, that touch nothing an earlier one touches."""
    chosen: list[tuple[Edit, ...]] = []
    taken: list[Edit] = []
    for edits in wanted:
        inside = all(0 <= edit.start <= edit.end <= length for edit in edits)
        itself = any(_overlap(a, b) for i, a in enumerate(edits) for b in edits[:i])
        # Two findings may want the very same edit: it is made once.
        others = [(a, b) for a in edits for b in taken if a != b]
        if inside and not itself and not any(_touch(a, b) for a, b in others):
            chosen.append(edits)
            taken += edits
    return chosen


def _overlap(one: Edit, other: Edit) -> bool:
    return one.start < other.end and other.start < one.end


def _touch(one: Edit, other: Edit) -> bool:
    """Whether the order in which the two are made would matter."""
    if one.start == one.end or other.start == other.end:
        return one.start <= other.end and other.start <= one.end
    return _overlap(one, other)


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with these edits made; they must lie apart."""
    parts = []
    at = 0
    for edit in sorted(set(edits)):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])
