"""The lines of a script that sbatch takes for directives, and those it should have taken."""

from __future__ import annotations

import re

from slurmgen.slurm.directives.getopt import LineOptions
from slurmgen.slurm.directives.model import DirectiveBlock, Record
from slurmgen.slurm.directives.names import options_in
from slurmgen.slurm.directives.near_misses import KEYWORD, near_miss
from slurmgen.slurm.directives.words import BLANKS, is_separator, read_line

# sbatch complains of this keyword, and takes it.
_OLD_KEYWORD = "#SLURM"
_LATER = re.compile(r"^[ \t]*(#SBATCH)(?=[ \t]*--?[A-Za-z]|[ \t]+(?:het|pack)job[ \t]*$)", re.M)
_TRANSLATED = re.compile(r"^(#)(?:PBS|BSUB)\b", re.M)
_OPTION = re.compile(r"--?[A-Za-z]")
_COMMENTED = re.compile(r"#[ \t]*--?[A-Za-z]")
_GLUED = re.compile(r"[^ \t\v\f\r-]*")
# MAX_HET_JOB_COMPS of Slurm.
_MOST_COMPONENTS = 128
_EMPTY_LINES = re.compile(r"\n+")
# More lines of a kind than anybody wrote by hand.
_MOST = 1000


def read(text: str) -> DirectiveBlock:
    """The directives of a script; never raises."""
    reader = _Reader(text)
    number, start = 1, 0
    while start < len(text):
        empty = _EMPTY_LINES.match(text, start)
        if empty is not None:
            number, start = number + empty.end() - start, empty.end()
            reader.forget()
            continue
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if not reader.read(number, start, end):
            break
        number, start = number + 1, end + 1
    for line, at in _lines_with(_LATER, text, start, number):
        # The line that ended the block may itself be one, but for its keyword.
        if line > number:
            end = text.find("\n", at)
            reader.record.report("after-command", line, at, end if end >= 0 else len(text))
    return DirectiveBlock(
        tuple(reader.record.directives),
        tuple(reader.record.problems),
        number,
        reader.component + 1,
        tuple(line for line, _ in _lines_with(_TRANSLATED, text, 0, 1)),
    )


def _lines_with(
    pattern: re.Pattern[str], text: str, start: int, number: int
) -> list[tuple[int, int]]:
    """Number and keyword's offset of the lines from `start` (line `number`) on that match."""
    found: list[tuple[int, int]] = []
    for match in pattern.finditer(text, start):
        number += text.count("\n", start, match.start())
        start = match.start()
        found.append((number, match.start(1)))
        if len(found) == _MOST:
            break
    return found


