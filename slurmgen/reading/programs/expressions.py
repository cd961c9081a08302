"""The values of expressions that need no names: constants, operators, strings, conditions."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from slurmgen.reading.programs.values import UNKNOWN, Value, constant, either, joined, make

if TYPE_CHECKING:
    from slurmgen.reading.programs.scopes import Site

_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not-in",
    ast.Is: "is",
    ast.IsNot: "is-not",
}


class Expressions(ABC):
    """A method per kind of expression, found by the name of its class in ``ast``."""

    @abstractmethod
    def value(self, node: ast.expr, site: Site) -> Value:
        """What an expression is, where it stands."""

    def _Constant(self, node: ast.Constant, _: Site) -> Value:
        return constant(node.value)

    def _BinOp(self, node: ast.BinOp, site: Site) -> Value:
        left, right = self.value(node.left, site), self.value(node.right, site)
        name = _SYMBOLS.get(type(node.op), "?")
        if name == "%" and left.is_constant and isinstance(left.literal, str):
            return _formatted(left.literal, right)
        if name == "+" and any(_is_text(side) for side in (left, right)):
            return joined([left, right])
        if left.is_constant and right.is_constant:
            return _computed(name, left.literal, right.literal)
        return make("binary", name, (left, right))

    def _UnaryOp(self, node: ast.UnaryOp, site: Site) -> Value:
        operand = self.value(node.operand, site)
        if isinstance(node.op, ast.Not):
            return make("not", parts=(operand,))
        if isinstance(node.op, ast.USub) and operand.is_constant:
            return _computed("-", 0, operand.literal)
        return UNKNOWN

    def _BoolOp(self, node: ast.BoolOp, site: Site) -> Value:
        name = "or" if isinstance(node.op, ast.Or) else "and"
        return make(name, parts=tuple(self.value(item, site) for item in node.values))

    def _Compare(self, node: ast.Compare, site: Site) -> Value:
        sides = [self.value(item, site) for item in (node.left, *node.comparators)]
        pairs = [
            make("compare", _SYMBOLS.get(type(operator), "?"), (left, right))
            for operator, left, right in zip(node.ops, sides, sides[1:], strict=False)
        ]
        return pairs[0] if len(pairs) == 1 else make("and", parts=tuple(pairs))

    def _IfExp(self, node: ast.IfExp, site: Site) -> Value:
        test = self.value(node.test, site)
        arms = [(True, node.body), (False, node.orelse)]
        return either(
            [make("when", parts=(test, self.value(item, site)), literal=h) for h, item in arms]
        )

    def _JoinedStr(self, node: ast.JoinedStr, site: Site) -> Value:
        return joined([self.value(item, site) for item in node.values])

    def _FormattedValue(self, node: ast.FormattedValue, site: Site) -> Value:
        return self.value(node.value, site)

    def _Tuple(self, node: ast.Tuple | ast.List, site: Site) -> Value:
        return make("tuple", parts=tuple(self.value(item, site) for item in node.elts[:32]))

    _List = _Tuple

    def _Dict(self, node: ast.Dict, site: Site) -> Value:
        pairs = [
            (key.value, self.value(item, site))
            for key, item in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        ]
        return make("dict", keywords=tuple(pairs)) if len(pairs) == len(node.keys) else UNKNOWN

    def _Slice(self, node: ast.Slice, site: Site) -> Value:
        ends = (node.lower, node.upper, node.step)
        return make("tuple", parts=tuple(self.value(item, site) for item in ends if item))

    def _NamedExpr(self, node: ast.NamedExpr, site: Site) -> Value:
        return self.value(node.value, site)

    def _Await(self, node: ast.Await, site: Site) -> Value:
        return self.value(node.value, site)

    def _Starred(self, node: ast.Starred, site: Site) -> Value:
        return self.value(node.value, site)

    def _ListComp(self, node: ast.ListComp | ast.GeneratorExp, site: Site) -> Value:
        return make("list", parts=(self.value(node.elt, site),))

    _GeneratorExp = _ListComp

    def _Lambda(self, node: ast.Lambda, site: Site) -> Value:
        return Value("function", f"{site.scope.name}.<lambda {node.lineno}>")


def element(value: Value, index: int | None) -> Value:
    """What a loop over a value yields; `index` of it where it is unpacked."""
    if value.kind == "call" and value.name == "enumerate" and index is not None:
        return make("iterate", parts=value.parts[:1]) if index == 1 else UNKNOWN
    if index is not None:
        return UNKNOWN
    if value.kind == "tuple":
        return either(list(value.parts))
    return make("iterate", parts=(value,))


def _is_text(value: Value) -> bool:
    return value.kind == "format" or (value.is_constant and isinstance(value.literal, str))


def _formatted(text: str, right: Value) -> Value:
    """``"cuda:%d" % x``."""
    pieces = text.split("%")
    values = list(right.parts) if right.kind == "tuple" else [right]
    if len(pieces) - 1 != len(values):
        return UNKNOWN
    parts = [constant(pieces[0])]
    for piece, value in zip(pieces[1:], values, strict=True):
        parts += [value, constant(piece.lstrip("0123456789.+-")[1:])]
    return joined([part for part in parts if part != constant("")])


def filled(text: str, passed: tuple[Value, ...]) -> Value:
    """``"cuda:{}".format(x)``."""
    pieces: list[Value] = []
    rest, count = text, 0
    while "{" in rest:
        before, _, rest = rest.partition("{")
        field, _, rest = rest.partition("}")
        index = int(field) if field.isdecimal() and len(field) < 3 else count
        count += 1
        pieces += [constant(before), passed[index] if index < len(passed) else UNKNOWN]
    pieces.append(constant(rest))
    return joined([piece for piece in pieces if piece != constant("")])


def converted(name: str, value: Value) -> Value:
    """``int(x)``: what x is; a constant is converted."""
    if not value.is_constant or name not in ("int", "str", "float"):
        return value
    convert = {"int": int, "str": str, "float": float}[name]
    try:
        return constant(convert(value.literal))
    except (TypeError, ValueError, OverflowError):
        return UNKNOWN


def _computed(name: str, left: object, right: object) -> Value:
    if not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
        return UNKNOWN
    try:
        if name == "+":
            return constant(left + right)
        if name == "-":
            return constant(left - right)
        if name == "*":
            return constant(left * right)
        if name == "/":
            return constant(left / right)
        if name == "//":
            return constant(left // right)
        if name == "%":
            return constant(left % right)
    except (ZeroDivisionError, OverflowError):
        pass
    return UNKNOWN
