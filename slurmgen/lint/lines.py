"""Which lines belong together: those of one command, of one Python statement.

A suppression on any of them is for a finding on any other.
"""

from __future__ import annotations

import io
import tokenize
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurmgen.lint.suppressions import Lines


def of_commands(text: str, commands: Iterable[tuple[int, int]]) -> list[Lines]:
    """The lines of those commands (as offsets in `text`) that have several."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    found = []
    for start, end in commands:
        first, last = bisect_right(starts, start), bisect_right(starts, max(start, end - 1))
        if first < last:
            found.append((first, last))
    return found


def of_python(text: str) -> list[Lines]:
    """The lines of the statements over several lines; as far as the text is Python."""
    found: list[Lines] = []
    first = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NEWLINE:
                if first is not None and first < token.start[0]:
                    found.append((first, token.start[0]))
                first = None
            elif first is None and token.type not in _BETWEEN_STATEMENTS:
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


_BETWEEN_STATEMENTS = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)


def merged(spans: Iterable[Lines]) -> list[Lines]:
    """The same, in order and without overlaps; those that only touch stay apart."""
    found: list[Lines] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


class Extents:
    """The lines that commands and statements stand on, for those that have several."""

    def __init__(self, extents: Iterable[Lines]) -> None:
        by_start = sorted(extents)
        by_end = sorted((last, first) for first, last in by_start)
        self._starts = [first for first, _ in by_start]
        self._ends = [last for last, _ in by_end]
        # The farthest end of those that start up to here, the first start of those that end
        # from here on.
        self._farthest = list(accumulate((last for _, last in by_start), max))
        self._first = list(accumulate((first for _, first in reversed(by_end)), min))[::-1]

    def around(self, line: int) -> Lines:
        """The lines that `line` belongs to."""
        started = bisect_right(self._starts, line)
        ended = bisect_left(self._ends, line)
        last = self._farthest[started - 1] if started else line
        first = self._first[ended] if ended < len(self._first) else line
        return min(first, line), max(last, line)
