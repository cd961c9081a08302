"""The way of a job is one direction: what may import what, and what a command may load."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "slurmgen"
QUICKSTART = "configs/jobs/quickstart.yaml"

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

# What `slurmgen render` may load of slurmgen: these modules, and those inside these packages.
RENDER_MAY_LOAD = (
    "slurmgen.__main__",
    "slurmgen.cli.main",
    "slurmgen.script.agreement",
    "slurmgen.cluster",
    "slurmgen.slurm.answers",
    "slurmgen.script.pipeline",
    "slurmgen.cli.commands.render",
    "slurmgen.diagnostics",
    "slurmgen.slurm.directives",
    "slurmgen.errors",
    "slurmgen.files",
    "slurmgen.launchers",
    "slurmgen.script.plan",
    "slurmgen.jobfile.project",
    "slurmgen.slurm.quoting",
    "slurmgen.script.render",
    "slurmgen.cli.planning",
    "slurmgen.cli.quick",
    "slurmgen.cli.report",
    "slurmgen.cli.verbs",
    "slurmgen.resources",
    "slurmgen.jobfile.source",
    "slurmgen.jobfile",
    "slurmgen.slurm.grammars",
    "slurmgen.slurm.options",
    "slurmgen.script.stamp",
)
RENDER_NEVER_LOADS = (
    "asyncio",
    "rich",
    "ruamel",
    "slurmgen.ddp",
    "slurmgen.lint",
    "slurmgen.reading.programs",
    "slurmgen.sandbox",
    "slurmgen.reading.shell",
    "slurmgen.slurm.live",
    "subprocess",
    "torch",
    "tree_sitter",
    "typer",
)
# Without a job file or a profile; those cost what they cost.
LINT_NEVER_LOADS = (
    "asyncio",
    "jinja2",
    "pydantic",
    "slurmgen.script.pipeline",
    "slurmgen.ddp",
    "slurmgen.script.plan",
    "slurmgen.script.render",
    "slurmgen.sandbox",
    "slurmgen.slurm.live",
    "subprocess",
    "torch",
)


class Import(NamedTuple):
    """One imported name: `module` is as long as the statement says it."""

    module: str
    line: int


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> list[Import]:
    """Every import of a file, wherever it stands, those for type checkers too."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            found += [Import(f"{origin}.{alias.name}", node.lineno) for alias in node.names]
    return found


def is_inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


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


def test_the_package_itself_imports_nothing() -> None:
    """But what it offers to Python, when that is asked for."""
    found = [module for module, _ in imports_of(PACKAGE / "__init__.py")]
    assert found == ["sys", "slurmgen.api"]
    loaded = loaded_by("-c", "import slurmgen")
    assert [m for m in loaded if is_inside(m, "slurmgen")] == ["slurmgen"]


def test_what_an_import_statement_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / "slurmgen" / "spec" / "job.py"
    path.parent.mkdir(parents=True)
    path.write_text("import a.b\nfrom slurmgen import slurm\nfrom . import x\nfrom ..y import z\n")
    assert [found.module for found in imports_of(path)] == [
        "a.b",
        "slurmgen.slurm",
        "slurmgen.spec.x",
        "slurmgen.y.z",
    ]


def loaded_by(*arguments: str) -> list[str]:
    """The modules that a Python process imports, in that order."""
    finished = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONSAFEPATH": ""},
    )
    names = []
    other = []
    for line in finished.stderr.splitlines():
        if line.startswith("import time:"):
            names.append(line.rpartition("|")[2].strip())
        else:
            other.append(line)
    assert finished.returncode == 0, "\n".join(other)
    return names


def test_render_loads_only_what_it_needs() -> None:
    # What the interpreter loads by itself (a .pth file of some other package) is not ours.
    at_startup = set(loaded_by("-c", "pass"))
    loaded = [m for m in loaded_by("-m", "slurmgen", "render", QUICKSTART) if m not in at_startup]
    assert [m for m in loaded if any(is_inside(m, name) for name in RENDER_NEVER_LOADS)] == []

    ours = [module for module in loaded if is_inside(module, "slurmgen")]
    unexpected = [
        module
        for module in ours
        if module not in ("slurmgen", "slurmgen.cli", "slurmgen.cli.commands", "slurmgen.script")
        and module not in ("slurmgen.script.templates", "slurmgen.slurm")
        and not any(is_inside(module, name) for name in RENDER_MAY_LOAD)
    ]
    assert unexpected == []
    assert "slurmgen.script.render" in ours


def test_lint_loads_only_what_it_needs(tmp_path: Path) -> None:
    script = tmp_path / "job.sbatch"
    script.write_text("#!/bin/bash\n#SBATCH --time=1:00:00\nsrun hostname\n")
    at_startup = set(loaded_by("-c", "pass"))
    # Typer, which reads the command line, has needs of its own. Where the version is given,
    # nothing has to ask this machine's sbatch for it.
    code = f"from slurmgen.cli.commands import lint; lint.run([{str(script)!r}], slurm='22.05')"
    loaded = loaded_by("-c", code)
    found = [m for m in loaded if any(is_inside(m, name) for name in LINT_NEVER_LOADS)]
    assert set(found) - at_startup == set()
    assert "slurmgen.lint.engine" in loaded
    assert "slurmgen.lint.documentation" not in loaded


def test_the_entrypoint_runs_where_nothing_else_is_installed() -> None:
    """-S: no site-packages, and so neither pydantic nor torch."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import slurmgen.ddp"
    loaded = loaded_by("-S", "-c", code)
    assert [m for m in loaded if is_inside(m, "slurmgen") and not is_inside(m, "slurmgen.ddp")] == [
        "slurmgen"
    ]
