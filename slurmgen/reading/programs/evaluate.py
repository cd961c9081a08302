"""What expressions of a program are known to be, through its names, functions and modules."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from slurmgen.reading.programs.callers import Caller, caller
from slurmgen.reading.programs.calls import DEEPEST, MOST_CALLERS, Calls
from slurmgen.reading.programs.expressions import element
from slurmgen.reading.programs.options import Option, flags_of, is_click, option
from slurmgen.reading.programs.reaching import dominates, reaching
from slurmgen.reading.programs.torch_names import canonical
from slurmgen.reading.programs.values import UNKNOWN, Value, constant, either, make
from slurmgen.reading.programs.visitor import attribute_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurmgen.reading.programs.scopes import Binding, Scope, Site
    from slurmgen.reading.programs.sources import Unit

# What is assigned in more places tells nothing.
_MOST_ASSIGNED = 64

# The literal of a name that nothing binds: a star import's, perhaps.
UNBOUND = "unbound"
_BUILTINS = frozenset({*dir(builtins), "__name__", "__file__"})
# What people call the result of parse_args() where it is handed around.
_NAMESPACES = frozenset({"args", "opt", "opts", "options", "hparams", "flags", "FLAGS", "params"})


class Evaluator(Calls):
    """Evaluates expressions of some units that import each other."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self.units = {unit.name: unit for unit in units}
        self._memo: dict[int, Value] = {}
        self._busy: set[int] = set()
        self._depth = 0
        self._scopes = {
            name: scope for unit in self.units.values() for name, scope in unit.table.scopes.items()
        }
        self.declared: list[Option] = []
        self.options: dict[str, Option] = {}
        self.callers: dict[str, list[Caller]] = {}
        self._collecting = True
        for unit in self.units.values():
            for node, site in unit.table.calls:
                self._collect(node, site)
        # Until all callers are known, parameters are not: what was found is found again.
        self._memo = {}
        self._collecting = False

    def _collect(self, node: ast.Call, site: Site) -> None:
        found = caller(node, site, self.value)
        if found is not None:
            self.callers.setdefault(found[0], []).append(found[1])
        flags = flags_of(node)
        if flags:
            named = {k.arg: self.value(k.value, site) for k in node.keywords if k.arg}
            declared = option(node, flags, named, site.scope.unit)
            self.declared.append(declared)
            self.options.setdefault(declared.dest, declared)

    def value(self, node: ast.expr, site: Site) -> Value:
        """What an expression is, where it stands."""
        key = id(node)
        known = self._memo.get(key)
        if known is not None:
            return known
        if key in self._busy or self._depth > DEEPEST * 3:
            return UNKNOWN
        self._busy.add(key)
        self._depth += 1
        try:
            handler = getattr(self, f"_{type(node).__name__}", None)
            value: Value = handler(node, site) if handler is not None else UNKNOWN
        finally:
            self._depth -= 1
            self._busy.discard(key)
        self._memo[key] = value
        return value

    def scope_of(self, value: Value) -> Scope | None:
        """The function or class of the program that a value names."""
        return self._scopes.get(value.name) if value.kind == "function" else None

    # --- names ------------------------------------------------------------------------

    def _Name(self, node: ast.Name, site: Site) -> Value:
        return self.name(node.id, site)

    def name(self, name: str, site: Site) -> Value:
        """What a name is, where it is used."""
        scope: Scope | None = site.scope
        is_first = True
        while scope is not None:
            visible = scope.kind != "class" or is_first
            bindings = scope.bindings.get(name) if visible and name not in scope.globals else None
            if bindings:
                chosen = reaching(bindings, site if is_first else None)
                return either([self._guarded(binding, site) for binding in chosen])
            scope, is_first = scope.parent, False
        for star in self.units[site.scope.unit].table.stars:
            module = self.units.get(self.units[site.scope.unit].absolute(star))
            if module is not None and name in module.table.module.bindings:
                return self._symbol(f"{module.name}.{name}")
        known = canonical(f"*.{name}", self.units[site.scope.unit].table.stars)
        is_known = known != name or name in _BUILTINS
        return Value("name", known, literal=None if is_known else UNBOUND)

    def _guarded(self, binding: Binding, site: Site) -> Value:
        value = self._bound(binding)
        # What both have in common says nothing; a test of its own says when the value holds.
        for guard in reversed(binding.site.guards):
            if binding.site.scope is site.scope and guard in site.guards:
                continue
            test = self.value(guard.test, binding.site)
            if test.kind != "unknown":
                value = make("when", parts=(test, value), literal=guard.holds)
        return value

    def _bound(self, binding: Binding) -> Value:
        how, site = binding.how, binding.site
        if how == "import":
            return self._symbol(self.units[site.scope.unit].absolute(binding.dotted))
        if how in ("function", "class") and binding.scope is not None:
            return Value("function", binding.scope.name)
        if how == "parameter":
            return self._parameter(site.scope, binding.dotted)
        if binding.value is None or how == "unknown":
            return UNKNOWN
        value = self.value(binding.value, site)
        if how == "item":
            return self._item(value, constant(binding.position))
        if how in ("iterate", "iterate-item"):
            return element(value, binding.position if how == "iterate-item" else None)
        return value

    def _symbol(self, dotted: str) -> Value:
        """A dotted name, through the local modules."""
        if dotted in self._scopes and self._scopes[dotted].kind != "module":
            return Value("function", dotted)
        if dotted in self.units:
            return Value("name", dotted)
        module, _, name = dotted.rpartition(".")
        unit = self.units.get(module)
        bindings = unit.table.module.bindings.get(name) if unit is not None else None
        if bindings and self._depth <= DEEPEST:
            self._depth += 1
            try:
                return either([self._bound(binding) for binding in reaching(bindings, None)])
            finally:
                self._depth -= 1
        return Value("name", canonical(dotted))

    # --- attributes and items -----------------------------------------------------------

    def _Attribute(self, node: ast.Attribute, site: Site) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            owner = site.scope.owner
            if owner is not None:
                return self._member(owner, node, site)
        base = self.value(node.value, site)
        if base.kind == "name" and base.literal is not UNBOUND:
            return self._symbol(f"{base.name}.{node.attr}")
        assigned = self._assigned(attribute_key(node, site.scope), site)
        if assigned is not None:
            return assigned
        scope = self._class_of(base)
        if scope is not None:
            return self._member(scope, node, None)
        # Found through `args`, whatever it is: a namespace is handed from function to function.
        named = isinstance(node.value, (ast.Name, ast.Attribute)) and (
            (node.value.id if isinstance(node.value, ast.Name) else node.value.attr) in _NAMESPACES
        )
        if base.kind == "namespace" or named:
            option = self.options.get(node.attr)
            if option is not None:
                return make("option", option.dest, (option.default,))
            if base.kind == "namespace":
                return Value("option", node.attr)
        return make("attribute", node.attr, (base,))

    def _class_of(self, base: Value) -> Scope | None:
        if base.kind == "instance" or base.kind == "function":
            scope = self._scopes.get(base.name)
            return scope if scope is not None and scope.kind == "class" else None
        return None

    def _member(self, owner: Scope, node: ast.Attribute, site: Site | None) -> Value:
        name = node.attr
        for scope in self._lineage(owner):
            assigned = self._assigned(f"{scope.name}.{name}", site)
            if assigned is not None:
                return assigned
            if name in scope.bindings:
                return either([self._bound(item) for item in reaching(scope.bindings[name], None)])
        return make("attribute", name, (Value("name", "self"),))

    def _lineage(self, scope: Scope) -> list[Scope]:
        found = [scope]
        for item in found:
            for base, site in item.bases:
                parent = self.scope_of(self.value(base, site))
                if parent is not None and parent not in found and len(found) < 6:
                    found.append(parent)
        return found

    def _assigned(self, key: str, site: Site | None) -> Value | None:
        if not key:
            return None
        found = [
            binding
            for unit in self.units.values()
            for binding in unit.table.attributes.get(key, ())
        ]
        if not found or self._depth > DEEPEST:
            return None
        if len(found) > _MOST_ASSIGNED:
            return UNKNOWN
        here = [item for item in found if site is not None and item.site.scope is site.scope]
        before = [item for item in here if site is not None and item.site.order < site.order]
        chosen = reaching(before, site) if before else []
        if not (chosen and site is not None and dominates(chosen[0].site, site)):
            others = [item for item in found if item not in here]
            chosen = [*chosen, *others] or found
        if len(chosen) > MOST_CALLERS:
            return UNKNOWN
        self._depth += 1
        try:
            target = site or chosen[0].site
            return either([self._guarded(binding, target) for binding in chosen])
        finally:
            self._depth -= 1

    def _Subscript(self, node: ast.Subscript, site: Site) -> Value:
        base = self.value(node.value, site)
        index = self.value(node.slice, site)
        return self._item(base, index)

    def _item(self, base: Value, index: Value) -> Value:
        if base == Value("name", "os.environ"):
            return Value("env", str(index.literal)) if index.is_constant else UNKNOWN
        if base.kind == "tuple" and index.is_constant and isinstance(index.literal, int):
            if -len(base.parts) <= index.literal < len(base.parts):
                return base.parts[index.literal]
            return UNKNOWN
        if base.kind == "dict" and index.is_constant:
            known = base.keyword(str(index.literal))
            if known is not None:
                return known
        if base.kind == "either":
            return either([self._item(part, index) for part in base.parts])
        if base.kind == "when":
            inner = self._item(base.parts[1], index)
            return make("when", parts=(base.parts[0], inner), literal=base.literal)
        if base.kind == "method" and base.name == "parse_known_args":
            return Value("namespace") if index == constant(0) else UNKNOWN
        return make("item", parts=(base, index))

    # --- parameters -----------------------------------------------------------------------

    def _parameter(self, scope: Scope, name: str) -> Value:
        index = scope.parameters.index(name)
        if scope.is_method and index == 0 and name in ("self", "cls") and scope.parent is not None:
            return Value("instance", scope.parent.name)
        default = self._default(scope, name)
        if self._collecting or self._depth > DEEPEST:
            return Value("parameter", name)
        key = scope.name.removesuffix(".__init__") if scope.is_method else scope.name
        callers = self.callers.get(key, [])
        if default is not None and default.kind == "option":
            return default
        if not callers or len(callers) > MOST_CALLERS:
            return make("parameter", name, (default,) if default is not None else ())
        self._depth += 1
        try:
            found = [self._passed(caller, scope, name, index, default) for caller in callers]
        finally:
            self._depth -= 1
        return either(found)

    def _default(self, scope: Scope, name: str) -> Value | None:
        given = scope.defaults.get(name)
        option = None
        if scope.decorators and any(is_click(node) for node, _ in scope.decorators):
            option = self.options.get(name)
        if option is not None:
            return make("option", name, (option.default,))
        return None if given is None else self.value(*given)

    def _passed(
        self, caller: Caller, scope: Scope, name: str, index: int, default: Value | None
    ) -> Value:
        for keyword in caller.keywords:
            if keyword.arg == name:
                return self.value(keyword.value, caller.site)
        position = index - (1 if scope.is_method else 0)
        if index < scope.positional and 0 <= position < len(caller.arguments):
            if any(isinstance(item, ast.Starred) for item in caller.arguments[: position + 1]):
                return UNKNOWN
            passed = caller.arguments[position]
            return passed if isinstance(passed, Value) else self.value(passed, caller.site)
        if caller.is_open:
            return UNKNOWN
        return default if default is not None else UNKNOWN
