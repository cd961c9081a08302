"""A project's own templates: what they may say, what is said of their faults, and upgrades."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JOB = "nodes: 2\ngpus_per_node: 4\ntime: 1h\ncommand: python train.py\n"
EXTENDS = '{% extends "slurmgen/job.sbatch.j2" %}\n'


class Project:
    """A folder with a job file and templates, and slurmgen run in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("pyproject.toml", "")
        self.write("job.yaml", JOB)

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def commands(self, *lines: str, name: str = "job") -> None:
        """A template that adds lines to the block `commands`."""
        body = "\n".join(["{% block commands %}", *lines, "{% endblock %}", ""])
        self.write(f"templates/{name}.sbatch.j2", EXTENDS + body)

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "slurmgen", *arguments],
            cwd=self.path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_vars_reach_a_template_as_what_they_are(project: Project) -> None:
    project.commands(
        "echo {{ vars.note }} {{ vars.keep }} {{ vars.tries + 1 }} {{ vars.seed }}",
        "{% for host in vars.hosts %}",
        "ping {{ host }}",
        "{% endfor %}",
        "all {{ vars.hosts }}",
        "{% if not vars.fast %}",
        "slow",
        "{% endif %}",
        name="mine",
    )
    project.write(
        "job.yaml",
        JOB + "template: mine\nvars:\n  note: it's; rm -rf $HOME\n  keep: true\n  fast: false\n"
        "  tries: 3\n  seed: 007\n  hosts: [a, b c]\n",
    )
    done = project("render", "job.yaml")
    assert done.returncode == 0, done.stderr
    shown = done.stdout[done.stdout.index("echo ") :].split("\n")
    # Every text is one word of Bash.
    assert shown[0] == 'echo "it\'s; rm -rf \\$HOME" true 4 007'
    assert shown[1:5] == ["ping a", "ping 'b c'", "all a 'b c'", "slow"]
    done = project("render", "job.yaml", "--set", "vars.tries=5")
    assert " true 6 007\n" in done.stdout


def test_macros_and_files_of_a_project(project: Project) -> None:
    project.write(
        "templates/parts/say.j2", "{% macro say(what) %}\necho {{ what }}\n{% endmacro %}\n"
    )
    project.commands('{% from "parts/say.j2" import say %}', "{{ say(vars.word) }}")
    project.write("job.yaml", JOB + "vars: {word: hello}\n")
    done = project("render", "job.yaml")
    assert done.returncode == 0, done.stderr
    assert "\necho hello\n" in done.stdout


