"""A Python program as a whole: its file, the local modules it imports, and the facts of both."""

from __future__ import annotations

import ast
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.reading.programs.evaluate import Evaluator
from slurmgen.reading.programs.gather import Gatherer, conditions
from slurmgen.reading.programs.roles import is_rank_name, names_rank
from slurmgen.reading.programs.sources import MAIN, Unreadable, local_modules, unit
from slurmgen.reading.programs.values import Value, alternatives, truth, unset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.reading.programs.facts import Argument, Call, Condition, EnvRead, EnvWrite
    from slurmgen.reading.programs.scopes import Scope, Site
    from slurmgen.reading.programs.sources import Unit
    from slurmgen.reading.programs.values import Present


class Program:
    """A Python file and the local modules it imports; facts are of all of them, in source order.

    Where `readable` is False (no Python, too large, not there) `error` says why and every other
    fact is empty; `is_too_much`: it may well be Python. Whose file a fact is of its `place.path`
    tells.
    """

    def __init__(self, path: str, units: tuple[Unit, ...], missing: tuple[str, ...]) -> None:
        self.path = path
        self.readable = bool(units)
        self.error = ""
        self.is_too_much = False
        self.units = units
        self.missing = missing
        self._evaluator = Evaluator(units)
        parts = [Gatherer(item, self._evaluator) for item in units]
        self.calls = tuple(call for part in parts for call in part.calls)
        self.env_reads = tuple(item for part in parts for item in part.reads())
        self.env_writes = tuple(item for part in parts for item in part.writes())
        self.arguments = tuple(item for part in parts for item in part.arguments())
        self.imports = tuple(item for part in parts for item in part.imports())

    # --- what rules ask -----------------------------------------------------------------

    @property
    def text(self) -> str:
        return self.units[0].text if self.units else ""

    @property
    def tree(self) -> ast.Module:
        return self.units[0].tree if self.units else ast.Module([], [])

    @property
    def modules(self) -> dict[str, str]:
        """The local modules that are read too: dotted name -> path."""
        return {item.name: str(item.path) for item in self.units[1:]}

    def called(self, *names: str) -> Iterator[Call]:
        """The calls of these dotted names; a name that ends with a dot stands for all below it."""
        for call in self.calls:
            if any(
                call.name == name or (name.endswith(".") and call.name.startswith(name))
                for name in names
            ):
                yield call

    def methods(self, *names: str) -> Iterator[Call]:
        """The calls of attributes with these names, whatever they belong to."""
        return (call for call in self.calls if call.method in names and call.receiver is not None)

    def reads(self, *names: str) -> Iterator[EnvRead]:
        return (read for read in self.env_reads if read.name in names)

    def writes(self, *names: str) -> Iterator[EnvWrite]:
        return (write for write in self.env_writes if write.name in names)

    def uses(self, *packages: str) -> bool:
        """Whether one of these packages (``torch``, ``lightning.fabric``) is imported."""
        return any(
            item.name == name or item.name.startswith(f"{name}.")
            for item in self.imports
            for name in packages
        )

    @cached_property
    def words(self) -> frozenset[str]:
        """Every name and attribute that is used."""
        return frozenset().union(*(item.table.words for item in self.units))

    def value(self, node: ast.expr, site: Site) -> Value:
        """What an expression of the program is; see slurmgen/reading/programs/values.py."""
        return self._evaluator.value(node, site)

    def argument(self, dest: str) -> Argument | None:
        """A command line option by its dest."""
        return next((item for item in self.arguments if item.dest == dest), None)

    def is_reached(self, call: Call, present: Present = unset) -> bool:
        """Whether a call may run: its tests may hold, and its function is used somewhere.

        present: whether an environment variable is set where the program runs.
        """
        for condition in call.conditions:
            if truth(condition.test, present) not in (None, condition.holds):
                return False
        scope: Scope | None = call.site.scope
        while scope is not None and scope.kind != "module":
            if scope.kind == "function" and not self._is_used(scope):
                return False
            scope = scope.parent
        return True

    def _is_used(self, scope: Scope) -> bool:
        name = scope.name.rpartition(".")[2]
        if name in self.words or name.startswith(("__", "<lambda")) or scope.decorators:
            return True
        if scope.unit == MAIN and self._is_library:
            return True
        # A framework may call any method of an object.
        owner = scope.owner
        return owner is not None and owner.name.rpartition(".")[2] in self.words

    @cached_property
    def _is_library(self) -> bool:
        """Whether the file itself runs nothing: who runs its functions isn't known then."""
        if self.words & {"Fire", "LightningCLI"}:
            return True
        calls = [site for _, site in self.units[0].table.calls if site.scope.kind == "module"]
        return not calls

    def by_rank(self, call: Call) -> bool:
        """Whether only some ranks make a call: a test, a decorator or every caller says so."""
        return self._by_rank(call.conditions, call.site.scope, set())

    def _by_rank(self, conditions: tuple[Condition, ...], scope: Scope, seen: set[str]) -> bool:
        for condition in conditions:
            named = any(is_rank_name(name) for name in condition.names)
            if named or names_rank(condition.test):
                return True
        if scope.kind != "function":
            return False
        for node, site in scope.decorators:
            value = self.value(node.func if isinstance(node, ast.Call) else node, site)
            if any(names_rank(Value("name", part.name)) for part in alternatives(value)):
                return True
        if scope.name in seen:
            return True
        seen.add(scope.name)
        callers = self._evaluator.callers.get(scope.name, [])
        return bool(callers) and all(
            self._by_rank(self._conditions(caller.site), caller.site.scope, seen)
            for caller in callers
        )

    def callers(self, scope: Scope) -> int:
        """From how many places of the program a function is called."""
        return len(self._evaluator.callers.get(scope.name, []))

    def sites_of_callers(self, scope: Scope) -> list[Site]:
        """The places that call a function of the program."""
        return [caller.site for caller in self._evaluator.callers.get(scope.name, [])]

    def scope_of(self, value: Value) -> Scope | None:
        """The function or class of the program that a value names."""
        return self._evaluator.scope_of(value)

    def scope_named(self, name: str) -> Scope | None:
        """The function or class of the program with this dotted name."""
        return self._evaluator.scope_of(Value("function", name))

    def class_of(self, value: Value) -> Scope | None:
        """The class of the program that a value is an instance of."""
        if value.kind == "instance":
            return self.scope_named(value.name)
        return None

    # --- gathering ----------------------------------------------------------------------

    def _conditions(self, site: Site) -> tuple[Condition, ...]:
        return conditions(self._evaluator, site)


def read(path: Path | str, text: str | None = None) -> Program:
    """The program in a file; `text` in its place if given. Never raises: see Program.readable."""
    try:
        main = unit(MAIN, Path(path), text)
        modules, missing = local_modules(main)
        return Program(str(path), (main, *modules.values()), missing)
    except Unreadable as error:
        program = Program(str(path), (), ())
        program.error = str(error)
        program.is_too_much = error.is_too_much
    except RecursionError:
        program = Program(str(path), (), ())
        program.error = "nested too deeply"
        program.is_too_much = True
    return program
