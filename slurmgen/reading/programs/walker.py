"""One pass over a syntax tree that fills a Table."""

from __future__ import annotations

import ast
from typing import TypeAlias

from slurmgen.reading.programs.scopes import Binding, Loop, Scope, Table
from slurmgen.reading.programs.visitor import Context, ExpressionWalker

_EXITS = frozenset({"exit", "_exit", "quit", "abort"})

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def tabulate(tree: ast.Module, unit: str) -> Table:
    """The table of a source that the program knows as `unit`."""
    module = Scope("module", unit, None, tree)
    table = Table(module, {unit: module}, [], [], [], [], {}, [], [], [], set())
    _Walker(table).block(tree.body, Context(module))
    return table


def dotted(relative: int, module: str | None, name: str = "") -> str:
    """The name an import statement means; leading dots where it is relative."""
    inner = ".".join(part for part in (module, name) if part)
    return "." * relative + inner


def leaves(body: list[ast.stmt]) -> bool:
    """Whether what follows a block is never reached from it."""
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return True
    if isinstance(last, ast.If):
        return bool(last.orelse) and leaves(last.body) and leaves(last.orelse)
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)):
        return False
    function = last.value.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _EXITS


class _Walker(ExpressionWalker):
    # --- statements -------------------------------------------------------------------

    def block(self, body: list[ast.stmt], context: Context) -> None:
        for statement in body:
            self.statement(statement, context)
            if isinstance(statement, ast.If):
                if leaves(statement.body):
                    context = context.under(statement.test, False)
                elif statement.orelse and leaves(statement.orelse):
                    context = context.under(statement.test, True)
            elif isinstance(statement, ast.Assert):
                context = context.under(statement.test, True)

    def statement(self, node: ast.stmt, context: Context) -> None:
        handler = getattr(self, f"_{type(node).__name__}", None)
        if handler is not None:
            handler(node, context)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.expression(child, context)

    def _FunctionDef(self, node: Function, context: Context) -> None:
        for decorator in node.decorator_list:
            self.expression(decorator, context)
        scope = self._open("function", node.name, node, context)
        scope.decorators = [(item, self.site(context)) for item in node.decorator_list]
        self.parameters(scope, node.args, context)
        self.block(node.body, Context(scope))

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: ast.ClassDef, context: Context) -> None:
        for child in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            self.expression(child, context)
        scope = self._open("class", node.name, node, context)
        scope.decorators = [(item, self.site(context)) for item in node.decorator_list]
        scope.bases = [(item, self.site(context)) for item in node.bases]
        self.block(node.body, Context(scope))

    def _open(self, kind: str, name: str, node: ast.AST, context: Context) -> Scope:
        parent = context.scope
        scope = Scope(kind, f"{parent.name}.{name}", parent, node)
        self.table.scopes.setdefault(scope.name, scope)
        self.bind_name(name, Binding(self.site(context), kind, scope=scope), context)
        return scope

    def _Return(self, node: ast.Return, context: Context) -> None:
        if node.value is not None:
            self.expression(node.value, context)
            context.scope.returns.append((node.value, self.site(context)))

    def _Assign(self, node: ast.Assign, context: Context) -> None:
        self.expression(node.value, context)
        for target in node.targets:
            self.bind(target, node.value, "value", context)

    def _AnnAssign(self, node: ast.AnnAssign, context: Context) -> None:
        if node.value is not None:
            self.expression(node.value, context)
            self.bind(node.target, node.value, "value", context)

    def _AugAssign(self, node: ast.AugAssign, context: Context) -> None:
        self.expression(node.value, context)
        load = ast.BinOp(node.target, node.op, node.value)
        ast.copy_location(load, node)
        self.bind(node.target, load, "value", context)

    def _If(self, node: ast.If, context: Context) -> None:
        arms = 0
        while True:
            self.arms += 1
            arm = self.arms
            self.expression(node.test, context)
            inner = context._replace(branches=(*context.branches, (arm, "then")))
            self.block(node.body, inner.under(node.test, True))
            context = context._replace(branches=(*context.branches, (arm, "else")))
            context = context.under(node.test, False)
            arms += 1
            # An `elif` is walked here and not by recursion: a chain may be long.
            if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) and arms < 200:
                node = node.orelse[0]
                continue
            self.block(node.orelse, context)
            return

    def _For(self, node: ast.For | ast.AsyncFor, context: Context) -> None:
        self.expression(node.iter, context)
        loop = Loop("for", node, node.target, node.iter)
        inner = self.looped(loop, context)
        self.bind(node.target, node.iter, "iterate", inner)
        self.block(node.body, inner)
        self.block(node.orelse, context)

    _AsyncFor = _For

    def _While(self, node: ast.While, context: Context) -> None:
        self.expression(node.test, context)
        self.block(node.body, self.looped(Loop("while", node), context))
        self.block(node.orelse, context)

    def _With(self, node: ast.With | ast.AsyncWith, context: Context) -> None:
        for item in node.items:
            self.expression(item.context_expr, context)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, item.context_expr, "value", context)
        self.block(node.body, context)

    _AsyncWith = _With

    def _Try(self, node: ast.Try, context: Context) -> None:
        # What stands in a `try` has run afterwards if every handler leaves.
        is_sure = all(leaves(handler.body) for handler in node.handlers)
        inner = context if is_sure else self.arm(context, "try")
        self.block(node.body, inner)
        self.block(node.orelse, inner)
        for handler in node.handlers:
            arm = self.arm(context, "except")
            if handler.type is not None:
                self.expression(handler.type, context)
            if handler.name:
                self.bind_name(handler.name, Binding(self.site(arm), "unknown"), arm)
            self.block(handler.body, arm)
        self.block(node.finalbody, context)

    _TryStar = _Try

    def _Match(self, node: ast.Match, context: Context) -> None:
        self.expression(node.subject, context)
        for case in node.cases:
            arm = self.arm(context, "case")
            for inner in ast.walk(case.pattern):
                name = getattr(inner, "name", None)
                if isinstance(name, str):
                    self.bind_name(name, Binding(self.site(arm), "unknown"), arm)
            if case.guard is not None:
                self.expression(case.guard, arm)
            self.block(case.body, arm)

    def _Global(self, node: ast.Global | ast.Nonlocal, context: Context) -> None:
        context.scope.globals.update(node.names)

    _Nonlocal = _Global

    def _Import(self, node: ast.Import, context: Context) -> None:
        for alias in node.names:
            self.table.imports.append((alias.name, node))
            target = alias.name if alias.asname else alias.name.partition(".")[0]
            name = alias.asname or target
            self.bind_name(name, Binding(self.site(context), "import", dotted=target), context)

    def _ImportFrom(self, node: ast.ImportFrom, context: Context) -> None:
        for alias in node.names:
            if alias.name == "*":
                star = dotted(node.level, node.module)
                self.table.stars.append(star)
                self.table.imports.append((star, node))
                continue
            target = dotted(node.level, node.module, alias.name)
            self.table.imports.append((target, node))
            name = alias.asname or alias.name
            self.bind_name(name, Binding(self.site(context), "import", dotted=target), context)
