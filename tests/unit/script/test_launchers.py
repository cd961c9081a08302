"""A launcher is one module and one partial: everything else asks it, and never says its name."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from slurmgen import launchers
from slurmgen.ddp.launch import identity
from slurmgen.jobfile.job import JobSpec
from slurmgen.resources import templates_dir

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "slurmgen"

# What SLURMGEN_LAUNCHER may say; the entrypoint can't import launchers, and is held to them below.
EXCEPTION = PACKAGE / "ddp/launch/identity.py"
NAMES: set[object] = {*launchers.NAMES}


def test_every_module_and_every_partial_is_of_a_launcher() -> None:
    modules = {p.stem for p in (PACKAGE / "launchers").glob("*.py")} - {"__init__"}
    assert modules == set(launchers.NAMES)
    partials = {p.name for p in (templates_dir() / "partials").glob("task-*")}
    ranked = [one for one in launchers.every() if not one.is_one_process]
    assert partials == {Path(one.partial).name for one in ranked}


@pytest.mark.parametrize("name", launchers.NAMES)
def test_a_launcher_says_all_that_is_asked_of_it(name: str) -> None:
    launcher = launchers.find(name)
    assert launcher.name == name
    assert launcher.ranks in get_args(launchers.Ranks)
    assert launcher.entrypoint in identity.LAUNCHERS
    assert launcher.about
    assert launcher.how or launcher.is_one_process
    assert set(launcher.seated_under) <= set(launcher.rendezvous)


def test_there_is_a_launcher_for_each_way_of_making_ranks() -> None:
    made = {ranks: launchers.with_ranks(ranks).entrypoint for ranks in get_args(launchers.Ranks)}
    assert made == {
        launchers.TASKS: identity.STEP,
        launchers.AGENT: identity.AGENT,
        launchers.PROGRAM: identity.FORKS,
        launchers.ONE: identity.ALONE,
    }
    # The stand-in of a rehearsal is plain sh.
    probe = (PACKAGE / "sandbox/rehearsal/shims/probe.sh").read_text(encoding="utf-8")
    assert f'[ "${{SLURMGEN_LAUNCHER-}}" = {identity.FORKS} ]' in probe


def test_the_schema_offers_every_launcher() -> None:
    schema = JobSpec.model_json_schema()["properties"]["launcher"]
    assert tuple(schema["enum"]) == launchers.NAMES
    assert schema["default"] == launchers.DEFAULT


def names_in(node: ast.AST) -> set[str]:
    found = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
    return {value for value in found if value in launchers.NAMES}


def is_about_launchers(node: ast.AST) -> bool:
    words = (getattr(n, "attr", None) or getattr(n, "id", None) for n in ast.walk(node))
    return any(word in ("launcher", "launchers", "Launcher") for word in words)


def says_one(node: ast.AST) -> bool:
    """Whether this says a launcher's name as one, and not that of the program or of a role."""
    match node:
        # A comparison, or what is chosen by it.
        case ast.Compare() | ast.Subscript():
            return is_about_launchers(node) and bool(names_in(node))
        case ast.Assign(targets=[target], value=value):
            return is_about_launchers(target) and bool(names_in(value))
        case ast.keyword(arg="launcher"):
            return bool(names_in(node))
        # A list or a table of them.
        case ast.Tuple(elts=inner) | ast.List(elts=inner) | ast.Set(elts=inner):
            return len({n.value for n in inner if isinstance(n, ast.Constant)} & NAMES) > 2
        case ast.Dict(keys=inner):
            return len({n.value for n in inner if isinstance(n, ast.Constant)} & NAMES) > 1
        # What is made with one as its first argument.
        case ast.Call(args=[ast.Constant(value=first), *_]):
            return first in NAMES and ast.unparse(node.func) in ("Started", "Parts", "find")
    return False


def said_in(tree: ast.AST) -> list[int]:
    return [getattr(node, "lineno", 0) for node in ast.walk(tree) if says_one(node)]


# Written by a test, from the registry.
GENERATED = PACKAGE / "jobfile/given.py"
ELSEWHERE = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.parent.name != "launchers" and path not in (EXCEPTION, GENERATED)
]


def test_no_other_module_says_a_launchers_name() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}"
        for path in ELSEWHERE
        for line in said_in(ast.parse(path.read_text(encoding="utf-8")))
    ] == []
    partials = templates_dir() / "partials"
    for path in sorted(templates_dir().rglob("*.j2")):
        if path.parent != partials or not path.name.startswith("task-"):
            text = path.read_text(encoding="utf-8")
            assert "launcher ==" not in text
            assert "launcher !=" not in text


@pytest.mark.parametrize(
    "text",
    [
        'if plan.launcher == "plain": pass',
        'if "spawn" != launcher: pass',
        'x = spec.launcher in ("torchrun", "spawn")',
        'HOW = {"srun": 1, "torchrun": 2}',
        'names: Literal["srun", "torchrun", "plain"]',
        'Started("plain", text)',
        'plan(launcher="srun")',
        'how = {"srun": ""}[plan.launcher]',
        'launcher = "plain"',
    ],
)
def test_how_a_name_would_be_said(text: str) -> None:
    assert said_in(ast.parse(text))
