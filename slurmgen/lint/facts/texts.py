"""Where a script's text is no code, and where it is code of another branch."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurmgen.reading.script import BatchScript


def string_lines(script: BatchScript) -> set[int]:
    """The numbers of the lines that start inside a string or here-document."""
    if script.is_shell:
        return _of_shell(script)
    if script.interpreter.startswith("python"):
        return _of_python(script.text)
    return set()


def _of_shell(script: BatchScript) -> set[int]:
    found: set[int] = set()
    for command in script.shell.commands:
        spans = [(word.start, word.end) for word in command.words]
        spans += [
            (redirect.start, redirect.end)
            for redirect in command.redirects
            if redirect.operator.startswith("<<")
        ]
        spans += [(a.value.start, a.value.end) for a in command.assignments]
        found |= _lines(script, spans)
    return found | _lines(script, [(a.value.start, a.value.end) for a in script.shell.assignments])


def _lines(script: BatchScript, spans: list[tuple[int, int]]) -> set[int]:
    found: set[int] = set()
    for start, end in spans:
        first, _ = script.position(start)
        last, column = script.position(end)
        # The line behind a here-document starts where it ends.
        found.update(range(first + 1, last + (column > 1)))
    return found


def _of_python(text: str) -> set[int]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(range(1, text.count("\n") + 2))
    found: set[int] = set()
    for node in ast.walk(tree):
        is_string = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
        if is_string or isinstance(node, ast.JoinedStr):
            assert isinstance(node, ast.expr)
            found.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
    return found


def other_branches(text: str, end: int) -> range:
    """Offsets behind a command's end in other branches of the `if` or `case` it stands in."""
    depth, start = 0, None
    offset = text.find("\n", end) + 1 or len(text)
    for line in text[offset:].split("\n"):
        word = line.strip()
        if re.match(r"(if|case)\b", word):
            depth += 1
        elif re.match(r"(fi|esac)\b", word):
            if depth == 0:
                return range(start, offset) if start is not None else range(0)
            depth -= 1
        elif depth == 0 and start is None and re.match(r"(else|elif)\b|;;", word):
            start = offset
        offset += len(line) + 1
    return range(0)
