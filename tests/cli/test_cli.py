"""The commands as a person types them: output, exit status, and what is left on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOOD = "nodes: 2\ngpus_per_node: 4\ntime: 1h\ncommand: python train.py\n"
WRONG = "nodes: 2\ngpus_per_nod: 4\ncommand: python train.py\n"


class Folder:
    """A project folder, and slurmgen run in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("job.yaml", GOOD)
        self.write("wrong.yaml", WRONG)

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def slurmgen(
        self, *arguments: str, stdin: str = "", path: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        if path is not None:
            environment["PATH"] = path
        return subprocess.run(
            [sys.executable, "-m", "slurmgen", *arguments],
            cwd=self.path,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def files(self) -> set[str]:
        return {str(p.relative_to(self.path)) for p in self.path.rglob("*") if p.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_render_prints_the_script_and_nothing_else(folder: Folder) -> None:
    done = folder.slurmgen("render", "job.yaml")
    assert done.returncode == 0
    assert done.stdout.startswith("#!/bin/bash\n")
    assert "#SBATCH --job-name=job\n" in done.stdout
    assert done.stderr == ""


def test_typer_and_the_short_way_print_the_same(folder: Folder) -> None:
    short = folder.slurmgen("render", "job.yaml", "--set", "nodes=3")
    long = folder.slurmgen("render", "--set=nodes=3", "--", "job.yaml")
    assert (long.returncode, long.stdout) == (0, short.stdout)
    assert "--nodes=3" in short.stdout


def test_a_job_file_on_standard_input(folder: Folder) -> None:
    done = folder.slurmgen("render", "-", stdin=GOOD)
    assert done.returncode == 0
    assert "from job.yaml" in done.stdout
    assert folder.slurmgen("render", "-", stdin="nodes: x").stderr.startswith("<stdin>:1:")


def test_output_goes_to_a_file(folder: Folder) -> None:
    done = folder.slurmgen("render", "job.yaml", "-o", "job.sbatch")
    assert (done.returncode, done.stdout) == (0, "")
    assert folder.slurmgen("render", "job.yaml").stdout == (folder.path / "job.sbatch").read_text()


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["render", "wrong.yaml"], 2),
        (["render", "wrong.yaml", "-o", "job.sbatch"], 2),
        (["submit", "wrong.yaml"], 2),
        (["run", "wrong.yaml"], 2),
        (["plan", "wrong.yaml", "--svg", "plan.svg"], 2),
        (["render", "missing.yaml", "-o", "job.sbatch"], 3),
        (["render", "job.yaml", "-o", "no/such/folder/job.sbatch"], 3),
        (["render", "job.yaml", "--check", "missing.sbatch"], 3),
        (["render", "job.yaml", "-o", "a", "--check", "b"], 2),
        (["render", "job.yaml", "--cluster", "nowhere"], 2),
        (["render", "job.yaml", "--cluster", "./nowhere.yaml"], 3),
        (["render", "job.yaml", "--set", "nodes"], 2),
        (["render", "job.yaml", "--set", "nodes=many"], 2),
        (["render", "job.yaml", "--set", "template=nosuch"], 2),
        (["render", "."], 3),
        (["render"], 2),
        (["rendr", "job.yaml"], 2),
        (["render", "job.yaml", "--no-such-option"], 2),
        (["sandbox", "exec", "--name", "nosuch", "--", "sinfo"], 3),
    ],
)
def test_errors_have_a_status_no_traceback_and_leave_nothing(
    folder: Folder, arguments: list[str], status: int
) -> None:
    before = folder.files()
    done = folder.slurmgen(*arguments)
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr
    assert folder.files() == before


def test_an_error_names_place_reason_and_fix(folder: Folder) -> None:
    assert folder.slurmgen("render", "wrong.yaml").stderr == (
        'wrong.yaml:2:1: error: unknown key "gpus_per_nod" [unknown-key SG003]\n'
        "  |\n"
        "2 | gpus_per_nod: 4\n"
        "  | ^~~~~~~~~~~~\n"
        '  = fix: write "gpus_per_node"\n'
    )