class _Reader:
    """Goes through the lines of the block."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.record = Record(text)
        self.component = 0
        # Line and offset of the backslash that ended the directive line just before.
        self._continued: tuple[int, int] | None = None

    def forget(self) -> None:
        """A blank line ends what a backslash may continue."""
        self._continued = None

    def read(self, number: int, start: int, end: int) -> bool:
        """Take one line; whether directives may follow."""
        if self.text.startswith((KEYWORD, _OLD_KEYWORD), start):
            if not self.record.is_full:
                self._directive(number, start, end)
            return True
        continued, self._continued = self._continued, None
        line = self.text[start:end]
        stripped = line.lstrip(BLANKS)
        if number == 1:
            # sbatch refuses a script with a byte order mark; the other lines mean what they say.
            stripped = stripped.removeprefix("\ufeff")
        if not stripped:
            return True
        miss = None if self.record.is_full else near_miss(line)
        if miss is not None:
            words = read_line(self.text, start + miss.end, end).words
            self.record.report(
                "not-recognised",
                number,
                start,
                start + miss.end,
                option=" ".join(options_in([word.text for word in words])) or None,
                meant=f"{KEYWORD} ",
                spaced=miss.spaced,
            )
        if stripped.startswith("#"):
            if continued and _COMMENTED.match(stripped):
                self._commented_lines(continued, start, end)
            return True
        if miss is None and (_OPTION.match(stripped) or (continued and self._is_open())):
            self._bare_lines(continued, number, start, end)
        return False

    def _is_open(self) -> bool:
        """Whether the last value is a list that goes on."""
        value = self.record.directives[-1].value if self.record.directives else None
        return value is not None and value.endswith((",", "="))

    def _bare_lines(
        self, continued: tuple[int, int] | None, number: int, start: int, end: int
    ) -> None:
        """Options without the keyword, behind a backslash or just so."""
        first_line, first = continued or (number, start)
        lines, last = [self.text[start:end]], number
        while lines[-1].rstrip(BLANKS).endswith("\\") and end < len(self.text):
            following = self.text.find("\n", end + 1)
            following = len(self.text) if following < 0 else following
            line = self.text[end + 1 : following]
            if not line.strip(BLANKS) or line.lstrip(BLANKS).startswith("#"):
                break
            lines.append(line)
            last, end = last + 1, following
        options = [line.strip(BLANKS).removesuffix("\\").rstrip(BLANKS) for line in lines]
        meant = None
        if all(_OPTION.match(option) for option in options):
            # Over the backslash goes the end of its line.
            meant = "\n" * bool(continued) + "\n".join(f"{KEYWORD} {o}" for o in options)
        self.record.report("continuation", first_line, first, end, meant=meant, last_line=last)

    def _commented_lines(self, continued: tuple[int, int], start: int, end: int) -> None:
        """Options behind a backslash and a `#`: comments, for sbatch as for the shell."""
        number, first = continued
        lines = [self.text[start:end]]
        while lines[-1].rstrip(BLANKS).endswith("\\") and end < len(self.text):
            following = self.text.find("\n", end + 1)
            following = len(self.text) if following < 0 else following
            line = self.text[end + 1 : following]
            if not _COMMENTED.match(line.lstrip(BLANKS)):
                break
            lines.append(line)
            end = following
        options = [line.strip(BLANKS + "#").removesuffix("\\").rstrip(BLANKS) for line in lines]
        meant = "".join(f"\n{KEYWORD} {option}" for option in options)
        last = number + len(lines)
        self.record.report("continuation", number, first, end, meant=meant, last_line=last)

    def _directive(self, number: int, start: int, end: int) -> None:
        at = self._behind_keyword(number, start, end)
        line = read_line(self.text, at, end)
        if line.unclosed is not None:
            self.record.report("unclosed-quote", number, line.unclosed, end)
        elif line.escaped is not None:
            self.record.report("escaped-blank", number, line.escaped, line.escaped + 1)
        words = line.words
        if words and is_separator(words[0]):
            self.component = min(self.component + 1, _MOST_COMPONENTS - 1)
            if len(words) > 1:
                self.record.report("stray-text", number, words[1].start, words[-1].end)
            words = []
        for index, word in enumerate(words):
            if is_separator(word):
                # sbatch takes it out and reads no further on this line.
                self.record.report("stray-text", number, word.start, words[-1].end)
                words = words[:index]
                break
        LineOptions(self.record, words, number, start, self.component).read()
        if line.hidden is not None and self.text[line.hidden : end].split()[1:]:
            self.record.report("stray-text", number, line.hidden, end)
        written = self.text[at:end].rstrip(BLANKS)
        self._continued = (number, at + len(written) - 1) if written.endswith("\\") else None

    def _behind_keyword(self, number: int, start: int, end: int) -> int:
        """Where the words of a line start."""
        if not self.text.startswith(KEYWORD, start):
            at = start + len(_OLD_KEYWORD)
            self.record.report("not-recognised", number, start, at, meant=KEYWORD)
            return at
        at = start + len(KEYWORD)
        if at == end or self.text[at] in BLANKS + "-#\"'\\":
            return at
        miss = near_miss(self.text[start:end])
        if miss is not None and miss.written == KEYWORD:
            # A no-break space.
            stop = start + miss.end
            self.record.report("not-recognised", number, start, stop, meant=f"{KEYWORD} ")
            return stop
        words = read_line(self.text, at, end).words
        if words and is_separator(words[0]):
            return at
        found = _GLUED.match(self.text, at, end)
        stop = end if found is None else found.end()
        options = self.text[stop:end].lstrip(BLANKS)
        meant = KEYWORD + " " * self.text.startswith("-", stop)
        is_clear = _OPTION.match(options) is not None
        self.record.report("glued-keyword", number, start, stop, meant=meant if is_clear else None)
        return stop
