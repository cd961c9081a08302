"""The names of one source: scopes, bindings and calls, with the tests and loops around each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ast


class Guard(NamedTuple):
    """A test around a statement; holds: which outcome leads to it."""

    test: ast.expr
    holds: bool


class Loop(NamedTuple):
    """A loop around a statement; kind: ``for``, ``while`` or ``comprehension``."""

    kind: str
    node: ast.AST
    target: ast.expr | None = None
    iterable: ast.expr | None = None


class Site(NamedTuple):
    """Where a piece of code stands.

    order: source order within the file. branches: the arms it lies in, outermost first; code in
    a prefix of another's branches always runs when that does. guards: the tests that lead here,
    those of an early return too.
    """

    scope: Scope
    order: int
    branches: tuple[tuple[int, str], ...] = ()
    guards: tuple[Guard, ...] = ()
    loops: tuple[Loop, ...] = ()


class Binding(NamedTuple):
    """A name gets a value.

    how: ``value``, ``item`` (`position` of the unpacked value), ``iterate`` (an element of the
    value), ``iterate-item`` (`position` of such an element), ``import`` and ``parameter``
    (`dotted`), ``function`` and ``class`` (`scope`), ``unknown``.
    """

    site: Site
    how: str
    value: ast.expr | None = None
    position: int = 0
    dotted: str = ""
    scope: Scope | None = None


class Scope:
    """A module, class or function, and what is bound in it."""

    def __init__(self, kind: str, name: str, parent: Scope | None, node: ast.AST) -> None:
        self.kind = kind
        self.name = name
        self.parent = parent
        self.node = node
        self.bindings: dict[str, list[Binding]] = {}
        self.globals: set[str] = set()
        self.parameters: list[str] = []
        self.positional = 0
        self.defaults: dict[str, tuple[ast.expr, Site]] = {}
        self.returns: list[tuple[ast.expr, Site]] = []
        self.decorators: list[tuple[ast.expr, Site]] = []
        self.bases: list[tuple[ast.expr, Site]] = []
        self.unit: str = parent.unit if parent is not None else name

    @property
    def owner(self) -> Scope | None:
        """The class around a method."""
        scope: Scope | None = self
        while scope is not None and scope.kind != "class":
            scope = scope.parent
        return scope

    @property
    def is_method(self) -> bool:
        return self.parent is not None and self.parent.kind == "class"


class Table(NamedTuple):
    """Everything that is found in one source, in source order."""

    module: Scope
    scopes: dict[str, Scope]
    calls: list[tuple[ast.Call, Site]]
    subscripts: list[tuple[ast.Subscript, Site]]
    writes: list[tuple[ast.Subscript, Binding]]
    compares: list[tuple[ast.Compare, Site]]
    attributes: dict[str, list[Binding]]
    loops: list[tuple[Loop, Site]]
    imports: list[tuple[str, ast.stmt]]
    stars: list[str]
    words: set[str]
