"""What people install slurmgen with: pipx, uv, a file that brings everything, pre-commit."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slurmgen import __version__
from tests.packaging.building import QUICKSTART, ROOT, run, unpacked

# All start with the wheel or the sdist, which one process builds.
pytestmark = pytest.mark.xdist_group("packaging")


def needs(*programs: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}, not installed")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "job.yaml").write_text(QUICKSTART.read_text())
    return folder


@pytest.fixture
def here(project: Path) -> str:
    """What the checkout renders."""
    return run(sys.executable, "-m", "slurmgen", "render", "job.yaml", cwd=project)


@pytest.mark.usefixtures("index")
def test_pipx_installs_the_command_and_its_manual(wheel: Path, project: Path, here: str) -> None:
    needs("pipx")
    home = project.parent
    folders = {f"PIPX_{name}": str(home / name) for name in ("HOME", "BIN_DIR", "MAN_DIR")}
    run("pipx", "install", wheel, cwd=project, HOME=str(home), **folders)
    program = home / "BIN_DIR" / "slurmgen"
    assert run(program, "--version", cwd=project) == f"slurmgen {__version__}\n"
    assert run(program, "render", "job.yaml", cwd=project) == here
    assert (home / "MAN_DIR" / "man1" / "slurmgen-render.1").exists()


@pytest.mark.usefixtures("index")
def test_uv_installs_the_command(wheel: Path, project: Path, here: str) -> None:
    needs("uv")
    home = project.parent
    folders = {
        name: str(home / name) for name in ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "UV_CACHE_DIR")
    }
    python = ("--no-python-downloads", "--python", sys.executable)
    run("uv", "tool", "install", *python, wheel, cwd=project, HOME=str(home), **folders)
    program = home / "UV_TOOL_BIN_DIR" / "slurmgen"
    assert run(program, "render", "job.yaml", cwd=project) == here
    # The extra that a login node must not get is not there.
    assert not list((home / "UV_TOOL_DIR").rglob("torch"))


@pytest.mark.usefixtures("index")
def test_one_file_runs_on_a_python_without_anything(project: Path, here: str) -> None:
    if importlib.util.find_spec("shiv") is None:
        pytest.skip("needs shiv, which is not installed")
    home = project.parent
    file = home / "slurmgen.pyz"
    venv = str(Path(sys.executable).parent.parent)
    run(ROOT / "scripts" / "zipapp", file, cwd=ROOT, VENV=venv)
    run(sys.executable, "-m", "venv", "--without-pip", home / "bare", cwd=home)
    python = home / "bare" / "bin" / "python"
    root = str(home / "unpacked")
    assert run(python, "-I", file, "render", "job.yaml", cwd=project, SHIV_ROOT=root) == here
    # What is compiled: pydantic, and the grammar of Bash.
    (project / "wrong.yaml").write_text("gpus_per_nod: 4\ncommand: x\n")
    refused = subprocess.run(
        [python, "-I", file, "render", "wrong.yaml"],
        cwd=project,
        env={**os.environ, "SHIV_ROOT": root},
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 2
    assert 'fix: write "gpus_per_node"' in refused.stderr
    (project / "job.sbatch").write_text(here)
    (project / "logs").mkdir()
    run(python, "-I", file, "lint", "job.sbatch", cwd=project, SHIV_ROOT=root)

    # On another kind of machine it says so, where it would fail somewhere inside pydantic.
    elsewhere = (
        "import platform, runpy, sys; platform.machine = lambda: 'riscv64'\n"
        "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    refused = subprocess.run(
        [python, "-I", "-c", elsewhere, file, "--version"],
        env={**os.environ, "SHIV_ROOT": root},
        capture_output=True,
        text=True,
    )
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "here is" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.usefixtures("index")
def test_pre_commit_installs_the_hooks_and_runs_them(sdist: Path, project: Path) -> None:
    """`language: python`: from a repository of slurmgen, into an environment of its own."""
    needs("git", "pre-commit")
    hooks = unpacked(sdist, project.parent / "slurmgen")
    home = {"HOME": str(project.parent), "PRE_COMMIT_HOME": str(project.parent / "cache")}

    def git(where: Path, *arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main")
        return run("git", *identity, *arguments, cwd=where, **home)

    git(hooks, "init", "-q")
    git(hooks, "add", "-A", "-f")
    git(hooks, "commit", "-q", "-m", "release")
    revision = git(hooks, "rev-parse", "HEAD").strip()
    (project / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {hooks}\n  rev: {revision}\n"
        "  hooks: [{id: slurmgen-render-check}, {id: slurmgen-lint}]\n"
    )
    run(sys.executable, "-m", "slurmgen", "render", "--write", "job.yaml", cwd=project)
    (project / "logs").mkdir()
    git(project, "init", "-q")
    git(project, "add", "-A")
    words = ("pre-commit", "run", "--all-files", "--color=never")
    passed = run(*words, cwd=project, **home)
    assert passed.count("Passed") == 2

    with (project / "job.yaml").open("a") as job:
        job.write("comment: again\n")
    drifted = subprocess.run(
        words, cwd=project, env={**os.environ, **home}, capture_output=True, text=True
    )
    assert drifted.returncode == 1
    assert "+#SBATCH --comment=again" in drifted.stdout
    # The hook's own slurmgen, not the one that runs this test.
    assert list((project.parent / "cache").rglob("slurmgen/cli/main.py"))
