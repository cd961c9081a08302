"""The words of a directive line, as `_get_argument` in src/sbatch/opt.c splits it."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from slurmgen.errors import Refusal

# isspace() of C: a no-break space is a character like any other.
BLANKS = " \t\n\v\f\r"
# More than anybody writes on a line, or in a script, and few enough to judge each.
MOST_WORDS = 2000
_GAP = re.compile(r"[ \t\n\v\f\r]*")
_PLAIN = re.compile(r"[^ \t\n\v\f\r\"'\\#]+")
_INSIDE = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^'\\]+")}


class Word(NamedTuple):
    """A word, quotes removed.

    start, end: as it is written, offsets in the text. pieces: of each part of it, where
    it starts in the word and in the text.
    """

    text: str
    start: int
    end: int
    pieces: tuple[tuple[int, int], ...]

    def offset(self, index: int) -> int:
        """Where in the text the character `index` of the word is."""
        if index >= len(self.text):
            return self.end
        inside, outside = self.pieces[bisect_right(self.pieces, index, key=_inside) - 1]
        return outside + index - inside

    def behind(self, index: int) -> int:
        """Where in the text the character before `index` ends: a quote may stand there."""
        return self.offset(index - 1) + 1


class Line(NamedTuple):
    """The words of one line, and where sbatch stumbles over it.

    unclosed: where the quote is that nothing closes. escaped: where a backslash stands
    before a blank, which up to 22.05 ends the word. hidden: where a word `""` stands,
    behind which sbatch reads no further on this line.
    """

    words: list[Word]
    unclosed: int | None = None
    escaped: int | None = None
    hidden: int | None = None


def split_words(text: str) -> list[str]:
    """The words of a directive line behind `#SBATCH`, quotes removed as sbatch does.

    Raises Refusal for a quote that is not closed.
    """
    line = read_line(text, 0, len(text), len(text))
    if line.unclosed is not None:
        raise Refusal(
            "a quote is not closed",
            why="sbatch stops with a fatal error",
            fix=f"close it with {text[line.unclosed]}",
        )
    return [word.text for word in line.words]


def read_line(text: str, start: int, end: int, most: int = MOST_WORDS) -> Line:
    """The words between two offsets, at most so many.

    A quote that is not closed ends with the line.
    """
    words: list[Word] = []
    escaped = unclosed = None
    while len(words) < most:
        start = _skip(text, start, end)
        if start == end or text[start] == "#":
            return Line(words, unclosed, escaped)
        if text[start] == "\\" and text[start + 1 : min(start + 2, end)].strip(BLANKS) == "":
            # Alone: up to 22.05 sbatch reads no further on this line.
            if escaped is None and text[start + 1 : end].strip(BLANKS):
                escaped = start
            start = min(start + 2, end)
            continue
        word = _OneWord(text, start, end)
        escaped = word.escaped if escaped is None else escaped
        unclosed = word.unclosed
        if not word.parts:
            return Line(words, unclosed, escaped, start)
        words.append(Word("".join(word.parts), start, word.at, tuple(word.pieces)))
        start = word.at
    return Line(words, unclosed, escaped)


class _OneWord:
    """Reads the word at an offset; `at` is where it ends."""

    def __init__(self, text: str, at: int, end: int) -> None:
        self.text, self.at, self.end = text, at, end
        self.parts: list[str] = []
        self.pieces: list[tuple[int, int]] = []
        self.unclosed: int | None = None
        self.escaped: int | None = None
        self._size = 0
        while self.at < end and text[self.at] not in BLANKS and text[self.at] != "#":
            if text[self.at] in _INSIDE:
                self._quoted()
            elif text[self.at] == "\\":
                if text[self.at + 1 : self.at + 2].strip(BLANKS) == "" and self.at + 1 < end:
                    self.escaped = self.at if self.escaped is None else self.escaped
                self._escape()
            else:
                self._take(_PLAIN)

    def _quoted(self) -> None:
        opened = self.at
        quote = self.text[opened]
        self.at += 1
        while self.at < self.end:
            if self.text[self.at] == quote:
                self.at += 1
                return
            if self.text[self.at] == "\\":
                self._escape()
            else:
                self._take(_INSIDE[quote])
        self.unclosed = opened

    def _escape(self) -> None:
        self.at += 1
        if self.at < self.end:
            self._add(self.text[self.at])
            self.at += 1

    def _take(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at, self.end)
        assert found is not None
        self._add(found[0])
        self.at = found.end()

    def _add(self, part: str) -> None:
        self.parts.append(part)
        self.pieces.append((self._size, self.at))
        self._size += len(part)


def _skip(text: str, start: int, end: int) -> int:
    found = _GAP.match(text, start, end)
    return found.end() if found is not None else start


def _inside(piece: tuple[int, int]) -> int:
    return piece[0]


def is_separator(word: Word) -> bool:
    """Whether a word parts the components of a heterogeneous job; in quotes it does not."""
    return word.text.lower() in ("hetjob", "packjob") and word.end - word.start == len(word.text)
