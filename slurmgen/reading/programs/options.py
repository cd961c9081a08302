"""The command line options of a program: argparse's, optparse's and click's."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.programs.values import Value, constant

if TYPE_CHECKING:
    from collections.abc import Mapping


class Option(NamedTuple):
    """A command line option; `dest` is the attribute or parameter that holds it."""

    flags: tuple[str, ...]
    dest: str
    default: Value
    action: str
    is_required: bool
    call: ast.Call
    unit: str


def flags_of(node: ast.Call) -> tuple[str, ...]:
    """The flags that a call declares an option with; none where it does something else."""
    if last_name(node.func) not in ("add_argument", "add_option", "option", "argument"):
        return ()
    flags = tuple(
        item.value
        for item in node.args
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    )
    return () if any(not flag or " " in flag for flag in flags) else flags


def option(
    node: ast.Call, flags: tuple[str, ...], keywords: Mapping[str, Value], unit: str
) -> Option:
    """The option that a call declares."""
    long = [flag for flag in flags if flag.startswith("--")]
    bare = [flag for flag in flags if not flag.startswith("-")]
    is_click = last_name(node.func) == "option"
    first = (bare if is_click and bare else long or list(flags))[0]
    dest = first.split("/")[0].lstrip("-").replace("-", "_")
    given = keywords.get("dest")
    if given is not None and given.is_constant:
        dest = str(given.literal)
    action = str(keywords.get("action", constant("store")).literal)
    default = keywords.get("default")
    if default is None:
        default = constant({"store_true": False, "store_false": True}.get(action))
    is_required = keywords.get("required", constant(False)).literal is True
    return Option(flags, dest, default, action, is_required, node, unit)


def is_click(node: ast.expr) -> bool:
    """Whether a decorator makes a function's parameters command line options."""
    name = last_name(node.func if isinstance(node, ast.Call) else node)
    return name in ("option", "argument", "command")


def last_name(node: ast.expr) -> str:
    """``c`` of ``a.b.c``, "" for anything else than names."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
