"""Shell code with the place of each of its characters in the script.

The code of `bash -c '…'` or of a here-document is a part of the script's text, possibly with
escapes taken out and with things in it which the outer shell has expanded before. These are
held as one character each, from the private-use area, and handed back as the pieces they are.
"""

from __future__ import annotations

from bisect import bisect_right

from slurmgen.reading.shell.words import TEXT, Piece, Word

_FIRST_MARK = 0xF0000


class ShellText:
    """Code to be read by a shell; `offset` maps its characters to the script."""

    def __init__(self, text: str, starts: list[int], offsets: list[int], held: list[Piece]) -> None:
        self.text = text
        self._starts = starts
        self._offsets = offsets
        self._held = held

    @classmethod
    def whole(cls, text: str) -> ShellText:
        """The script itself."""
        return cls(text, [0], [0], [])

    @classmethod
    def part(cls, text: str, offset: int) -> ShellText:
        """Characters that stand in the script just as they are, from `offset` on."""
        return cls(text, [0], [offset], [])

    @classmethod
    def of_word(cls, word: Word) -> ShellText:
        """What a shell is given as one argument."""
        parts: list[str] = []
        starts: list[int] = []
        offsets: list[int] = []
        held: list[Piece] = []
        length = 0
        for piece in word.pieces:
            text = piece.text
            if piece.kind != TEXT:
                text = chr(_FIRST_MARK + len(held))
                held.append(piece)
            starts.append(length)
            offsets.append(piece.start)
            parts.append(text)
            length += len(text)
        return cls("".join(parts), starts or [0], offsets or [word.start], held)

    def offset(self, index: int) -> int:
        """The offset in the script of the character at `index`."""
        at = bisect_right(self._starts, index) - 1
        return self._offsets[at] + index - self._starts[at]

    def word(self) -> Word:
        """All of it as one quoted word."""
        pieces = []
        for at, start in enumerate(self._starts):
            end = self._starts[at + 1] if at + 1 < len(self._starts) else len(self.text)
            held = self.held(self.text[start]) if start < end else None
            if held is not None:
                pieces.append(held)
            elif start < end:
                offset = self._offsets[at]
                text = self.text[start:end]
                pieces.append(Piece(TEXT, text, offset, offset + end - start, quoted=True))
        last = self.offset(len(self.text) - 1) + 1 if self.text else self._offsets[0]
        return Word(tuple(pieces), self._offsets[0], max(last, self._offsets[0]), quoted=True)

    def held(self, character: str) -> Piece | None:
        """The piece for which a character stands."""
        at = ord(character) - _FIRST_MARK
        return self._held[at] if 0 <= at < len(self._held) else None

    @property
    def has_held(self) -> bool:
        return bool(self._held)
