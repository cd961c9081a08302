"""What `quoting` has quoted, as it was."""

from __future__ import annotations

import re

_EXPANSION = re.compile(r'"\$\{(\w+)(?::\?is not set)?\}"')
_SINGLE, _DOUBLE = r"\$'(?:[^'\\]|\\.)*'|'[^']*'", r'"(?:[^"\\]|\\.)*"'
_QUOTED = re.compile(rf"""{_SINGLE}|{_DOUBLE}|[^ '"$<&\\]+""", re.DOTALL)


def read_words(line: str, *, expandable: bool) -> list[str]:
    """The words of a line as they were before `bash_word`, or `bash_expandable`, quoted them.

    expandable: `${NAME}` is one in the word, and `$${` a literal `${`; else a word is literal.
    The line ends at a redirection. Raises ValueError for other quoting than ours.
    """
    words: list[str] = []
    word: str | None = None
    at = 0
    while at < len(line) and line[at] not in "<&":
        if line[at] == " ":
            if word is not None:
                words.append(word)
            word, at = None, at + 1
            continue
        name = _EXPANSION.match(line, at) if expandable else None
        if name is not None:
            literal, at = f"${{{name[1]}}}", name.end()
        else:
            quoted = _QUOTED.match(line, at)
            if quoted is None:
                raise ValueError(f"{line[at : at + 40]!r} is quoted otherwise")
            literal, at = _unquoted(quoted[0]), quoted.end()
            literal = literal.replace("${", "$${") if expandable else literal
        word = (word or "") + literal
    return words if word is None else [*words, word]


def _unquoted(text: str) -> str:
    if text.startswith("$'"):
        raw = re.sub(rb"\\([0-7]{3}|.)", _escaped, text[2:-1].encode(), flags=re.DOTALL)
        return raw.decode()
    if text.startswith('"'):
        return re.sub(r'\\([\\"$`])', r"\1", text[1:-1])
    return text[1:-1] if text.startswith("'") else text


def _escaped(match: re.Match[bytes]) -> bytes:
    """What stands behind a backslash inside `$'…'`."""
    code = match[1]
    if code.isdigit():
        return bytes([int(code, 8)])
    return {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(code, code)
