"""The facts of one source: its calls, what it reads from the environment and writes there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from slurmgen.reading.programs.calls import GETTERS
from slurmgen.reading.programs.facts import (
    ANY,
    Argument,
    Call,
    Condition,
    EnvRead,
    EnvWrite,
    Import,
)
from slurmgen.reading.programs.values import UNKNOWN, Value, alternatives

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.reading.programs.evaluate import Evaluator
    from slurmgen.reading.programs.scopes import Site
    from slurmgen.reading.programs.sources import Unit

_ENVIRON = Value("name", "os.environ")


class Gatherer:
    """Reads the facts of one source off its table."""

    def __init__(self, source: Unit, evaluator: Evaluator) -> None:
        self._source = source
        self._evaluator = evaluator
        self._value = evaluator.value
        self._changed: set[str] | None = None
        self.calls = [self._call(node, site) for node, site in source.table.calls]

    def _place(self, node: ast.AST) -> Place:
        return self._source.place(node)

    def _call(self, node: ast.Call, site: Site) -> Call:
        function = self._value(node.func, site)
        names = [item for item in alternatives(function) if item.kind in ("name", "function")]
        name = names[0].name if names else ""
        method, receiver = name.rpartition(".")[2], None
        if isinstance(node.func, ast.Attribute):
            method = method or node.func.attr
            receiver = self._value(node.func.value, site)
        keywords, is_open = self._keywords(node, site)
        return Call(
            name,
            method,
            receiver,
            tuple(self._value(item, site) for item in node.args),
            keywords,
            is_open,
            conditions(self._evaluator, site),
            site.loops,
            site.scope.name,
            self._value(node, site),
            self._place(node),
            node,
            site,
        )

    def _keywords(self, node: ast.Call, site: Site) -> tuple[tuple[tuple[str, Value], ...], bool]:
        """The named arguments, those of a known dictionary too, and whether there are more."""
        found: list[tuple[str, Value]] = []
        is_open = any(isinstance(item, ast.Starred) for item in node.args)
        for keyword in node.keywords:
            value = self._value(keyword.value, site)
            if keyword.arg:
                found.append((keyword.arg, value))
            elif value.kind == "dict":
                found += value.keywords
                is_open = is_open or self._is_changed(keyword.value)
            else:
                is_open = True
        return tuple(found), is_open

    def _is_changed(self, node: ast.expr) -> bool:
        """Whether a dictionary gets more items than it is made with."""
        if not isinstance(node, ast.Name):
            return not isinstance(node, ast.Dict)
        if self._changed is None:
            table = self._source.table
            bases = [target.value for target, _ in table.writes]
            bases += [
                call.func.value
                for call, _ in table.calls
                if isinstance(call.func, ast.Attribute)
                and call.func.attr in ("update", "setdefault", "pop", "clear")
            ]
            self._changed = {base.id for base in bases if isinstance(base, ast.Name)}
        return node.id in self._changed

    def imports(self) -> Iterator[Import]:
        """Every imported name, in source order."""
        for name, node in self._source.table.imports:
            yield Import(self._source.absolute(name), self._place(node))

    def arguments(self) -> Iterator[Argument]:
        """The command line options that this source declares."""
        for option in self._evaluator.declared:
            if option.unit == self._source.name:
                yield Argument(
                    option.flags,
                    option.dest,
                    option.default,
                    option.action,
                    option.is_required,
                    self._place(option.call),
                )

    def reads(self) -> list[EnvRead]:
        """What is read from the environment, in source order."""
        found: list[tuple[int, EnvRead]] = []
        ints = {id(c.node.args[0]) for c in self.calls if c.name == "int" and c.node.args}

        def add(name: Value, how: str, default: Value | None, node: ast.expr, site: Site) -> None:
            if isinstance(name.literal, str):
                tests = conditions(self._evaluator, site)
                read = EnvRead(
                    name.literal, how, default, id(node) in ints, tests, self._place(node)
                )
                found.append((site.order, read))

        table = self._source.table
        for node, site in table.subscripts:
            if isinstance(node.ctx, ast.Load) and self._value(node.value, site) == _ENVIRON:
                add(self._value(node.slice, site), "item", None, node, site)
        for call in self.calls:
            if call.name in GETTERS and call.args:
                add(call.args[0], "get", call.argument(1, "default"), call.node, call.site)
        for compare, site in table.compares:
            is_in = isinstance(compare.ops[0], (ast.In, ast.NotIn))
            if is_in and self._value(compare.comparators[0], site) == _ENVIRON:
                add(self._value(compare.left, site), "in", None, compare, site)
        return [read for _, read in sorted(found, key=lambda item: item[0])]

    def writes(self) -> list[EnvWrite]:
        """What is written to the environment, in source order."""
        found: list[tuple[int, EnvWrite]] = []

        def add(name: Value, how: str, value: Value, node: ast.expr, site: Site) -> None:
            if name.literal is None or isinstance(name.literal, str):
                tests = conditions(self._evaluator, site)
                # A name that isn't known may be any.
                text = name.literal if isinstance(name.literal, str) else ANY
                write = EnvWrite(text, how, value, tests, self._place(node))
                found.append((site.order, write))

        for target, binding in self._source.table.writes:
            site = binding.site
            if self._value(target.value, site) == _ENVIRON and binding.value is not None:
                is_value = binding.how == "value"
                value = self._value(binding.value, site) if is_value else UNKNOWN
                add(self._value(target.slice, site), "item", value, target, site)
        for call in self.calls:
            if call.name in ("os.environ.setdefault", "os.putenv") and len(call.args) == 2:
                add(call.args[0], call.method, call.args[1], call.node, call.site)
            elif call.name == "os.environ.update":
                for key, value in call.keywords:
                    add(Value("constant", literal=key), "update", value, call.node, call.site)
                if call.is_open or any(not isinstance(a, ast.Dict) for a in call.node.args):
                    add(UNKNOWN, "update", UNKNOWN, call.node, call.site)
                for key_node, item in _pairs(call.node):
                    key_value = self._value(key_node, call.site)
                    add(key_value, "update", self._value(item, call.site), item, call.site)
        return [write for _, write in sorted(found, key=lambda item: item[0])]


def conditions(evaluator: Evaluator, site: Site) -> tuple[Condition, ...]:
    """The tests that lead to a place."""
    return tuple(
        Condition(evaluator.value(guard.test, site), guard.holds, _names(guard.test))
        for guard in site.guards
    )


def _names(test: ast.expr) -> tuple[str, ...]:
    found = []
    for node in ast.walk(test):
        if isinstance(node, ast.Name):
            found.append(node.id)
        elif isinstance(node, ast.Attribute):
            found.append(node.attr)
    return tuple(found)


def _pairs(node: ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The items of the dictionaries that are passed."""
    for given in node.args:
        if isinstance(given, ast.Dict):
            for key, value in zip(given.keys, given.values, strict=True):
                if key is not None:
                    yield key, value
