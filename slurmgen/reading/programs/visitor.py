"""One pass over the expressions of a statement: their calls, and the names they bind."""

from __future__ import annotations

import ast
from typing import NamedTuple

from slurmgen.reading.programs.scopes import Binding, Guard, Loop, Scope, Site, Table

# A chain of a thousand `elif`s must not make the pass quadratic.
_MOST_GUARDS = 24


class Context(NamedTuple):
    scope: Scope
    branches: tuple[tuple[int, str], ...] = ()
    guards: tuple[Guard, ...] = ()
    loops: tuple[Loop, ...] = ()

    def under(self, test: ast.expr, holds: bool) -> Context:
        return self._replace(guards=(*self.guards, Guard(test, holds))[-_MOST_GUARDS:])


class ExpressionWalker:
    """Fills a Table with what expressions hold."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.order = 0
        self.arms = 0

    def expression(self, node: ast.expr, context: Context) -> None:
        if isinstance(node, ast.Constant):
            return
        if isinstance(node, ast.Name):
            self.table.words.add(node.id)
        elif isinstance(node, ast.Attribute):
            self.table.words.add(node.attr)
            self.expression(node.value, context)
        elif isinstance(node, ast.Call):
            self.expression(node.func, context)
            for argument in node.args:
                self.expression(argument, context)
            for keyword in node.keywords:
                self.expression(keyword.value, context)
            self.table.calls.append((node, self.site(context)))
        elif isinstance(node, ast.IfExp):
            self.expression(node.test, context)
            self.expression(node.body, context.under(node.test, True))
            self.expression(node.orelse, context.under(node.test, False))
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                self.expression(value, context)
                context = context.under(value, isinstance(node.op, ast.And))
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            self._comprehension(node, context)
        elif isinstance(node, ast.NamedExpr):
            self.expression(node.value, context)
            self.bind(node.target, node.value, "value", context)
        elif isinstance(node, ast.Lambda):
            self._lambda(node, context)
        else:
            if isinstance(node, ast.Subscript):
                self.table.subscripts.append((node, self.site(context)))
            elif isinstance(node, ast.Compare):
                self.table.compares.append((node, self.site(context)))
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.expression(child, context)

    def _comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        context: Context,
    ) -> None:
        for generator in node.generators:
            self.expression(generator.iter, context)
            loop = Loop("comprehension", node, generator.target, generator.iter)
            context = self.looped(loop, context)
            self.bind(generator.target, generator.iter, "iterate", context)
            for test in generator.ifs:
                self.expression(test, context)
                context = context.under(test, True)
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for result in results:
            self.expression(result, context)

    def _lambda(self, node: ast.Lambda, context: Context) -> None:
        parent = context.scope
        scope = Scope("function", f"{parent.name}.<lambda {node.lineno}>", parent, node)
        self.table.scopes.setdefault(scope.name, scope)
        self.parameters(scope, node.args, context)
        inner = Context(scope)
        self.expression(node.body, inner)
        scope.returns.append((node.body, self.site(inner)))

    # --- bindings ---------------------------------------------------------------------

    def site(self, context: Context) -> Site:
        self.order += 1
        return Site(context.scope, self.order, context.branches, context.guards, context.loops)

    def bind(self, target: ast.expr, value: ast.expr, how: str, context: Context) -> None:
        if isinstance(target, ast.Name):
            self.bind_name(target.id, Binding(self.site(context), how, value), context)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, how, context)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value, "unknown", context)
        elif isinstance(target, ast.Attribute):
            self.expression(target.value, context)
            key = attribute_key(target, context.scope)
            if key:
                binding = Binding(self.site(context), how, value)
                self.table.attributes.setdefault(key, []).append(binding)
        elif isinstance(target, ast.Subscript):
            self.expression(target.value, context)
            self.expression(target.slice, context)
            self.table.writes.append((target, Binding(self.site(context), how, value)))

    def _unpack(self, targets: list[ast.expr], value: ast.expr, how: str, context: Context) -> None:
        pairs = isinstance(value, (ast.Tuple, ast.List)) and how == "value"
        if pairs and len(value.elts) == len(targets):  # type: ignore[attr-defined]
            for target, item in zip(targets, value.elts, strict=True):  # type: ignore[attr-defined]
                self.bind(target, item, how, context)
            return
        for index, target in enumerate(targets):
            if isinstance(target, ast.Name) and how == "value":
                binding = Binding(self.site(context), "item", value, index)
                self.bind_name(target.id, binding, context)
            elif isinstance(target, ast.Attribute) and how == "value":
                key = attribute_key(target, context.scope)
                binding = Binding(self.site(context), "item", value, index)
                self.table.attributes.setdefault(key, []).append(binding)
            elif isinstance(target, ast.Name) and how == "iterate":
                binding = Binding(self.site(context), "iterate-item", value, index)
                self.bind_name(target.id, binding, context)
            else:
                self.bind(target, value, "unknown", context)

    def bind_name(self, name: str, binding: Binding, context: Context) -> None:
        scope = context.scope
        if name in scope.globals:
            scope = self.table.module
        scope.bindings.setdefault(name, []).append(binding)

    def parameters(self, scope: Scope, arguments: ast.arguments, context: Context) -> None:
        positional = [*arguments.posonlyargs, *arguments.args]
        inner = Context(scope)
        scope.positional = len(positional)
        scope.parameters = [item.arg for item in (*positional, *arguments.kwonlyargs)]
        first = len(positional) - len(arguments.defaults)
        defaults = list(zip(scope.parameters[first:], arguments.defaults, strict=False))
        keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        defaults += [(item.arg, default) for item, default in keyword_only if default is not None]
        for name, default in defaults:
            self.expression(default, context)
            scope.defaults[name] = (default, self.site(context))
        for name in scope.parameters:
            self.bind_name(name, Binding(self.site(inner), "parameter", dotted=name), inner)
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                self.bind_name(extra.arg, Binding(self.site(inner), "unknown"), inner)

    def looped(self, loop: Loop, context: Context) -> Context:
        self.table.loops.append((loop, self.site(context)))
        inner = self.arm(context, "loop")
        return inner._replace(loops=(*inner.loops, loop))

    def arm(self, context: Context, kind: str) -> Context:
        self.arms += 1
        return context._replace(branches=(*context.branches, (self.arms, kind)))


def attribute_key(node: ast.Attribute, scope: Scope) -> str:
    """What ``base.name`` is filed under: a class for ``self``, the base's text otherwise."""
    parts = [node.attr]
    base = node.value
    while isinstance(base, ast.Attribute):
        parts.append(base.attr)
        base = base.value
    if not isinstance(base, ast.Name):
        return ""
    owner = scope.owner
    first = owner.name if base.id in ("self", "cls") and owner else base.id
    return ".".join([first, *reversed(parts)])
