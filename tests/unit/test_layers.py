"""The way of a job is one direction: what may import what, and what a command may load."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests import imports
from tests.imports import PACKAGE, ROOT, imports_of, is_inside, module_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


# What each room may import of the others, at any time and for any purpose, types too. Above and
# below: nothing here imports what stands further down in this table.
LOOSE = ("diagnostics", "errors", "files", "interruption", "resources")
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "diagnostics": (),
    "errors": ("diagnostics",),
    "files": ("errors",),
    "interruption": (),
    "resources": ("errors",),
    "ddp": (),
    "slurm": LOOSE,
    "launchers": (*LOOSE, "slurm"),
    "jobfile": (*LOOSE, "slurm", "launchers"),
    "cluster": (*LOOSE, "slurm", "launchers", "jobfile"),
    "script": (*LOOSE, "slurm", "launchers", "jobfile", "cluster"),
    "reading": (*LOOSE, "slurm"),
    "lint": (*LOOSE, "slurm", "launchers", "jobfile", "cluster", "script", "reading"),
    "importer": (*LOOSE, "slurm", "launchers", "jobfile", "cluster", "script", "reading"),
    "sandbox": (*LOOSE, "slurm", "launchers", "jobfile", "cluster", "script", "reading"),
    "cli": (
        *LOOSE,
        "slurm",
        "launchers",
        "jobfile",
        "cluster",
        "script",
        "reading",
        "lint",
        "importer",
        "sandbox",
    ),
    "api": (*LOOSE, "jobfile", "cluster", "script", "lint", "cli"),
    "__main__": ("cli",),
}

# Everything before slurm/live/ is pure: no process, no cluster, no terminal, no torch.
PURE = (
    "cluster",
    "diagnostics",
    "errors",
    "files",
    "importer",
    "jobfile",
    "launchers",
    "lint",
    "reading",
    "resources",
    "script",
    "slurm.answers",
    "slurm.directives",
    "slurm.grammars",
    "slurm.options",
    "slurm.quoting",
    "slurm.request",
    "slurm.unquoting",
)
NEVER_IN_PURE = (
    "asyncio",
    "rich",
    "slurmgen.cli",
    "slurmgen.sandbox",
    "slurmgen.slurm.live",
    "subprocess",
    "torch",
    "typer",
)

# The only places where each of these is imported, however late.
ONLY_IN = {
    "jinja2": ("script.render", "script.templates.errors", "script.templates.reads"),
    "typer": ("cli.parser", "cli.commands.init"),
    "torch": ("ddp",),
    "tree_sitter": ("reading.shell", "importer"),
    "tree_sitter_bash": ("reading.shell",),
    "subprocess": ("slurm.live", "sandbox", "sandbox.rehearsal", "ddp"),
}


def is_part(path: Path, parts: tuple[str, ...]) -> bool:
    """Whether a file is one of these parts, or inside one: `jobfile`, `script.plan`."""
    return any(is_inside(module_name(path), f"slurmgen.{part}") for part in parts)


SOURCES = sorted(PACKAGE.rglob("*.py"))
every_source = pytest.mark.parametrize("path", SOURCES, ids=module_name)


def complaints(path: Path, banned: tuple[str, ...]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: imports {module}"
        for module, line in imports_of(path)
        if any(is_inside(module, name) for name in banned)
    ]


def graph() -> dict[str, set[str]]:
    """What each module imports of the others; of the package itself only the version is asked."""
    modules = {module_name(path): path for path in SOURCES}
    found: dict[str, set[str]] = {}
    for module, path in modules.items():
        named = set()
        for imported, _ in imports_of(path):
            name = imported
            while name not in modules and "." in name:
                name = name.rpartition(".")[0]
            named.add(name)
        found[module] = {name for name in named & set(modules) if name not in (module, "slurmgen")}
    del found["slurmgen"]
    return found


def circles(imports: Mapping[str, Iterable[str]]) -> list[frozenset[str]]:
    """The largest sets of modules of which each reaches each other (Tarjan's algorithm)."""
    found: list[frozenset[str]] = []
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        waiting.append(module)
        for other in sorted(imports[module]):
            if other not in number:
                visit(other)
            if other in waiting:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            start = waiting.index(module)
            members = frozenset(waiting[start:])
            del waiting[start:]
            if len(members) > 1:
                found.append(members)

    for module in sorted(imports):
        if module not in number:
            visit(module)
    return found


def room_of(module: str) -> str:
    """`jobfile` for slurmgen.jobfile.job, `api` for slurmgen.api."""
    return module.split(".")[1]


def test_a_room_imports_what_is_below_it() -> None:
    wrong: dict[str, list[str]] = {}
    for module, imported in graph().items():
        room = room_of(module)
        for other in sorted(imported):
            if room_of(other) not in (room, *MAY_IMPORT[room]):
                wrong.setdefault(module.removeprefix("slurmgen."), []).append(
                    other.removeprefix("slurmgen.")
                )
    assert wrong == {}


def test_the_rooms_stand_in_layers() -> None:
    """No circle is possible between rooms that keep to the table."""
    assert circles({room: MAY_IMPORT[room] for room in MAY_IMPORT}) == []
    assert {room_of(module) for module in graph()} == set(MAY_IMPORT)


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert [sorted(ring) for ring in circles(graph())] == []


def test_few_modules_are_loose_at_the_top() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 8


def test_what_a_circle_is() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a", "c"]}) == [frozenset("bc")]
    assert circles({"a": ["b"], "b": []}) == []


@pytest.mark.parametrize("path", [p for p in SOURCES if is_part(p, PURE)], ids=module_name)
def test_a_pure_part_starts_nothing(path: Path) -> None:
    assert complaints(path, NEVER_IN_PURE) == []


@every_source
def test_costly_imports_stand_in_one_place(path: Path) -> None:
    banned = tuple(name for name, parts in ONLY_IN.items() if not is_part(path, parts))
    assert complaints(path, banned) == []


@pytest.mark.parametrize("path", [p for p in SOURCES if is_part(p, ("ddp",))], ids=module_name)
def test_the_entrypoint_needs_torch_and_the_standard_library_only(path: Path) -> None:
    allowed = {*sys.stdlib_module_names, "torch"}
    assert [
        f"{path.relative_to(ROOT)}:{line}: imports {module}"
        for module, line in imports_of(path)
        if not is_inside(module, "slurmgen.ddp")
        and module not in ("slurmgen", "slurmgen.__version__")
        and module.partition(".")[0] not in allowed
    ] == []


def test_what_an_import_statement_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "ROOT", tmp_path)
    path = tmp_path / "slurmgen" / "spec" / "job.py"
    path.parent.mkdir(parents=True)
    path.write_text("import a.b\nfrom slurmgen import slurm\nfrom . import x\nfrom ..y import z\n")
    assert [found.module for found in imports_of(path)] == [
        "a.b",
        "slurmgen.slurm",
        "slurmgen.spec.x",
        "slurmgen.y.z",
    ]