@pytest.mark.parametrize(
    ("vars_", "place", "message", "fix"),
    [
        ("{a: 1, retris: 2}", "6:14", "no template reads vars.retris", "write retries"),
        ("{a: 1, zzz: 2}", "6:14", "no template reads vars.zzz", "remove it"),
        ("{a-b: 1}", "6:8", '"a-b" cannot be the name of a variable', "rename it"),
        ("{_a: 1}", "6:8", '"_a" cannot be the name', "rename it"),
        ("{a: {b: 1}}", "6:8", "a mapping in place of one value", "write one value"),
        ('{a: "x\\ny"}', "6:8", "the value holds a line break", "write it in one line"),
        ("[1]", "6:7", "a list in place of variables", "write NAME: value"),
    ],
)
def test_wrong_vars(project: Project, vars_: str, place: str, message: str, fix: str) -> None:
    project.commands("{{ vars.a }} {{ vars.retries | default(1) }}", name="mine")
    project.write("job.yaml", f"{JOB}template: mine\nvars: {vars_}\n")
    done = project("render", "job.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"job.yaml:{place}: error: {message}" in done.stderr
    assert f"fix: {fix}" in done.stderr


def test_vars_that_are_read_in_a_way_nobody_can_follow_are_taken_as_read(project: Project) -> None:
    project.commands("{% for name in vars %}", "echo {{ name }}", "{% endfor %}")
    project.write("job.yaml", JOB + "vars: {a: 1}\n")
    assert project("render", "job.yaml").returncode == 0


def test_vars_for_the_built_in_template_are_a_mistake(project: Project) -> None:
    project.write("job.yaml", JOB + "vars: {a: 1}\n")
    done = project("render", "job.yaml")
    assert done.returncode == 2
    assert "job.yaml:5:8: error: no template reads vars.a" in done.stderr


@pytest.mark.parametrize(
    ("lines", "place", "message", "fix"),
    [
        (["a", "{{ lancher }}"], "4:4", 'nothing is called "lancher" here', "write launcher"),
        (["{{ vars.tries }}"], "3:4", "the job file gives no vars.tries", "add tries: under vars:"),
        (["{% if %}"], "3:1", "Expected an expression", "slurmgen template show job"),
        (["", '{% include "part/x.j2" %}'], "4:13", 'there is no template "part/x.j2"',
         "write parts/x.j2"),
        (["{{ 1 / 0 }}"], "3:1", "division by zero", "slurmgen template show job"),
        (["{{ ''.__class__ }}"], "3:1", "access to attribute '__class__'", "slurmgen"),
        (["{% do directives.append('x') %}"], "3:1", "Encountered unknown tag 'do'", "slurmgen"),
        (["{{ directives.append('x') }}"], "3:1", "attribute 'append' of 'list'", "slurmgen"),
    ],
)  # fmt: skip
def test_a_fault_is_shown_in_the_template_and_where_it_was_chosen(
    project: Project, lines: list[str], place: str, message: str, fix: str
) -> None:
    project.write("templates/parts/x.j2", "")
    project.commands(*lines, name="mine")
    project.write("job.yaml", JOB + "template: mine\n")
    done = project("render", "job.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    first = done.stderr.split("\n")[0]
    assert first.startswith(f"templates/mine.sbatch.j2:{place}: error: ")
    assert message in first
    assert f"fix: {fix}" in done.stderr
    assert "= also: job.yaml:5:11\n" in done.stderr


def test_a_fault_in_an_included_file_is_shown_there(project: Project) -> None:
    project.write("templates/parts/x.txt", "fine\n{{ nonsense }}\n")
    project.commands('{% include "parts/x.txt" %}')
    done = project("render", "job.yaml")
    assert done.stderr.startswith("templates/parts/x.txt:2:4: error: nothing is called")


def test_a_template_that_changes_the_plan_is_named_with_its_folder(project: Project) -> None:
    project.write("templates/mine.sbatch.j2", EXTENDS + "{% block directives %}\n{% endblock %}\n")
    project.write("job.yaml", JOB + "template: mine\n")
    done = project("render", "job.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith("templates/mine.sbatch.j2:1:1: error: the rendered script has no")
    assert "= also: job.yaml:5:11\n" in done.stderr


def test_an_ejected_template_renders_the_same(project: Project) -> None:
    before = project("render", "job.yaml").stdout
    for arguments in (["job"], ["job", "--block", "commands"]):
        done = project("template", "eject", *arguments)
        assert (done.returncode, done.stdout) == (0, "templates/job.sbatch.j2\n"), done.stderr
        rendered = project("render", "job.yaml")
        assert (rendered.stdout, rendered.stderr) == (before, "")
        (project.path / "templates/job.sbatch.j2").unlink()


def test_an_ejected_template_is_never_overwritten(project: Project) -> None:
    project.commands("mine")
    text = (project.path / "templates/job.sbatch.j2").read_text()
    done = project("template", "eject", "job")
    assert (done.returncode, done.stdout) == (2, "")
    assert "exists, and is left as it is" in done.stderr
    assert (project.path / "templates/job.sbatch.j2").read_text() == text
    assert not (project.path / "templates/.ejected").exists()


def test_what_an_ejected_template_has_missed(project: Project) -> None:
    """As after an upgrade: the built-in text is another one than the one that was copied."""
    project("template", "eject", "job", "--block", "shell")
    path = project.path / "templates/job.sbatch.j2"
    kept = project.path / "templates/.ejected/job.shell.sbatch.j2"
    stamp, *rest = path.read_text().split("\n")
    digest = stamp.partition("sha256 ")[2][:16]
    older = stamp.replace(digest, "0" * 16).replace("slurmgen 0.", "slurmgen 0.0.", 1)
    path.write_text("\n".join([older, *rest]))
    kept.write_text(kept.read_text().replace("-eo pipefail", "-e"))

    rendered = project("render", "job.yaml")
    assert rendered.returncode == 0
    assert "templates/job.sbatch.j2 was ejected from slurmgen 0.0." in rendered.stderr
    assert "fix: slurmgen template show --diff job" in rendered.stderr
    listed = project("template", "list")
    assert "the built-in one has changed since" in listed.stdout

    shown = project("template", "show", "--diff", "job")
    assert shown.returncode == 1
    assert shown.stdout.startswith("--- the block shell of the built-in job, slurmgen 0.0.")
    assert "-set -e\n+set -eo pipefail\n" in shown.stdout

    merged = project("template", "eject", "--merged", "job")
    assert merged.returncode == 0, merged.stderr
    assert path.read_text().split("\n") == [stamp, *rest]
    assert project("render", "job.yaml").stderr == ""
    assert project("template", "show", "--diff", "job").returncode == 0


def test_listing_and_showing(project: Project) -> None:
    project.commands("echo", name="team/mine")
    rows = project("template", "list").stdout.split("\n")
    assert rows[0].split()[:2] == ["job", "built-in"]
    assert "team/mine  templates/team/mine.sbatch.j2  extends slurmgen/job; blocks: commands" in [
        " ".join(row.split()).replace(" ", "  ", 2) for row in rows
    ]
    assert project("template", "show", "team/mine").stdout.startswith(EXTENDS)
    builtin = (ROOT / "templates/job.sbatch.j2").read_text()
    assert project("template", "show", "job").stdout == builtin
    assert project("template", "show", "slurmgen/job").stdout == builtin


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "jop"], "did you mean job?"),
        (["show", "../pyproject"], 'there is no template "../pyproject"'),
        (["show", "--diff", "job"], "was not ejected"),
        (["eject", "nosuch"], "known: job"),
        (["eject", "job", "--block", "nosuch"], "its blocks: header"),
        (["eject", "job", "--merged"], "was not ejected"),
    ],
)
def test_what_there_is_not(project: Project, arguments: list[str], message: str) -> None:
    done = project("template", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert not (project.path / "templates").exists()


@pytest.mark.parametrize(
    "line",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.popen('touch pwned').read() }}",
        "{{ lipsum.__globals__ }}",
        "{{ vars.__class__ }}",
        "{{ self._TemplateReference__context.environment }}",
        "{% include '/etc/passwd' %}",
        "{% include '../../../../../../../etc/passwd' %}",
        "{% include 'link.j2' %}",
        "{% include 'folder/secret' %}",
        "{{ range(10**9) | list | length }}",
    ],
)
def test_a_stranger_s_template_reaches_nothing_but_its_project(
    project: Project, line: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("hidden from strangers")
    project.commands(line)
    (project.path / "templates" / "link.j2").symlink_to(outside / "secret")
    (project.path / "templates" / "folder").symlink_to(outside)
    done = project("render", "job.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "hidden" not in done.stderr
    assert "= fix: " in done.stderr
    assert not (project.path / "pwned").exists()


def test_the_folder_of_templates_may_be_shared(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project.commands("echo shared")
    folder = tmp_path_factory.mktemp("shared") / "templates"
    (project.path / "templates").rename(folder)
    (project.path / "templates").symlink_to(folder)
    assert "echo shared" in project("render", "job.yaml").stdout
