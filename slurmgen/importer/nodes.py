"""Nodes of the syntax tree as values of a job file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_SETS = frozenset("read mapfile readarray getopts printf local declare typeset".split())
# In a word without quotes the shell would do something with them.
_LIVE = frozenset("\\~*?[]{}`$")
_ANSI_C = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'"}
# Literal text, or (True, a name) for what expands.
_Part = tuple[bool, str]


def source(node: Node, code: str) -> str:
    """The node as it is written."""
    return code[node.start_byte : node.end_byte]


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    left = [node]
    while left:
        node = left.pop()
        yield node
        left.extend(reversed(node.children))


def parents(node: Node) -> Iterator[Node]:
    """The nodes that the node stands in, the nearest first."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def expandable(node: Node, code: str) -> str | None:
    """A word as `env` and paths write it, `${NAME}` and literal text; None for anything else."""
    parts = _parts(node, code)
    if parts is None:
        return None
    found = literal = ""
    for expands, text in (*parts, (True, "")):
        if not expands:
            literal += text
            continue
        # Between a `$` and an expansion there is no way to write either.
        if text and literal.endswith("$"):
            return None
        found += literal.replace("${", "$${") + (f"${{{text}}}" if text else "")
        literal = ""
    return found


def path(node: Node, code: str) -> str | None:
    """`expandable`, with the `~` of a home folder."""
    text = source(node, code)
    if node.type == "word" and text.startswith("~/") and not set(text[1:]) & _LIVE:
        return "${HOME}" + text[1:]
    return expandable(node, code)


def _parts(node: Node, code: str) -> list[_Part] | None:
    kind = node.type
    text = source(node, code)
    if kind in ("word", "number"):
        return None if _LIVE & set(text) else [(False, text)]
    if kind == "raw_string":
        return [(False, text[1:-1])]
    if kind == "ansi_c_string":
        return _ansi_c(text[2:-1])
    if kind in ("simple_expansion", "expansion"):
        names = [child for child in node.named_children if child.type == "variable_name"]
        name = source(names[0], code) if names else ""
        # Inside quotes the blanks before it belong to the node.
        plain = text.lstrip() in (f"${name}", f"${{{name}}}")
        return [(True, name)] if plain and name else None
    if kind == "concatenation":
        return _joined(node, code, node.start_byte, node.end_byte)
    if kind == "string":
        return _joined(node, code, node.start_byte + 1, node.end_byte - 1)
    return None


def _joined(node: Node, code: str, start: int, end: int) -> list[_Part] | None:
    is_quoted = node.type == "string"
    found: list[_Part] = []
    for child in node.children:
        if child.type in ('"', "string_content"):
            continue
        inner = source(child, code)
        blanks = len(inner) - len(inner.lstrip()) if child.type.endswith("expansion") else 0
        part = _parts(child, code)
        between = _plain(code[start : child.start_byte + blanks], is_quoted=is_quoted)
        if part is None or between is None:
            return None
        found += [(False, between), *part]
        start = child.end_byte
    rest = _plain(code[start:end], is_quoted=is_quoted)
    return None if rest is None else [*found, (False, rest)]


def _plain(text: str, *, is_quoted: bool) -> str | None:
    """Text between expansions; None where the shell would do something with it."""
    if not is_quoted:
        return None if _LIVE & set(text) else text
    bare = re.sub(r'\\[$`"\\]', "", text)
    if "\\\n" in bare or "`" in bare:
        return None
    return re.sub(r'\\([$`"\\])', r"\1", text)


def _ansi_c(text: str) -> list[_Part] | None:
    r"""The text of `$'…'` as `quoting.bash_word` writes it."""
    found = b""
    for piece in re.findall(r"\\[0-7]{3}|\\.|[^\\]+", text, re.DOTALL):
        if piece[0] != "\\":
            found += piece.encode()
        elif piece[1:].isdigit():
            found += bytes([int(piece[1:], 8) % 256])
        elif piece[1] in _ANSI_C:
            found += _ANSI_C[piece[1]].encode()
        else:
            return None
    try:
        return [(False, found.decode())]
    except UnicodeDecodeError:
        return None


def variables(node: Node, code: str) -> Iterator[str]:
    """The names of all variables that are expanded in the node."""
    for inner in walk(node):
        if inner.type in ("variable_name", "special_variable_name") and (
            inner.parent is not None
            and inner.parent.type not in ("variable_assignment", "declaration_command")
        ):
            yield source(inner, code)
        elif inner.type in ("arithmetic_expansion", "subscript"):
            yield from re.findall(r"[A-Za-z_]\w*", source(inner, code))


def is_positional(name: str) -> bool:
    """Whether it is one of the arguments: `$1`, `$@`, `$#`."""
    return name.isdigit() or name in ("@", "*", "#")


def arguments_in(node: Node, code: str) -> set[str]:
    """The arguments of the script that are used, those of its functions left out."""
    found: set[str] = set()
    left = [node]
    while left:
        inner = left.pop()
        if inner.type in ("variable_name", "special_variable_name"):
            found.add(source(inner, code))
        if inner.type != "function_definition":
            left += inner.children
    return {name for name in found if is_positional(name)}


def names_used(node: Node, code: str) -> set[str]:
    """Names of variables that the node may expand, now or (in quotes: a trap) later."""
    text = source(node, code)
    names = {name for name in variables(node, code) if not is_positional(name)}
    names |= {n for n in re.findall(r"\$\{?[#!]?(\w+)", text) if n.isidentifier()}
    for inner in walk(node):
        if (
            inner.type in ("test_command", "compound_statement")
            and source(inner, code).startswith(("((", "[["))
        ) or (inner.type == "command" and source(inner.children[0], code) == "let"):
            names |= set(re.findall(r"[A-Za-z_]\w*", source(inner, code)))
    return names


def set_names(node: Node, code: str) -> Iterator[str]:
    """The names of variables and functions that are set in the node."""
    for inner in walk(node):
        if inner.type == "variable_assignment":
            yield source(inner.named_children[0], code).partition("[")[0]
        elif inner.type in ("for_statement", "select_statement", "function_definition"):
            found = inner.child_by_field_name("name") or inner.child_by_field_name("variable")
            if found is not None:
                yield source(found, code)
        elif inner.type == "command" and source(inner.children[0], code) in _SETS:
            yield from (source(child, code) for child in inner.children[1:])
        elif inner.type == "declaration_command":
            for child in inner.named_children:
                if child.type == "variable_name":
                    yield source(child, code)
        elif inner.type == "expansion" and re.match(r"\$\{\w+:?=", source(inner, code)):
            yield source(inner.named_children[0], code)


def exported_names(node: Node, code: str) -> set[str]:
    """The names of variables that the node exports."""
    found: set[str] = set()
    for inner in walk(node):
        if inner.type == "declaration_command" and source(inner.children[0], code) == "export":
            for child in inner.named_children:
                name = child.named_children[0] if child.type == "variable_assignment" else child
                found.add(source(name, code))
    return found


def commands_in(node: Node, code: str) -> Iterator[str]:
    """The names of the programs that are run, without their folders."""
    for inner in walk(node):
        if inner.type == "command_name":
            yield source(inner, code).strip("\"'").rsplit("/", 1)[-1]
