"""`render --check` and `--write` over the job files of a repository, and the hooks that call it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen import __version__
from slurmgen.cli.commands import scripts

if TYPE_CHECKING:
    from slurmgen.script.heading import Heading

ROOT = Path(__file__).resolve().parents[2]
GOOD = "nodes: 2\ngpus_per_node: 4\ntime: 1h\ncommand: python train.py\n"
WRONG = "nodes: 2\ngpus_per_nod: 4\ncommand: python train.py\n"


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command with the checkout's slurmgen, in `folder`."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def slurmgen(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(folder, sys.executable, "-m", "slurmgen", *arguments)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Two job files with scripts, and one that is rendered when it is submitted."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "jobs").mkdir()
    for name in ("a", "b", "unrendered"):
        (tmp_path / "jobs" / f"{name}.yaml").write_text(GOOD)
    done = slurmgen(tmp_path, "render", "--write", "jobs/a.yaml", "jobs/b.yaml")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("slurmgen: 2 scripts written, 0 scripts up to date\n")
    return tmp_path


def test_a_folder_that_has_not_drifted(repo: Path) -> None:
    for folder in (["jobs"], ["."], []):
        done = slurmgen(repo, "render", "--check", *folder)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == "slurmgen: 2 scripts up to date, 1 job file without a script\n"


def test_what_has_drifted_is_shown_with_one_line_to_mend_it(repo: Path) -> None:
    (repo / "jobs/b.yaml").write_text(GOOD.replace("nodes: 2", "nodes: 3"))
    before = (repo / "jobs/b.sbatch").read_text()
    done = slurmgen(repo, "render", "--check", "jobs")
    assert done.returncode == 1
    assert done.stdout.startswith("--- jobs/b.sbatch\n+++ rendered from jobs/b.yaml\n@@ ")
    assert "-#SBATCH --nodes=2\n+#SBATCH --nodes=3\n" in done.stdout
    assert 'slurmgen-stamp: {"' not in done.stdout
    assert done.stderr == (
        "slurmgen: jobs/b.sbatch has drifted from jobs/b.yaml: "
        "the job file has changed since it was rendered\n"
        "slurmgen: 1 script out of date, 1 script up to date, 1 job file without a script\n"
        "  = fix: slurmgen render --write jobs\n"
    )
    assert (repo / "jobs/b.sbatch").read_text() == before

    assert slurmgen(repo, "render", "--write", "jobs").returncode == 0
    assert slurmgen(repo, "render", "--check", "jobs").returncode == 0
    assert not (repo / "jobs/unrendered.sbatch").exists()


def test_an_edited_script_is_told_apart(repo: Path) -> None:
    script = repo / "jobs/b.sbatch"
    script.write_text(script.read_text().replace("--nodes=2", "--nodes=4"))
    done = slurmgen(repo, "render", "--check", "jobs/b.yaml")
    assert (
        "jobs/b.sbatch has drifted from jobs/b.yaml: the script was edited since it was rendered\n"
    ) in done.stderr
    done = slurmgen(repo, "render", "jobs/b.yaml", "--check", "jobs/b.sbatch")
    assert "the script was edited since it was rendered\n" in done.stderr


def test_what_only_another_slurmgen_would_render_is_shown(repo: Path) -> None:
    """Nothing but the stamp differs then."""
    script = repo / "jobs/b.sbatch"
    script.write_text(script.read_text().replace('"nodes": "2"', '"nodes": "3"'))
    done = slurmgen(repo, "render", "--check", "jobs/b.yaml")
    assert done.returncode == 1
    assert '+# slurmgen-stamp: {"' in done.stdout


def test_comments_of_a_job_file_change_nothing(repo: Path) -> None:
    job = repo / "jobs/b.yaml"
    job.write_text("# For the paper.\n" + job.read_text())
    assert slurmgen(repo, "render", "--check", "jobs").returncode == 0


def test_a_job_file_that_is_named_must_have_a_script(repo: Path) -> None:
    done = slurmgen(repo, "render", "jobs/a.yaml", "jobs/unrendered.yaml", "--check")
    assert done.returncode == 1
    assert done.stdout.startswith("--- /dev/null\n")
    assert "slurmgen: jobs/unrendered.sbatch is missing" in done.stderr


def test_a_wrong_job_file_keeps_no_other_from_being_checked(repo: Path) -> None:
    (repo / "jobs/a.yaml").write_text(WRONG)
    (repo / "jobs/b.yaml").write_text(GOOD.replace("1h", "2h"))
    done = slurmgen(repo, "render", "--check", "jobs/a.yaml", "jobs/b.yaml")
    assert done.returncode == 2
    assert "jobs/a.yaml:2:1: error: unknown key" in done.stderr
    assert "+#SBATCH --time=02:00:00" in done.stdout


def test_each_script_is_checked_for_the_cluster_that_it_names(repo: Path) -> None:
    (repo / "clusters").mkdir()
    for name in ("east", "west"):
        (repo / f"clusters/{name}.yaml").write_text(f"defaults: {{comment: {name}}}\n")
        done = slurmgen(repo, "render", "jobs/a.yaml", "-c", name, "-o", f"jobs/a-{name}.sbatch")
        assert done.returncode == 0, done.stderr
    done = slurmgen(repo, "render", "--check", "jobs")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "4 scripts up to date" in done.stderr
    east = (repo / "jobs/a-east.sbatch").read_text()
    assert east != (repo / "jobs/a-west.sbatch").read_text()
    (repo / "jobs/a-east.sbatch").write_text(east + "sleep 1\n")
    done = slurmgen(repo, "render", "--check", "jobs")
    assert (done.returncode, done.stdout.count("\n-")) == (1, 1)
    assert "-sleep 1\n" in done.stdout
    assert slurmgen(repo, "render", "--check", "jobs", "-c", "west").returncode == 1


def test_a_script_of_another_version_is_told_apart(repo: Path) -> None:
    script = repo / "jobs/a.sbatch"
    version = __version__
    present = script.read_text().replace(f'"slurmgen": "{version}"', '"slurmgen": "0.0.1"')
    script.write_text(present)
    done = slurmgen(repo, "render", "--check", "jobs/a.yaml")
    assert done.returncode == 1
    assert f"rendered from jobs/a.yaml by slurmgen 0.0.1, and this is {version}" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["jobs/a.yaml", "jobs/b.yaml"],
        ["jobs/a.yaml", "jobs/b.yaml", "-o", "x"],
        ["jobs/a.yaml", "jobs/b.yaml", "--check", "jobs/a.sbatch"],
        ["jobs/a.yaml", "--write", "--check"],
        ["jobs/a.yaml", "--write", "-o", "x"],
        ["jobs/a.yaml", "-o", "x", "--check"],
        ["-", "--check"],
    ],
)
def test_what_has_no_meaning_is_refused(repo: Path, arguments: list[str]) -> None:
    done = slurmgen(repo, "render", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "fix:" in done.stderr


def test_the_hooks_in_a_real_repository(
    repo: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Real git and real pre-commit, with the entries of .pre-commit-hooks.yaml."""
    program = shutil.which("pre-commit")
    if program is None or shutil.which("git") is None:
        pytest.skip("needs pre-commit and git, which are not installed")
    hooks = tmp_path_factory.mktemp("hooks")
    # pre-commit installs a hook's repository from the index; where there is none, what it would
    # install is this interpreter's slurmgen.
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    text = text.replace("language: python", "language: system")
    text = text.replace("entry: slurmgen", f"entry: {sys.executable} -m slurmgen")
    (hooks / ".pre-commit-hooks.yaml").write_text(text)
    for folder in (hooks, repo):
        git(folder, "init", "-q")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "start")
    revision = git(hooks, "rev-parse", "HEAD").strip()
    (repo / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {hooks}\n  rev: {revision}\n"
        "  hooks: [{id: slurmgen-render-check}, {id: slurmgen-lint}]\n"
    )
    git(repo, "add", "-A")

    def hook() -> subprocess.CompletedProcess[str]:
        os.environ["PRE_COMMIT_HOME"] = str(hooks / "cache")
        try:
            return run(repo, program, "run", "--all-files", "--color=never")
        finally:
            del os.environ["PRE_COMMIT_HOME"]

    done = hook()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Passed") == 2

    (repo / "jobs/a.yaml").write_text(GOOD.replace("nodes: 2", "nodes: 3"))
    done = hook()
    assert done.returncode == 1
    assert "jobs/a.sbatch has drifted" in done.stdout
    assert "+#SBATCH --nodes=3" in done.stdout

    assert slurmgen(repo, "render", "--write").returncode == 0
    assert hook().returncode == 0

    script = repo / "jobs/b.sbatch"
    script.write_text(script.read_text().replace("--time=01:00:00", "--time=24"))
    done = hook()
    assert done.returncode == 1
    assert "time-in-minutes SG110" in done.stdout


def git(folder: Path, *arguments: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    done = run(folder, "git", *name, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_heading_of_a_folder_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").touch()
    jobs = [tmp_path / f"job{number}.yaml" for number in range(30)]
    for job in jobs:
        job.write_text(GOOD)
    names = [str(job) for job in jobs]
    assert scripts.run(names, write=True) == 0
    read: list[Path] = []

    def counted(script: Path) -> Heading | None:
        read.append(script)
        return heading(script)

    heading = scripts._heading
    monkeypatch.setattr(scripts, "_heading", counted)
    assert scripts.run(names, write=False) == 0
    assert sorted(read) == sorted(job.with_suffix(".sbatch") for job in jobs)
