"""The stamp of a rendered script: what it says, and what is made of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from slurmgen import Job
from slurmgen.cli.commands import import_script as verb
from slurmgen.errors import InvalidInput
from slurmgen.importer import import_script
from slurmgen.jobfile.source import parse_yaml
from slurmgen.script import stamp, stamp_reader
from slurmgen.script.heading import read_heading
from slurmgen.script.pipeline import plan_job, render_job
from slurmgen.script.render import MAX_SCRIPT_BYTES

ROOT = Path(__file__).resolve().parents[3]
SITES = sorted((ROOT / "tests/golden/clusters").glob("*.yaml"))
KEPT = """\
nodes: 2
gpus_per_node: 4
launcher: torchrun
env:
  TOKEN: s3cret
  DATA: ${SCRATCH}/it's # here
command: |
  python prepare.py
  python train.py
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(KEPT)
    return path


def rendered(job: Path, **options: Any) -> str:
    return render_job(plan_job(str(job), **options))


def data(text: str) -> Any:
    return parse_yaml(text, "job.yaml").data


def imported(script: str) -> Any:
    return data(import_script(script, name="job.sbatch").text)


def read(script: str) -> stamp_reader.Stamp:
    said = stamp_reader.read(script)
    assert said is not None
    return said


def test_it_is_one_line_over_the_directives(job: Path) -> None:
    script = rendered(job)
    lines = script.split("\n")
    assert stamp.line_of(script) == 4
    assert lines[4].startswith("#SBATCH ")
    assert script.count("slurmgen-stamp") == 1
    assert lines[3].isascii()
    assert read_heading(script) == (read(script).version, "job.yaml", "job", "generic")


def test_no_value_of_a_variable_is_said_twice(job: Path) -> None:
    script = rendered(job)
    assert script.count("s3cret") == 1
    line = script.split("\n")[stamp.line_of(script) - 1]
    assert "prepare.py" not in line
    assert "SCRATCH" not in line


def test_comments_may_change(job: Path) -> None:
    """No comment of the body is needed to know a script again."""
    planned = plan_job(str(job))
    plain = stamp.without(render_job(planned))
    head, body = plain[: plain.index("#SBATCH")], plain[plain.index("#SBATCH") :]
    worded = head + re.sub(r"(?m)^( *)# .*$", r"\1# Worded otherwise.", body)
    assert worded != plain
    script = stamp.stamped(worded, planned.plan, planned.given, own=planned.source.data)
    assert imported(script) == data(KEPT)


@pytest.mark.parametrize("path", SITES, ids=lambda path: path.stem)
def test_what_a_cluster_adds_is_no_key(path: Path) -> None:
    script = rendered(path, cluster=path.stem)
    assert imported(script) == data(path.read_text())
    assert read(script).cluster == path.stem


def test_a_default_of_the_profile_is_no_key(job: Path) -> None:
    (job.parent / "clusters").mkdir()
    (job.parent / "clusters/here.yaml").write_text("defaults: {partition: fast}\n")
    script = rendered(job, cluster="here")
    assert "#SBATCH --partition=fast" in script
    assert imported(script) == data(KEPT)


def test_what_set_changes_is_in_the_keys_and_named(job: Path) -> None:
    script = rendered(job, overrides=["nodes=3", "env.TOKEN=other"])
    said = read(script)
    assert said.overrides == ("env.TOKEN", "nodes")
    assert said.job == stamp.hash_of(data(KEPT))
    found = import_script(script, name="job.sbatch")
    assert data(found.text)["nodes"] == "3"
    assert data(found.text)["env"]["TOKEN"] == "other"
    assert [note.text for note in found.notes] == [
        "rendered with --set of env.TOKEN, nodes, which is in the job file"
    ]


def test_an_edited_script_is_read_as_it_stands(job: Path) -> None:
    script = rendered(job).replace("#SBATCH --nodes=2", "#SBATCH --nodes=3")
    script = script.replace("--nodes=2 --ntasks=2", "--nodes=3 --ntasks=3")
    script = script.replace("--nnodes=2", "--nnodes=3").replace("8 ranks on 2", "12 ranks on 3")
    said = read(script)
    assert not stamp_reader.is_as_rendered(script, said)
    found = import_script(script, name="job.sbatch")
    assert data(found.text)["nodes"] == "3"
    assert found.notes[0] == (4, "changed since it was rendered from job.yaml")


