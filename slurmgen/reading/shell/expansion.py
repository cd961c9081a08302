"""Nodes of the tree -> words: quotes taken off, known variables put in.

What bash does in bash(1), EXPANSION, as far as it can be known without running anything:
brace and pathname expansion are left as they are written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.shell.words import ARITHMETIC, COMMAND, TEXT, VARIABLE, Piece, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tree_sitter import Node

    from slurmgen.reading.shell.text import ShellText
    from slurmgen.reading.shell.variables import Assignment

_ANSI_C = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "e": "\x1b", "\\": "\\", "'": "'", '"': '"'}
# Escaped inside double quotes; behind any other character the backslash stays.
_DOUBLE = '$`"\\'
# A value that is put in again and again doubles with each line of `a=$a$a`.
_MOST_PIECES = 400
# Values behind one another (`b=${a%x}`, `c=${b%x}`, …) and beside one another
# (`b=${a%x}${a#y}`, …) that are followed from one expansion.
_MOST_LINKS = 20
# How a function is handed to another shell: `bash -c "$(declare -f run); run"`.
_DECLARE = re.compile(r"\$\(\s*(?:declare|typeset)\s+-fp?\s+([\w.-]+)\s*;?\s*\)")


class Scope(NamedTuple):
    """What an expansion depends on.

    substitute: told of each `$(…)`, so that its commands are read too. afford: asked
    whether a value of so many pieces and characters may still be put in. definition: the
    node of a function's definition by its name.
    """

    text: ShellText
    where: str
    variables: Mapping[str, Assignment]
    positional: tuple[Word, ...] | None
    substitute: Callable[[Node], None]
    afford: Callable[[int], bool]
    definition: Callable[[str], Node | None]


def fields(node: Node, scope: Scope) -> list[Word]:
    """The arguments that a word becomes: none or several where an unquoted value is split."""
    array = _whole_array(node, scope)
    if array is not None:
        return array
    pieces = tuple(_pieces(node, scope, quoted=False))
    start, end = span(node, scope)
    quoted = node.type in ("string", "raw_string", "ansi_c_string")
    return _split(pieces, start, end, quoted)


def value(node: Node, scope: Scope) -> Word:
    """An assigned value: expanded, not split."""
    start, end = span(node, scope)
    return Word(tuple(_pieces(node, scope, quoted=False)), start, end)


def body(node: Node, scope: Scope) -> Word:
    """The text of a here-document whose delimiter is not quoted."""
    start, end = span(node, scope)
    return Word(tuple(_mixed(node, scope)), start, end)


def span(node: Node, scope: Scope) -> tuple[int, int]:
    """Offsets in the script."""
    start = scope.text.offset(node.start_byte)
    if node.end_byte <= node.start_byte:
        return start, start
    end = scope.text.offset(node.end_byte - 1) + 1
    # What an outer shell has put in stands elsewhere, perhaps before.
    return start, max(end, start)


def source(node: Node, scope: Scope) -> str:
    """The node as it is written."""
    return scope.text.text[node.start_byte : node.end_byte]


def _pieces(node: Node, scope: Scope, *, quoted: bool) -> Iterator[Piece]:
    kind = node.type
    if kind in ("word", "number", "extglob_pattern", "regex", "test_operator"):
        yield from _plain(node.start_byte, node.end_byte, scope, quoted=quoted)
    elif kind == "raw_string":
        yield from _text(node.start_byte + 1, node.end_byte - 1, scope, quoted=True)
    elif kind == "ansi_c_string":
        yield from _ansi(node, scope)
    elif kind in ("string", "translated_string"):
        inner = node.children[-1] if kind == "translated_string" else node
        for piece in _mixed(inner, scope, skip=1):
            yield piece._replace(quoted=True)
    elif kind in ("simple_expansion", "expansion"):
        yield from _variable(node, scope, quoted=quoted)
    elif kind in ("command_substitution", "process_substitution"):
        defined = _DECLARE.fullmatch(source(node, scope))
        definition = scope.definition(defined[1]) if defined else None
        if definition is not None:
            yield from _text(definition.start_byte, definition.end_byte, scope, quoted=quoted)
            return
        scope.substitute(node)
        yield _opaque(node, scope, COMMAND, quoted=quoted)
    elif kind == "arithmetic_expansion":
        for child in descend(node, "command_substitution"):
            scope.substitute(child)
        yield _opaque(node, scope, ARITHMETIC, quoted=quoted)
    elif kind in ("concatenation", "command_name"):
        end = node.start_byte
        for child in node.children:
            yield from _plain(end, child.start_byte, scope, quoted=quoted)
            yield from _pieces(child, scope, quoted=quoted)
            end = child.end_byte
    else:
        yield from _plain(node.start_byte, node.end_byte, scope, quoted=quoted)


def _mixed(node: Node, scope: Scope, *, skip: int = 0) -> Iterator[Piece]:
    """Text with expansions in it, escapes as between double quotes."""
    end = node.start_byte + skip
    last = node.end_byte - skip
    for child in node.children:
        if child.type in (
            "simple_expansion",
            "expansion",
            "command_substitution",
            "arithmetic_expansion",
        ):
            yield from _plain(end, child.start_byte, scope, quoted=True, escaped=_DOUBLE)
            yield from _pieces(child, scope, quoted=True)
            end = child.end_byte
    yield from _plain(end, max(end, last), scope, quoted=True, escaped=_DOUBLE)


def _plain(
    start: int, end: int, scope: Scope, *, quoted: bool, escaped: str | None = None
) -> Iterator[Piece]:
    r"""Text in which a backslash quotes what follows it.

    escaped: the characters of which alone this is true (None: every one).
    """
    text = scope.text.text
    at = text.find("\\", start, end)
    while at >= 0:
        following = text[at + 1 : at + 2]
        if following == "\n":
            yield from _text(start, at, scope, quoted=quoted)
            start = at + 2
        elif escaped is None or (following and following in escaped):
            yield from _text(start, at, scope, quoted=quoted)
            offset = scope.text.offset(at)
            yield Piece(TEXT, following, offset, offset + 2, quoted=True)
            start = at + 2
        at = text.find("\\", max(start, at + 2), end)
    yield from _text(start, end, scope, quoted=quoted)


def _text(start: int, end: int, scope: Scope, *, quoted: bool) -> Iterator[Piece]:
    """Text as it stands, with what an outer shell has put into it given back."""
    text = scope.text.text
    if not scope.text.has_held:
        if start < end:
            offset = scope.text.offset(start)
            last = max(offset, scope.text.offset(end - 1) + 1)
            yield Piece(TEXT, text[start:end], offset, last, quoted=quoted)
        return
    begin = start
    for at in range(start, end):
        held = scope.text.held(text[at])
        if held is not None:
            if begin < at:
                yield _run(begin, at, scope, quoted=quoted)
            yield held._replace(quoted=quoted)
            begin = at + 1
    if begin < end:
        yield _run(begin, end, scope, quoted=quoted)


def _run(start: int, end: int, scope: Scope, *, quoted: bool) -> Piece:
    offset = scope.text.offset(start)
    return Piece(
        TEXT,
        scope.text.text[start:end],
        offset,
        max(offset, scope.text.offset(end - 1) + 1),
        quoted=quoted,
    )


def _ansi(node: Node, scope: Scope) -> Iterator[Piece]:
    text = source(node, scope)[2:-1]
    out: list[str] = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            out.append(_ANSI_C.get(following, "\\" + following))
        else:
            out.append(character)
    start, end = span(node, scope)
    yield Piece(TEXT, "".join(out), start, end, quoted=True)


def _opaque(node: Node, scope: Scope, kind: str, *, quoted: bool) -> Piece:
    start, end = span(node, scope)
    return Piece(
        kind, _readable(source(node, scope), scope), start, end, where=scope.where, quoted=quoted
    )


def _readable(text: str, scope: Scope) -> str:
    if not scope.text.has_held:
        return text
    pieces = ((scope.text.held(c), c) for c in text)
    return "".join(held.text if held is not None else c for held, c in pieces)


def descend(node: Node, kind: str) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.type == kind and one is not node:
            yield one
        else:
            waiting.extend(one.children)


def _variable(node: Node, scope: Scope, *, quoted: bool) -> Iterator[Piece]:
    name, operator = variable_parts(node, scope)
    start, end = span(node, scope)
    for child in descend(node, "command_substitution"):
        scope.substitute(child)
    text = _readable(source(node, scope), scope)
    if name.isdecimal() and scope.positional is not None and not operator:
        at = int(name) - 1
        if 0 <= at < len(scope.positional):
            yield from _put_in(scope.positional[at], quoted=quoted)
            return
    assigned = scope.variables.get(name)
    known = assigned.value if assigned is not None and assigned.words is None else None
    if assigned is not None and assigned.words is not None and not operator:
        known = assigned.words[0] if assigned.words else None
    if known is not None and _is_put_in(operator, known) and scope.afford(_weight(known)):
        yield from _put_in(known, quoted=quoted)
        return
    links = 0 if known is None else 1 + sum(piece.links for piece in known.pieces)
    if links > _MOST_LINKS:
        known, links = None, 0
    yield Piece(VARIABLE, text, start, end, name, operator, scope.where, quoted, known, links)


def variable_parts(node: Node, scope: Scope) -> tuple[str, str]:
    """`${A:-0}` as ("A", ":-0"); `${#A}` as ("A", "#"); `${A[0]}` as ("A", "[0]")."""
    text = source(node, scope)
    if not text.startswith("${"):
        return text[1:], ""
    inner = text[2:-1]
    before = ""
    if len(inner) > 1 and inner[0] in "#!":
        before, inner = inner[0], inner[1:]
    length = 0
    while length < len(inner) and (inner[length].isalnum() or inner[length] == "_"):
        length += 1
    length = length or 1
    return inner[:length], before + inner[length:]


def _is_put_in(operator: str, known: Word) -> bool:
    # ${A:-default} of a variable that has a value is that value.
    return (not operator or operator[:2] in (":-", ":=", ":?")) and bool(known.pieces)


def _weight(known: Word) -> int:
    return sum(1 + piece.links + len(piece.text) // 100 for piece in known.pieces)


def _put_in(known: Word, *, quoted: bool) -> Iterator[Piece]:
    for piece in known.pieces[:_MOST_PIECES]:
        yield piece._replace(quoted=quoted)


def _whole_array(node: Node, scope: Scope) -> list[Word] | None:
    """`"${A[@]}"`, `$@` and `"$@"` as the words that they are, where these are known."""
    inner = node
    if node.type == "string" and node.named_child_count == 1:
        inner = node.named_children[0]
    if inner.type not in ("simple_expansion", "expansion"):
        return None
    name, operator = variable_parts(inner, scope)
    if name in ("@", "*") and scope.positional is not None:
        return list(scope.positional) if scope.afford(len(scope.positional)) else None
    assigned = scope.variables.get(name)
    if operator in ("[@]", "[*]") and assigned is not None and assigned.words is not None:
        words = assigned.words[:_MOST_PIECES]
        return list(words) if scope.afford(sum(map(_weight, words))) else None
    return None


def _split(pieces: tuple[Piece, ...], start: int, end: int, quoted: bool) -> list[Word]:
    """Unquoted values with blanks in them become several words."""
    words: list[Word] = []
    current: list[Piece] = []
    seen = False
    for piece in pieces:
        inside = piece.start < start or piece.end > end
        if piece.kind != TEXT or piece.quoted or not (inside and _has_blank(piece.text)):
            current.append(piece)
            seen = True
            continue
        at = 0
        for at_word, chunk in _chunks(piece.text):
            if at_word > at and current:
                words.append(Word(tuple(current), start, end))
                current = []
            offset = piece.start + at_word
            current.append(piece._replace(text=chunk, start=offset, end=offset + len(chunk)))
            seen = True
            at = at_word + len(chunk)
        if at < len(piece.text) and current:
            words.append(Word(tuple(current), start, end))
            current = []
    if current or (quoted and not words) or (not seen and not words):
        words.append(Word(tuple(current), start, end, quoted))
    return words


def _has_blank(text: str) -> bool:
    return any(c in text for c in " \t\n")


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    while at < len(text):
        if text[at] in " \t\n":
            at += 1
            continue
        end = at
        while end < len(text) and text[end] not in " \t\n":
            end += 1
        yield at, text[at:end]
        at = end
