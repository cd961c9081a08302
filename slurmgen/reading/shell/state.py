"""What a shell remembers while its code is gone through: variables, options, arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.reading.shell import expansion
from slurmgen.reading.shell.variables import Assignment
from slurmgen.reading.shell.words import Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

    from slurmgen.reading.shell.commands import Context
    from slurmgen.reading.shell.expansion import Scope
    from slurmgen.reading.shell.variables import Variables

_OPTION_LETTERS = {"e": "errexit", "u": "nounset", "a": "allexport", "x": "xtrace"}
# Elements of an array, or pieces of a value, that `+=` may heap up.
_LONGEST = 400


class ShellState:
    """What is set at the moment; a command keeps what it saw."""

    def __init__(self, variables: Variables, options: frozenset[str]) -> None:
        self.variables = variables
        self.options = options
        self.positional: tuple[Word, ...] | None = None
        self.assignments: list[Assignment] = []

    def set_options(self, words: list[str]) -> None:
        self.options, sets_positional = _set(words, self.options)
        if sets_positional:
            self.positional = None

    def export(self, name: str) -> None:
        known = self.variables.get(name)
        if known is not None and not known.exported:
            self.variables = self.variables.but(name, known._replace(exported=True))
            self.assignments.append(known._replace(exported=True))

    def forget(self, name: str) -> None:
        if name in self.variables:
            self.variables = self.variables.but(name, None)

    def set_(self, assignment: Assignment) -> None:
        self.assignments.append(assignment)
        self.variables = self.variables.but(assignment.name, assignment)

    def read_assignment(
        self, node: Node, scope: Scope, context: Context, *, exported: bool | None
    ) -> Assignment | None:
        name_node = node.child_by_field_name("name")
        value_node = node.child_by_field_name("value")
        if name_node is None:
            return None
        start, end = expansion.span(node, scope)
        name = expansion.source(name_node, scope)
        append = any(child.type == "+=" for child in node.children)
        name, bracket, _ = name.partition("[")
        before = self.variables.get(name)
        if exported is None:
            exported = "allexport" in self.options or (before is not None and before.exported)
        words: tuple[Word, ...] | None = None
        if value_node is None:
            value = Word((), end, end)
        elif value_node.type == "array":
            words = tuple(
                word
                for child in value_node.named_children
                for word in expansion.fields(child, scope)
            )
            value = words[0] if words else Word((), end, end)
        else:
            value = expansion.value(value_node, scope)
        if bracket:
            # An element: what the whole holds is no longer known.
            self.forget(name)
            return None
        if append and before is not None:
            if words is not None:
                words = ((before.words or (before.value,)) + words)[:_LONGEST]
            elif before.words is None:
                pieces = (before.value.pieces + value.pieces)[:_LONGEST]
                value = Word(pieces, before.value.start, value.end)
        conditional = context.conditional or context.loop or context.function is not None
        return Assignment(
            name, value, exported, context.where, start, end, words, conditional, append
        )


def shell_options(words: Sequence[str], before: frozenset[str] = frozenset()) -> frozenset[str]:
    """The shell options that are on behind `set WORDS`, or in a shell called with them."""
    return _set(words, before)[0]


def _set(words: Sequence[str], before: frozenset[str]) -> tuple[frozenset[str], bool]:
    """What `set WORDS` leaves on, and whether it sets `$1` and on."""
    on = set(before)
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("--", "-") or word[:1] not in ("+", "-"):
            return frozenset(on), True
        names = []
        for letter in word[1:] if not word.startswith("--") else "":
            if letter == "o" and at + 1 < len(words):
                at += 1
                names.append(words[at])
            elif letter in _OPTION_LETTERS:
                names.append(_OPTION_LETTERS[letter])
        on = on | set(names) if word[0] == "-" else on - set(names)
        at += 1
    return frozenset(on), False
