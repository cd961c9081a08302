"""Which lines belong together: those of one command, of one Python statement.

A suppression on any of them is for a finding on any other.
"""

from __future__ import annotations

import io
import tokenize
from bisect import bisect_right
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


def around(line: int, extents: Iterable[Lines]) -> Lines:
    """The lines that `line` belongs to."""
    inside = [lines for lines in extents if lines[0] <= line <= lines[1]]
    return min((lines[0] for lines in inside), default=line), max(
        (lines[1] for lines in inside), default=line
    )
