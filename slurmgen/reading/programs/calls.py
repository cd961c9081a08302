"""What calls come to: of the program's own functions, of the environment, of anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.reading.programs.expressions import Expressions, converted, filled
from slurmgen.reading.programs.values import (
    NONE,
    UNKNOWN,
    Value,
    alternatives,
    either,
    joined,
    make,
)

if TYPE_CHECKING:
    import ast

    from slurmgen.reading.programs.scopes import Scope, Site

# Deeper chains of names and calls than this are given up.
DEEPEST = 24
# A function called from more places than this has no telling parameters.
MOST_CALLERS = 8

_WRAPPERS = frozenset({"int", "str", "float", "bool", "round"})
GETTERS = frozenset({"os.environ.get", "os.getenv", "os.environ.setdefault", "os.environ.pop"})


class Calls(Expressions):
    """The values of calls."""

    _scopes: dict[str, Scope]
    _depth: int

    def _Call(self, node: ast.Call, site: Site) -> Value:
        function = self.value(node.func, site)
        passed = tuple(self.value(item, site) for item in node.args[:16])
        keywords = tuple(
            (item.arg, self.value(item.value, site)) for item in node.keywords if item.arg
        )
        if function.kind == "function":
            return self._called(function, passed, keywords)
        named = next((item for item in alternatives(function) if item.kind == "name"), None)
        if named is not None:
            return self._named_call(named, passed, keywords)
        if function.kind == "attribute":
            return self._method(function, passed, keywords)
        return make("call", "", passed, keywords)

    def _called(
        self, function: Value, passed: tuple[Value, ...], keywords: tuple[tuple[str, Value], ...]
    ) -> Value:
        scope = self._scopes.get(function.name)
        if scope is None:
            return UNKNOWN
        if scope.kind == "class":
            return make("instance", function.name, passed, keywords)
        if self._depth > DEEPEST or not 0 < len(scope.returns) <= MOST_CALLERS:
            return make("call", function.name, passed, keywords)
        returned = []
        for node, site in scope.returns:
            value = self.value(node, site)
            for guard in reversed(site.guards):
                test = self.value(guard.test, site)
                if test.kind != "unknown":
                    value = make("when", parts=(test, value), literal=guard.holds)
            returned.append(value)
        return either(returned)

    def _named_call(
        self, function: Value, passed: tuple[Value, ...], keywords: tuple[tuple[str, Value], ...]
    ) -> Value:
        name = function.name
        if name in _WRAPPERS and len(passed) == 1 and not keywords:
            return converted(name, passed[0])
        if name in GETTERS and passed and passed[0].is_constant:
            default = passed[1] if len(passed) > 1 else dict(keywords).get("default", NONE)
            return make("env", str(passed[0].literal), (default,))
        if name == "dict" and not passed:
            return make("dict", keywords=keywords)
        return make("call", name, passed, keywords)

    def _method(
        self, function: Value, passed: tuple[Value, ...], keywords: tuple[tuple[str, Value], ...]
    ) -> Value:
        receiver = function.parts[0]
        if function.name == "parse_args":
            return Value("namespace")
        if function.name == "format" and receiver.is_constant:
            return filled(str(receiver.literal), passed)
        if function.name == "join" and receiver.is_constant and passed:
            inner = passed[0].parts if passed[0].kind == "tuple" else (passed[0],)
            return joined(list(inner))
        return make("method", function.name, (receiver, *passed), keywords)
