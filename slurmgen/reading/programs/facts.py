"""The facts of a program that rules ask for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from slurmgen.diagnostics import Place
    from slurmgen.reading.programs.scopes import Loop, Site
    from slurmgen.reading.programs.values import Value


class Condition(NamedTuple):
    """A test on the way to a statement, and the outcome that leads there.

    names: the names that are written in it, whatever they stand for.
    """

    test: Value
    holds: bool
    names: tuple[str, ...]


class Call(NamedTuple):
    """A call.

    name: what is called, dotted and canonical (``torch.nn.parallel.DistributedDataParallel``,
    ``__main__.train``), "" where the receiver is no known name. method: the last component.
    receiver: the value before the last dot, None for a plain name. is_open: ``*`` or ``**``
    brings arguments that aren't seen. function: the dotted name of the function it stands in.
    """

    name: str
    method: str
    receiver: Value | None
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    is_open: bool
    conditions: tuple[Condition, ...]
    loops: tuple[Loop, ...]
    function: str
    value: Value
    place: Place
    node: ast.Call
    site: Site

    def keyword(self, name: str) -> Value | None:
        return next((value for key, value in self.keywords if key == name), None)

    def argument(self, position: int, keyword: str) -> Value | None:
        """An argument by its position or its name; None where it isn't passed."""
        if position < len(self.args):
            starred = self.node.args[: position + 1]
            if not any(isinstance(item, ast.Starred) for item in starred):
                return self.args[position]
        return self.keyword(keyword)

    def argument_place(self, position: int, keyword: str) -> Place:
        """Where an argument stands, in a call over several lines; else the call's own place."""
        found = [item.value for item in self.node.keywords if item.arg == keyword]
        node = next(iter([*self.node.args[position : position + 1], *found]), None)
        if node is None or node.lineno == self.place.line:
            return self.place
        length = (node.end_col_offset or 0) - node.col_offset
        is_one_line = node.end_lineno == node.lineno
        return self.place._replace(
            line=node.lineno,
            column=node.col_offset + 1,
            length=length if is_one_line and length > 0 else 1,
        )

    def text(self, position: int, keyword: str) -> str | None:
        """An argument that is a string literal."""
        value = self.argument(position, keyword)
        literal = value.literal if value is not None and value.is_constant else None
        return literal if isinstance(literal, str) else None

    def number(self, position: int, keyword: str) -> int | None:
        """An argument that is a whole number."""
        value = self.argument(position, keyword)
        return whole(value) if value is not None else None


class EnvRead(NamedTuple):
    """``os.environ[name]`` (how: item), ``.get(name, default)`` (get), ``name in os.environ`` (in).

    is_int: the read itself stands inside ``int(...)``.
    """

    name: str
    how: str
    default: Value | None
    is_int: bool
    conditions: tuple[Condition, ...]
    place: Place


# The name of a variable whose name isn't known.
ANY = "*"


class EnvWrite(NamedTuple):
    """An environment variable is set; how: ``item``, ``setdefault``, ``putenv`` or ``update``.

    name: ANY where it isn't known.
    """

    name: str
    how: str
    value: Value
    conditions: tuple[Condition, ...]
    place: Place


class Argument(NamedTuple):
    """A command line option: ``add_argument``, ``click.option``; action as argparse names it."""

    flags: tuple[str, ...]
    dest: str
    default: Value
    action: str
    is_required: bool
    place: Place


class Import(NamedTuple):
    """An import: ``a.b`` for ``import a.b`` and for ``from a import b``."""

    name: str
    place: Place


def whole(value: Value) -> int | None:
    """A literal whole number, True and False excepted."""
    literal = value.literal if value.is_constant else None
    return literal if isinstance(literal, int) and not isinstance(literal, bool) else None
