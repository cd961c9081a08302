"""How many faults the quick tests notice: `scripts/mutants`, which loads this by `-p`.

A mutant is the package with one thing changed inside one function: a comparison, a condition, a
constant, an argument, a result, a statement. They are drawn by a seed from all that MUTATED has.

The tests are collected once; each mutant is a forked copy of this process in which the code of that
function is exchanged. Only the tests of that part of the package run (TESTS), those with the name
of the module first, until one fails: the number is rather too low. What a function does while its
module is loaded has been done by then, and counts as not noticed.
"""

from __future__ import annotations

import ast
import copy
import gc
import importlib
import os
import random
import resource
import types
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[1]
MUTATED = ("script/render.py", "script/plan.py", "script/pipeline.py", "jobfile", "lint")
# A mutant that runs on for ever is noticed, at this many seconds of CPU time.
LIMIT_S = 300
# How a copy ends in which the mutant itself could not be made.
BROKEN = 90
# Whose tests look at a part of the package.
TESTS = {
    "script": ("tests/golden", "tests/unit/script", "tests/unit/cluster", "tests/property"),
    "jobfile": ("tests/unit/jobfile", "tests/golden", "tests/unit/test_api", "tests/property"),
    "lint": ("tests/lint",),
}
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


class Mutant(NamedTuple):
    """One change: of the node with this number in its file, as `ast.walk` counts."""

    path: Path
    number: int
    line: int
    kind: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.kind}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for statement in function.body
        for node in ast.walk(statement)
    }
    # Docstrings, and annotations of local names.
    silent = {
        id(part)
        for node in ast.walk(tree)
        for whole in (
            [node.value]
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            else [node.annotation]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        for part in ast.walk(whole)
    }
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in inside and id(node) not in silent:
            for kind, _ in _changes(node):
                yield Mutant(path, number, getattr(node, "lineno", 0), kind)


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """What can be changed in a node, each with what does it in place."""
    if isinstance(node, ast.Compare):
        opposite = _OPPOSITE[type(node.ops[0])]
        yield f"compares by {opposite.__name__}", lambda: node.ops.__setitem__(0, opposite())
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"joined by {other.__name__}", lambda: setattr(node, "op", other())
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield "condition negated", lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield f"{not value}", lambda: setattr(node, "value", not value)
        elif isinstance(value, int):
            yield f"{value + 1}", lambda: setattr(node, "value", value + 1)
        elif isinstance(value, str):
            yield f"{value + 'X'!r}", lambda: setattr(node, "value", value + "X")
    elif isinstance(node, ast.Call) and len(node.args) > 1:

        def swap() -> None:
            node.args[0], node.args[1] = node.args[1], node.args[0]

        if not any(isinstance(argument, ast.Starred) for argument in node.args[:2]):
            yield "arguments swapped", swap
    elif isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield "returns None", lambda: setattr(node, "value", ast.Constant(None))
    elif isinstance(node, (ast.Expr, ast.AugAssign)):
        if isinstance(node, ast.AugAssign) or isinstance(node.value, ast.Call):
            yield "statement removed", lambda: _remove(node)


def _remove(node: ast.Expr | ast.AugAssign) -> None:
    if isinstance(node, ast.Expr):
        node.value = ast.Constant(None)
    else:
        # `a += b` becomes `a += type(b)()`, which adds nothing.
        node.value = ast.Call(
            ast.Call(ast.Name("type", ast.Load()), [copy.deepcopy(node.value)], []), [], []
        )


def exchange(mutant: Mutant) -> None:
    """Give the functions of this process the code of the mutant."""
    tree = ast.parse(mutant.path.read_text(encoding="utf-8"))
    for number, node in enumerate(ast.walk(tree)):
        if number == mutant.number:
            dict(_changes(node))[mutant.kind]()
            break
    ast.fix_missing_locations(tree)
    importlib.import_module(
        ".".join(mutant.path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    )
    # As the module itself was compiled.
    code = compile(tree, str(mutant.path), "exec", dont_inherit=True)
    new = {(one.co_firstlineno, one.co_name): one for one in _codes(code)}
    for function in gc.get_objects():
        if type(function) is types.FunctionType:  # isinstance asks whatever there is for its class
            old = function.__code__
            if old.co_filename == str(mutant.path):
                function.__code__ = new.get((old.co_firstlineno, old.co_name), old)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _looking_at(items: list[pytest.Item], mutant: Mutant) -> list[pytest.Item]:
    folders = TESTS[mutant.path.relative_to(ROOT / "slurmgen").parts[0]]
    name = mutant.path.stem.replace("_", "-")

    def rank(item: pytest.Item) -> tuple[bool, int]:
        named = name in item.nodeid.replace("_", "-")
        return not named, next(i for i, at in enumerate(folders) if item.nodeid.startswith(at))

    return sorted((item for item in items if item.nodeid.startswith(folders)), key=rank)


class _Run:
    """Takes the place of the loop over tests."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        config = session.config
        files = [ROOT / "slurmgen" / part for part in MUTATED]
        paths = sorted(p for f in files for p in ([f] if f.is_file() else f.rglob("*.py")))
        everything = [mutant for path in paths for mutant in mutants_of(path)]
        number = int(config.getoption("--mutants"))
        chosen = random.Random(config.getoption("--seed")).sample(everything, number)
        say = config.get_terminal_writer().line
        say(f"{number} of {len(everything)} mutants, {len(session.items)} tests")
        if by := self._noticed_by(None, session):
            pytest.exit(f"fails without a mutant: {by}", returncode=1)
        missed = 0
        for done, mutant in enumerate(chosen, 1):
            by = self._noticed_by(mutant, session)
            missed += not by
            if not by:
                say(f"not noticed: {mutant}")
            elif config.get_verbosity() >= 0:  # scripts/test-quick is quiet, -v says more
                say(f"{mutant}: noticed by {by}")
            if done % 10 == 0 or done == number:
                say(f"{done - missed} of {done} noticed")
        return True

    def _noticed_by(self, mutant: Mutant | None, session: pytest.Session) -> str:
        """The first test that fails, or what else ended it; empty where all pass."""
        there, here = os.pipe()
        child = os.fork()
        if child:
            os.close(here)
            with open(there, encoding="utf-8") as told:
                by = told.read()
            status = os.waitpid(child, 0)[1]
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) == BROKEN:
                pytest.exit(f"{mutant} could not be tried: {by}", returncode=1)
            return by or (f"its end with status {status}" if status else "")
        status = BROKEN
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
            session.config.pluginmanager.unregister(name="terminalreporter")
            items = session.items
            if mutant is not None:
                exchange(mutant)
                items = _looking_at(items, mutant)
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    break
            os.write(here, self.failed.encode())
            status = 0
        except Exception as error:
            os.write(here, repr(error).encode())
        finally:
            os._exit(status)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants", type=int, default=100, help="how many are drawn")
    parser.addoption("--seed", type=int, default=1, help="which")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Run())
