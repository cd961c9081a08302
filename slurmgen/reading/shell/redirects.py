"""Redirections and here-documents of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.shell import expansion
from slurmgen.reading.shell.commands import Redirect
from slurmgen.reading.shell.text import ShellText

if TYPE_CHECKING:
    from tree_sitter import Node

    from slurmgen.reading.shell.expansion import Scope


class Redirections(NamedTuple):
    """What stands behind a command's words.

    later: commands behind a here-document's delimiter (`<<EOF | sort`), and whether a pipe
    feeds them. arguments: words of the command that follow a redirection.
    """

    redirects: list[Redirect]
    later: list[tuple[Node, bool]]
    arguments: list[Node]


def read_redirect(node: Node, scope: Scope, found: Redirections) -> None:
    """Add what a redirection holds to `found`."""
    start, end = expansion.span(node, scope)
    if node.type == "heredoc_redirect":
        quoted = False
        for at, child in enumerate(node.children):
            field = node.field_name_for_child(at)
            if child.type == "heredoc_start":
                quoted = any(c in "'\"\\" for c in expansion.source(child, scope))
            elif child.type == "heredoc_body":
                found.redirects.append(
                    Redirect("<<", None, _heredoc(child, quoted, scope), start, end)
                )
            elif field == "redirect":
                read_redirect(child, scope, found)
            elif field == "argument":
                found.arguments.append(child)
            elif child.type == "pipeline":
                found.later.extend((part, True) for part in child.named_children)
            elif field == "right":
                found.later.append((child, False))
        return
    target = node.child_by_field_name("destination") or (
        node.named_children[-1] if node.named_children else None
    )
    word = expansion.value(target, scope) if target is not None else None
    body = None
    operator = next((c.type for c in node.children if not c.is_named), "")
    if node.type == "herestring_redirect" and word is not None:
        body = ShellText.of_word(word)
    found.redirects.append(Redirect(operator, word, body, start, end))
    # `> log a b`: what follows the target belongs to the command.
    for at, child in enumerate(node.children):
        if node.field_name_for_child(at) == "destination" and child != target:
            found.arguments.append(child)


def _heredoc(node: Node, quoted: bool, scope: Scope) -> ShellText:
    if quoted:
        text = scope.text.text[node.start_byte : node.end_byte]
        if not scope.text.has_held:
            return ShellText.part(text, scope.text.offset(node.start_byte))
    return ShellText.of_word(expansion.body(node, scope))
