"""`slurmgen init`: what it writes, what it leaves alone, and whom it asks."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slurmgen import __version__
from slurmgen.jobfile.source import parse_yaml
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "slurmgen"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
WRITTEN = {
    "job.yaml",
    "job.sbatch",
    ".slurmgen/job.schema.json",
    ".pre-commit-config.yaml",
    ".github/workflows/slurmgen.yml",
}
SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=04:00:00
module load cuda/12.4
srun python train.py --lr 1e-3
"""


def slurmgen(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def files(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and ".git/" not in path.as_posix()
    }


def keys(folder: Path, name: str = "job.yaml") -> dict[str, object]:
    return parse_yaml((folder / name).read_text(), name).data


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def test_an_empty_project_has_all_that_its_own_checks_ask_for(project: Path) -> None:
    done = slurmgen(project, "init")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("job: 1 rank on 1 node")
    assert "there is no train.py yet" in done.stderr
    assert files(project) == WRITTEN
    assert slurmgen(project, "render", "--check", ".").returncode == 0
    linted = slurmgen(project, "lint", ".")
    assert (linted.returncode, linted.stdout) == (0, "")
    first = (project / "job.yaml").read_text().split("\n")[0]
    assert first == "# yaml-language-server: $schema=.slurmgen/job.schema.json"
    for name in (".pre-commit-config.yaml", ".github/workflows/slurmgen.yml"):
        assert f"slurmgen-torch=={__version__}" in (project / name).read_text()
    # Again, and nothing changes.
    before = {name: (project / name).read_bytes() for name in files(project)}
    again = slurmgen(project, "init", "--launcher", "torchrun")
    assert again.returncode == 0
    assert again.stderr.count("exists, and is left as it is") == len(WRITTEN)
    assert {name: (project / name).read_bytes() for name in files(project)} == before


def test_flags(project: Path) -> None:
    (project / "clusters").mkdir()
    (project / "clusters/here.yaml").write_text("defaults: {partition: fast}\n")
    done = slurmgen(
        project, "init", "--cluster", "here", "--launcher", "torchrun", "--program", "go.py",
        "--no-hooks", "--no-ci", "--templates",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert files(project) == {
        "clusters/here.yaml", "job.yaml", "job.sbatch", ".slurmgen/job.schema.json",
        "templates/job.sbatch.j2", "templates/.ejected/job.commands.sbatch.j2",
    }  # fmt: skip
    assert keys(project)["launcher"] == "torchrun"
    assert keys(project)["command"] == "python go.py"
    assert "#SBATCH --partition=fast" in (project / "job.sbatch").read_text()
    assert "slurmgen submit job.yaml -c here" in done.stderr
    assert slurmgen(project, "render", "--check").returncode == 0


@pytest.mark.parametrize(
    ("present", "setup"),
    [
        ({"uv.lock": "", ".venv/pyvenv.cfg": ""}, {"uv": "."}),
        ({"venv/pyvenv.cfg": ""}, {"venv": "venv"}),
        ({"environment.yml": "channels: [x]\nname: torch-env\n"}, {"conda": "torch-env"}),
        ({"environment.yml": "dependencies: []\n"}, None),
    ],
)
def test_the_environment_of_a_project(
    project: Path, present: dict[str, str], setup: dict[str, str] | None
) -> None:
    for name, text in {**present, "src/train.py": ""}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    done = slurmgen(project, "init")
    assert done.returncode == 0, done.stderr
    assert keys(project).get("setup") == setup
    assert keys(project)["command"] == "python src/train.py"


def test_the_one_batch_script_is_imported(project: Path) -> None:
    (project / "job.sbatch").write_text(SCRIPT)
    done = slurmgen(project, "init")
    assert done.returncode == 0, done.stderr
    # Its name is taken, and it is left alone.
    assert (project / "job.sbatch").read_text() == SCRIPT
    found = keys(project, "train.yaml")
    assert (found["nodes"], found["gpus_per_node"], found["time"]) == ("2", "4", "04:00:00")
    assert found["setup"] == {"modules": ["cuda/12.4"]}
    assert "# Imported from job.sbatch.\n" in (project / "train.yaml").read_text()
    assert "--nodes=2" in (project / "train.sbatch").read_text()


def test_of_several_scripts_one_is_named(project: Path) -> None:
    for name in ("a.sbatch", "b.sbatch"):
        (project / name).write_text(SCRIPT)
    done = slurmgen(project, "init")
    assert "there are 2 batch scripts (a.sbatch, b.sbatch); none is imported" in done.stderr
    (project / "job.yaml").unlink()
    (project / "job.sbatch").unlink()
    assert slurmgen(project, "init", "--from", "b.sbatch").returncode == 0
    assert keys(project)["nodes"] == "2"


def test_what_a_cluster_asks_for_is_said(project: Path) -> None:
    (project / "clusters").mkdir()
    (project / "clusters/here.yaml").write_text("required: {account: every job is charged}\n")
    done = slurmgen(project, "init", "-c", "here")
    assert done.returncode == 1
    assert "account" in done.stderr
    assert "fix: change it, then slurmgen render --write job.yaml -c here" in done.stderr
    assert "job.sbatch" not in files(project)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--launcher", "mpirun"],
        ["--cluster", "nowhere"],
        ["--from", "missing.sbatch"],
        ["--from", "README"],
        ["nosuch"],
    ],
)
def test_nothing_is_written_for_a_wrong_answer(project: Path, arguments: list[str]) -> None:
    (project / "README").write_text("hello\n")
    done = slurmgen(project, "init", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert files(project) == {"README"}


def test_nothing_stays_where_not_everything_can_be_written(project: Path) -> None:
    (project / ".github").write_text("a file in the way\n")
    done = slurmgen(project, "init")
    assert done.returncode == 3, done.stderr
    assert files(project) == {".github"}
    assert not (project / ".slurmgen").exists()


def test_an_entry_is_shown_where_pre_commit_is_there_already(project: Path) -> None:
    (project / ".pre-commit-config.yaml").write_text("repos: []\n")
    done = slurmgen(project, "init")
    assert "put this into .pre-commit-config.yaml, under repos:" in done.stderr
    assert "id: slurmgen-render-check" in done.stderr
    assert (project / ".pre-commit-config.yaml").read_text() == "repos: []\n"


def talk(folder: Path, answers: list[tuple[str, bytes]], *arguments: str) -> tuple[int, str]:
    """`slurmgen init` on a terminal: each answer is typed once its question is there.

    Ctrl-C is typed again where nothing happens: one that arrives just before Python begins to read
    interrupts nothing.
    """
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "init", *arguments], cwd=folder, env=ENVIRONMENT, stdin=slave, stdout=slave,
        stderr=slave, start_new_session=True, preexec_fn=_take_terminal,  # noqa: PLW1509
    )  # fmt: skip
    os.close(slave)
    seen = ""
    typed = b""
    waiting = list(answers)
    end = time.monotonic() + PATIENCE_S
    while True:
        while not select.select([master], [], [], 2)[0]:
            assert time.monotonic() < end, seen
            if typed == b"\x03":
                os.write(master, typed)
        try:
            more = os.read(master, 4096)
        except OSError:  # the terminal's other end is closed
            break
        if not more:
            break
        seen += more.decode()
        if waiting and waiting[0][0] in seen:
            seen_now, typed = waiting.pop(0)
            seen = seen.partition(seen_now)[2]
            os.write(master, typed)
    os.close(master)
    return process.wait(timeout=60), seen


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_person_is_asked(project: Path) -> None:
    questions = [
        ("Cluster profile", b"nosuch\n"),
        ("nosuch is none of them", b"generic\n"),
        ("Launcher", b"spawn\n"),
        ("Program", b"\n"),
    ]
    status, seen = talk(project, questions)
    assert status == 0, seen
    assert keys(project)["launcher"] == "spawn"
    assert keys(project)["command"] == "python train.py"
    assert files(project) == WRITTEN


def test_nobody_is_asked_who_said_yes(project: Path) -> None:
    status, _ = talk(project, [], "--yes")
    assert status == 0
    assert files(project) == WRITTEN


def test_ctrl_c_leaves_nothing(project: Path) -> None:
    status, seen = talk(project, [("Cluster profile", b"generic\n"), ("Launcher", b"\x03")])
    assert status == 130, seen
    assert "Traceback" not in seen
    assert files(project) == set()
