"""A launcher is one module and one partial: everything else asks it, and never says its name."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from slurmgen import launchers
from slurmgen.ddp.launch import identity
from slurmgen.importer import import_script
from slurmgen.jobfile.job import JobSpec
from slurmgen.jobfile.source import parse_yaml
from slurmgen.reading.script import BatchScript
from slurmgen.resources import templates_dir
from slurmgen.sandbox.rehearsal.shape import rehearsed
from slurmgen.script.pipeline import plan_job, render_job
from slurmgen.script.placement import seats
from slurmgen.script.render import summary
from tests.copied import copy, slurmgen

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


JOBS = {
    "command": "command: python train.py ${X}\n",
    "words": 'command: [python, train.py, "a  b", $X]\n',
    "ddp": 'ddp: train.py\nargs: [--name, it\'s, "${X}"]\n',
    "more": "env: {A: 'b # ${HOME}', TOKEN: s3cret}\nsetup: {venv: .venv, commands: [umask 7]}\n"
    "sbatch: {hint: nomultithread}\ncommand: |\n  python train.py\n  echo done\n",
}


@pytest.mark.parametrize("program", JOBS)
@pytest.mark.parametrize("name", launchers.NAMES)
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_job_of_every_launcher_goes_the_whole_way(
    name: str, nodes: int, program: str, tmp_path: Path
) -> None:
    launcher = launchers.find(name)
    nodes = 1 if launcher.is_one_process else nodes
    job = tmp_path / "job.yaml"
    text = f"nodes: {nodes}\ngpus_per_node: 2\ntime: 1h\nlauncher: {name}\n{JOBS[program]}"
    job.write_text(text)

    planned = plan_job(str(job))
    assert planned.plan.world_size == (1 if launcher.is_one_process else 2 * nodes)
    assert len(list(seats(planned.plan))) == planned.plan.world_size
    assert summary(planned.plan)

    script = render_job(planned)
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=60)
    if program == "ddp":
        assert f"export SLURMGEN_LAUNCHER={launcher.entrypoint} " in script
    assert script.count("s3cret") == text.count("s3cret")

    shape = rehearsed(BatchScript(script).requests).shape
    assert (shape.node_count, shape.node_groups[0].gres) == (nodes, "gpu:2")

    imported = import_script(script, name="job.sbatch")
    assert imported.notes == ()
    assert parse_yaml(imported.text, "job.yaml").data == parse_yaml(text, "job.yaml").data


def test_to_render_costs_no_launcher_but_the_jobs_own() -> None:
    code = (
        "import sys; from slurmgen.cli.commands import render; "
        "render.run(['configs/jobs/torchrun.yaml']); "
        "print([m for m in sys.modules if m.startswith('slurmgen.launchers.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1:] == ["['slurmgen.launchers.torchrun']"], done.stderr


NEW_MODULE = """
from slurmgen.launchers import PROGRAM, Launcher


class Mpirun(Launcher):
    name = "mpirun"
    about = "a task per node, where mpirun starts a rank per GPU"
    how = "srun starts one mpirun per node"
    ranks = PROGRAM
    entrypoint = "spawn"

    def program(self, world, nodes, rdzv):
        return (f"mpirun -n {world.nproc_per_task}",)


LAUNCHER = Mpirun()
"""
NEW_PARTIAL = """
# An mpirun on each node.
task() {
{% include "slurmgen/partials/port.sbatch.j2" %}
  exec {{ program_lines | join(" \\\n    ") }}
}
"""


@pytest.fixture(scope="module")
def with_a_fifth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with one launcher more, by CONTRIBUTING's row."""
    tree = copy(tmp_path_factory.mktemp("fifth"))
    (tree / "slurmgen" / "launchers" / "mpirun.py").write_text(NEW_MODULE)
    registry = tree / "slurmgen" / "launchers" / "__init__.py"
    text = registry.read_text(encoding="utf-8")
    assert text.count('"plain"]') == 1
    registry.write_text(text.replace('"plain"]', '"plain", "mpirun"]'), encoding="utf-8")
    (tree / "templates" / "partials" / "task-mpirun.sbatch.j2").write_text(NEW_PARTIAL)
    return tree


def test_a_fifth_launcher_is_a_module_a_partial_and_its_name(
    with_a_fifth: Path, tmp_path: Path
) -> None:
    def run(*arguments: str) -> str:
        done = slurmgen(with_a_fifth, *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    text = (
        "nodes: 2\ngpus_per_node: 2\ntime: 1h\nlauncher: mpirun\nenv: {A: b}\n"
        "command: [echo, hello]\n"
    )
    (tmp_path / "job.yaml").write_text(text)
    run("render", "job.yaml", "-o", "job.sbatch")
    script = (tmp_path / "job.sbatch").read_text()
    assert "srun starts one mpirun per node." in script
    assert "exec mpirun -n 2" in script
    assert "\n3     1     1 " in run("plan", "job.yaml")
    assert run("run", "job.yaml") == "hello\n"
    imported = run("import", "job.sbatch")
    assert parse_yaml(imported, "x").data == parse_yaml(text, "x").data
    schema = json.loads(run("schema"))["properties"]["launcher"]
    assert schema["enum"][-1] == "mpirun"
    assert "mpirun: a task per node" in schema["description"]
    (tmp_path / "new").mkdir()
    run("init", "new", "--launcher", "mpirun", "--program", "train.py", "--yes")
    assert "launcher: mpirun  # a task per node, where" in (tmp_path / "new/job.yaml").read_text()


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
