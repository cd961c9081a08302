"""A launcher is one module and one partial: everything else asks it, and never says its name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from slurmgen import launchers
from slurmgen.importer import import_script
from slurmgen.jobfile.source import parse_yaml
from slurmgen.reading.script import BatchScript
from slurmgen.sandbox.rehearsal.shape import rehearsed
from slurmgen.script.pipeline import plan_job, render_job
from slurmgen.script.placement import seats
from slurmgen.script.render import summary
from tests.copied import copy, slurmgen

ROOT = Path(__file__).resolve().parents[3]


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