def test_a_script_without_a_stamp_is_read_as_before(job: Path) -> None:
    found = import_script(stamp.without(rendered(job)), name="job.sbatch")
    expected = {"job_name": "job", "cpus_per_task": "4", **data(KEPT)}
    assert data(found.text) == expected
    assert found.notes == ()


def test_the_same_keys_give_the_same_stamp(job: Path) -> None:
    first = rendered(job)
    job.write_text("# A comment.\n" + KEPT.replace("nodes: 2", "nodes:   '2'"))
    assert rendered(job) == first
    elsewhere = job.parent / "other" / "job.yaml"
    elsewhere.parent.mkdir()
    elsewhere.write_text(KEPT)
    assert rendered(elsewhere) == first


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("script: |\n  #!/bin/bash -l\n  set -e\n  srun x\n", "an interpreter"),
        ("script: |\n  cat <<'X'\n  # slurmgen-stamp: {}\n", "a here-document left open"),
        ("script: 'srun x \\'\n", "a line that goes on"),
        ("command: x\nrequeue: {}\ntime: 2h\n", "a job that comes back"),
        ("ddp: train.py\nargs: ['']\nrequeue: {max_restarts: 3}\ntime: 2h\n", "both"),
        ("command: x\nsetup: {modules: [a], commands: 'umask 7'}\n", "a text for a list"),
        ("command: x\ncomment: '# slurmgen: ignore[all] ü'\n", "a comment in it"),
        ("command: |\n  cat <<'COMMAND'\n  x\n  COMMAND\n", "another delimiter"),
    ],
    ids=lambda text: text if ":" not in text else "",
)
def test_jobs_of_all_kinds(job: Path, text: str, what: str) -> None:
    job.write_text(text)
    script = rendered(job)
    assert imported(script) == data(text), what
    assert "ignore[" not in script.split("\n")[3].partition("#")[2].partition("#")[2]


def test_variables_of_a_template_and_a_head_of_its_own(job: Path) -> None:
    (job.parent / "templates").mkdir()
    (job.parent / "templates/own.sbatch.j2").write_text(
        '{% extends "slurmgen/job.sbatch.j2" %}\n{% block header %}\n# Ours.\n{% endblock %}\n'
        "{% block setup %}\necho {{ vars.name }} {% for n in vars.many %}{{ n }} {% endfor %}\n"
        "{% endblock %}\n"
    )
    text = "template: own\nvars: {name: a b, many: [1, true, x]}\n" + KEPT
    job.write_text(text)
    script = rendered(job)
    assert script.split("\n")[1] == "# Ours."
    assert imported(script) == data(text)
    heading = read_heading(script)
    assert heading is not None
    assert heading.source == "job.yaml"


def test_a_template_that_leaves_out_the_command_says_no_keys(job: Path) -> None:
    (job.parent / "templates").mkdir()
    (job.parent / "templates/own.sbatch.j2").write_text(
        '{% extends "slurmgen/job.sbatch.j2" %}\n'
        "{% block launch %}\nsrun ./something else\n{% endblock %}\n"
    )
    job.write_text("template: own\n" + KEPT)
    script = rendered(job)
    said = read(script)
    assert said.keys is None
    assert stamp_reader.is_as_rendered(script, said)
    # It is kept as it stands.
    assert "script" in imported(script)


def test_a_job_of_python(job: Path) -> None:
    script = Job(nodes=2, env={"A": "b"}, command=["python", "x.py"], requeue=False).render()
    assert imported(script) == {
        "nodes": "2",
        "env": {"A": "b"},
        "command": ["python", "x.py"],
        "requeue": "false",
    }


def test_import_points_to_the_job_file_beside(
    job: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(job.parent)
    script = job.with_suffix(".sbatch")
    script.write_text(rendered(job))
    assert verb.run("job.sbatch") == 0
    out, err = capsys.readouterr()
    assert data(out) == data(KEPT)
    assert err == "job.sbatch: it was rendered from job.yaml, which has its comments too\n"
    job.write_text(KEPT + "time: 1h\n")
    assert verb.run("job.sbatch") == 0
    assert capsys.readouterr().err == ""


def test_a_script_that_its_stamp_makes_too_long_is_refused(job: Path) -> None:
    job.write_text("script: |\n  #\n")
    room = MAX_SCRIPT_BYTES - len(stamp.without(rendered(job))) - 1
    job.write_text(f"script: |\n  #{'x' * room}\n")
    with pytest.raises(InvalidInput, match="1 error"):
        rendered(job)
