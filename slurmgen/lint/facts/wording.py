"""Words cut at a character: at text, never inside an expansion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.reading.shell.words import TEXT, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.reading.shell.words import Piece


def find(word: Word, character: str) -> int:
    """The index in `word.text` of the first such character outside an expansion; -1: none."""
    at = 0
    for piece in word.pieces:
        inside = piece.text.find(character) if piece.kind == TEXT else -1
        if inside >= 0:
            return at + inside
        at += len(piece.text)
    return -1


def split(word: Word, separator: str) -> list[Word]:
    """The parts of a word between separators."""
    parts = []
    rest: Word | None = word
    while rest is not None:
        first, rest = _cut(rest, separator, last=False)
        parts.append(first)
    return parts


def cut_last(word: Word, separator: str) -> tuple[Word, Word | None]:
    """What stands before and behind the last separator; None behind where there is none."""
    return _cut(word, separator, last=True)


def _cut(word: Word, separator: str, *, last: bool) -> tuple[Word, Word | None]:
    numbers = range(len(word.pieces))
    for number in reversed(numbers) if last else numbers:
        piece = word.pieces[number]
        text = piece.text
        at = text.rfind(separator) if last else text.find(separator)
        if piece.kind != TEXT or at < 0:
            continue
        before = piece._replace(text=text[:at], end=piece.start + at)
        behind = piece._replace(text=text[at + 1 :], start=piece.start + at + 1)
        return (
            _word((*word.pieces[:number], before), word),
            _word((behind, *word.pieces[number + 1 :]), word),
        )
    return word, None


def _word(pieces: Sequence[Piece], whole: Word) -> Word:
    kept = tuple(piece for piece in pieces if piece.text)
    edge = kept or tuple(pieces)
    return Word(kept, edge[0].start, edge[-1].end, whole.quoted)
