"""Who runs each function of a program: by a call, or as the target of a process."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.programs.torch_names import SPAWN
from slurmgen.reading.programs.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from slurmgen.reading.programs.scopes import Site

_XLA_SPAWNS = ("xmp.spawn", "xla_multiprocessing.spawn")


class Caller(NamedTuple):
    """A place that runs a function; a Value among the arguments is already known."""

    site: Site
    arguments: tuple[ast.expr | Value, ...]
    keywords: tuple[ast.keyword, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether ``*`` or ``**`` passes what isn't seen."""
        return any(keyword.arg is None for keyword in self.keywords) or any(
            isinstance(item, ast.Starred) for item in self.arguments
        )


def caller(
    node: ast.Call, site: Site, value: Callable[[ast.expr, Site], Value]
) -> tuple[str, Caller] | None:
    """The function of the program that a call runs, by its dotted name, and how."""
    function = value(node.func, site)
    if function.kind == "function":
        return function.name, Caller(site, tuple(node.args), tuple(node.keywords))
    name = function.name
    is_spawn = name == SPAWN or name.endswith(_XLA_SPAWNS)
    if not is_spawn and name.rpartition(".")[2] not in ("Process", "Thread"):
        return None
    named = {item.arg: item.value for item in node.keywords}
    # spawn(fn, args, ...), Process(group, target, name, args)
    target = named.get("fn" if is_spawn else "target")
    if target is None and is_spawn and node.args:
        target = node.args[0]
    passed = named.get("args")
    if passed is None and is_spawn and len(node.args) > 1:
        passed = node.args[1]
    started = value(target, site) if target is not None else Value("unknown")
    if started.kind != "function":
        return None
    arguments: list[ast.expr | Value] = [Value("spawn")] if is_spawn else []
    if isinstance(passed, (ast.Tuple, ast.List)):
        arguments += [_process_index(item, site) or item for item in passed.elts]
    elif passed is not None:
        arguments.append(ast.Starred(passed))
    return started.name, Caller(site, tuple(arguments))


def _process_index(node: ast.expr, site: Site) -> Value | None:
    """What ``for i in range(n): Process(target=f, args=(i,))`` passes is what spawn would."""
    if not isinstance(node, ast.Name):
        return None
    for loop in site.loops:
        target, iterable = loop.target, loop.iterable
        if isinstance(target, ast.Name) and target.id == node.id and isinstance(iterable, ast.Call):
            function = iterable.func
            if isinstance(function, ast.Name) and function.id == "range":
                return Value("spawn")
    return None