def test_a_file_that_is_not_text(folder: Folder) -> None:
    (folder.path / "job.yaml").write_bytes(b"nodes: 2\ncommand: \xff\n")
    done = folder.slurmgen("render", "job.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith("job.yaml:2:10: error: byte 0xff is not UTF-8 text")


def test_check_finds_drift(folder: Folder) -> None:
    folder.slurmgen("render", "job.yaml", "-o", "job.sbatch")
    same = folder.slurmgen("render", "job.yaml", "--check", "job.sbatch")
    assert (same.returncode, same.stdout, same.stderr) == (0, "", "")
    folder.write("job.yaml", GOOD.replace("nodes: 2", "nodes: 3"))
    script = (folder.path / "job.sbatch").read_text()
    drifted = folder.slurmgen("render", "job.yaml", "--check", "job.sbatch")
    assert drifted.returncode == 1
    assert "-#SBATCH --nodes=2\n+#SBATCH --nodes=3\n" in drifted.stdout
    assert "slurmgen render job.yaml -o job.sbatch" in drifted.stderr
    assert (folder.path / "job.sbatch").read_text() == script


def test_a_block_of_the_projects_own_template(folder: Folder) -> None:
    folder.write("pyproject.toml", "")
    folder.write("jobs/deep.yaml", GOOD)
    folder.write(
        "templates/job.sbatch.j2",
        '{% extends "slurmgen/job.sbatch.j2" %}\n'
        "{% block commands %}\n{{ super() }}\nnvidia-smi -L\n{% endblock %}\n",
    )
    done = folder.slurmgen("render", "jobs/deep.yaml")
    assert done.returncode == 0, done.stderr
    assert "\nnvidia-smi -L\n" in done.stdout
    assert "#SBATCH --nodes=2\n" in done.stdout


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% block x %}", "job.sbatch.j2:1:1: error:"),
        ('{% extends "slurmgen/job.sbatch.j2" %}\n{% block task %}{{ nosuch }}{% endblock %}',
         'templates/job.sbatch.j2:2:20: error: nothing is called "nosuch" here'),
        ('{% extends "slurmgen/job.sbatch.j2" %}{% block directives %}{% endblock %}',
         "has no --nodes=2 before its first command"),
        (('{% extends "slurmgen/job.sbatch.j2" %}{% block directives %}{{ super() }}'
         "#SBATCH --nodes=9\n{% endblock %}"), "says 9, not --nodes=2"),
        (('{% extends "slurmgen/job.sbatch.j2" %}{% block task %}'
         "{{ ().__class__.__base__.__subclasses__() }}{% endblock %}"), "unsafe"),
        ('{% extends "job.sbatch.j2" %}', 'extend the built-in one as "slurmgen/job.sbatch.j2"'),
        ('{% extends "slurmgen/job.sbatch.j2" %}\n{% block task %}{{ 1 / 0 }}{% endblock %}',
         "job.sbatch.j2:2:1: error: division by zero"),
        ('{% extends "slurmgen/job.sbatch.j2" %}{% block launch %}{% endblock %}',
         "the rendered script has no srun line"),
    ],
)  # fmt: skip
def test_a_wrong_template_is_named(folder: Folder, template: str, message: str) -> None:
    folder.write("templates/job.sbatch.j2", template)
    done = folder.slurmgen("render", "job.yaml")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_profile_of_the_project_comes_before_the_built_in_one(folder: Folder) -> None:
    folder.write("clusters/lumi.yaml", "gpus: {form: gpus-per-node}\nenv: {SITE: ours}\n")
    done = folder.slurmgen("render", "job.yaml", "--cluster", "lumi")
    assert done.returncode == 0, done.stderr
    assert "#SBATCH --gpus-per-node=4\n" in done.stdout
    assert "export SITE=ours\n" in done.stdout


def test_an_unverified_profile_says_so(folder: Folder) -> None:
    folder.write("job.yaml", GOOD + "qos: regular\naccount: m1_g\n")
    done = folder.slurmgen("render", "job.yaml", "--cluster", "perlmutter")
    assert done.returncode == 0, done.stderr
    assert "not verified" in done.stderr
    assert "not verified" not in done.stdout


def test_submit_without_slurm_names_the_ways_out(folder: Folder) -> None:
    done = folder.slurmgen("submit", "job.yaml", path=str(folder.path / "absent"))
    assert done.returncode == 3
    assert "sbatch is not on PATH" in done.stderr
    assert "slurmgen run" in done.stderr
    assert "slurmgen sandbox up" in done.stderr


def test_plan_as_a_table_and_as_a_picture(folder: Folder) -> None:
    table = folder.slurmgen("plan", "job.yaml")
    assert table.returncode == 0
    lines = table.stdout.splitlines()
    assert lines[2].split() == ["rank", "node", "local", "rank", "GPU", "CPUs"]
    assert lines[10].split() == ["7", "1", "3", "3", "1"]
    assert lines[-1] == "costs  at most 8.0 GPU-hours: 8 x 1.00 h"
    picture = folder.slurmgen("plan", "job.yaml", "--svg", "-")
    assert picture.stdout.startswith("<svg ")
    assert picture.stdout.count('class="cell"') == 8
    assert ">rank 7<" in picture.stdout


def test_a_pipe_that_closes_early_is_no_error(folder: Folder) -> None:
    folder.write("job.yaml", GOOD + "comment: " + "x" * 1000 + "\n")
    command = f"{sys.executable} -m slurmgen render job.yaml | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder.path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "#!/bin/bash\n"
    assert done.stderr == ""
