"""What in a script only bash understands, and a POSIX shell such as dash does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.shell.syntax import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_MOST = 200

# Node types that are bash's altogether.
_NODES = {
    "array": "an array",
    "process_substitution": "<( )",
    "herestring_redirect": "<<<",
    "c_style_for_statement": "for (( ))",
    "brace_expression": "{1..4}",
    "ansi_c_string": "$'…'",
    "translated_string": '$"…"',
    "subscript": "an array's element",
    "select": "select",
    "((": "(( ))",
    "[[": "[[ ]]",
    "&>": "&>",
    "&>>": "&>>",
    "|&": "|&",
    "+=": "+=",
    "==": "[ a == b ]",
    "function": "function",
}
_COMMANDS = frozenset(
    "source pushd popd dirs shopt mapfile readarray let disown coproc caller compgen".split()
)
_DECLARATIONS = ("declare", "typeset")
_EXPANSIONS = frozenset({":", "/", "//", "/#", "/%", "^", "^^", ",", ",,", "!", "@"})
_VARIABLES = frozenset(
    "RANDOM SRANDOM SECONDS UID EUID BASH_SOURCE PIPESTATUS FUNCNAME BASHPID BASH_VERSION".split()
)
# Signs that are bash's only there; arithmetic has them too.
_ONLY_IN = {"==": "test_command", "+=": "variable_assignment"}


class Bashism(NamedTuple):
    """what: as a person would name it. start, end: offsets in the script."""

    what: str
    start: int
    end: int


def find(text: str) -> list[Bashism]:
    """The bashisms of a script, in order; none where it can't be read."""
    root = parse(text)
    if root is None:
        return []
    found = []
    for node in _walk(root):
        what = _what(node, text)
        if what:
            found.append(Bashism(what, node.start_byte, node.end_byte))
        if len(found) >= _MOST:
            break
    return found


def _walk(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def _what(node: Node, text: str) -> str:
    kind = node.type
    if kind in _NODES:
        return _NODES[kind] if _is_in(node, _ONLY_IN.get(kind)) else ""
    source = text[node.start_byte : node.end_byte]
    if kind == "command":
        return _command(node, text)
    if kind == "declaration_command":
        words = source.split()
        if words[0] in _DECLARATIONS:
            return words[0]
        return "export -f" if words[:2] == ["export", "-f"] else ""
    if kind == "expansion":
        operators = [
            text[child.start_byte : child.end_byte]
            for at, child in enumerate(node.children)
            if node.field_name_for_child(at) == "operator"
        ]
        return "${" + operators[0] + "…}" if operators and operators[0] in _EXPANSIONS else ""
    if kind == "variable_name" and source in _VARIABLES:
        return f"${source}"
    return ""


def _is_in(node: Node, kind: str | None) -> bool:
    """Whether a sign stands in a node of that kind, or needs none."""
    parent = node.parent
    while kind is not None and parent is not None:
        if parent.type == kind:
            # `[[ a == b ]]` is a bashism already.
            return parent.children[0].type != "[["
        if parent.type in ("arithmetic_expansion", "command_substitution"):
            return False
        parent = parent.parent
    return kind is None


def _command(node: Node, text: str) -> str:
    words = text[node.start_byte : node.end_byte].split()
    name = words[0] if words else ""
    if name in _COMMANDS:
        return name
    if name == "set" and "pipefail" in words:
        return "set -o pipefail"
    if name == "trap" and words[-1] in ("ERR", "DEBUG", "RETURN"):
        return f"trap … {words[-1]}"
    if name == "read" and any(word.startswith("-") and "a" in word for word in words[1:3]):
        return "read -a"
    if name == "wait" and "-n" in words:
        return "wait -n"
    return ""
