"""slurmgen run: a job on this machine, without Slurm."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen import launchers
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]
JOBS = ROOT / "configs" / "jobs"


def run(job: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(ROOT / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [sys.executable, "-m", "slurmgen", "run", str(job), *arguments],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_the_quickstart_trains(tmp_path: Path) -> None:
    done = run(JOBS / "quickstart.yaml", tmp_path, "--nproc", "2")
    assert done.returncode == 0, done.stderr
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", done.stdout)]
    assert len(losses) == 3
    assert losses == sorted(losses, reverse=True)
    assert (tmp_path / "checkpoints" / "digits.pt").is_file()
    assert "2 ranks on this machine of the job's 8" in done.stderr


@pytest.mark.parametrize(
    "launcher", [one.name for one in launchers.every() if one.ranks in ("tasks", "agent")]
)
def test_a_plain_script_and_its_words(
    tmp_path: Path, launcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        f"nodes: 2\nntasks_per_node: 1\nlauncher: {launcher}\n"
        'env: {GREETING: "it\'s ${WHO} $$"}\n'
        "command: [bash, -c, 'echo \"$RANK/$WORLD_SIZE $GREETING $1\"', x, '$$ ${local_rank}']\n"
    )
    monkeypatch.setenv("WHO", "me")
    done = run(job, tmp_path, "--nproc", "2")
    assert done.returncode == 0, done.stderr
    expected = [f"{rank}/2 it's me $$ $$ ${{local_rank}}" for rank in range(2)]
    assert sorted(done.stdout.splitlines()) == expected


def test_a_program_that_starts_its_own_ranks(tmp_path: Path) -> None:
    done = run(JOBS / "spawn.yaml", tmp_path, "--nproc", "2")
    assert done.returncode == 0, done.stderr
    assert "checkpoint " in done.stdout


def test_the_programs_status_is_returned(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("launcher: plain\ncommand: exit 7\nsetup: {venv: .venv}\n")
    done = run(job, tmp_path)
    assert done.returncode == 7
    assert "left out on this machine: setup.venv" in done.stderr


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("launcher: plain\ncommand: [no-such-program]\n")
    done = run(job, tmp_path)
    assert done.returncode == 3
    assert "no-such-program is not on PATH" in done.stderr


@pytest.mark.parametrize(
    "launcher", [one.name for one in launchers.every() if not one.is_one_process]
)
def test_the_number_of_the_node_and_its_folder(tmp_path: Path, launcher: str) -> None:
    (tmp_path / "work").mkdir()
    job = tmp_path / "job.yaml"
    job.write_text(
        f"launcher: {launcher}\nchdir: work\ncommand: |\n"
        '  [ -n "$NODE_RANK" ]\n  echo "$NODE_RANK $PWD"\n'
    )
    done = run(job, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"0 {tmp_path}/work\n"


def test_a_command_ends_at_the_first_line_that_fails(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("launcher: plain\ncommand: |\n  false | true\n  echo not here\n")
    done = run(job, tmp_path)
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize("launcher", launchers.NAMES)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("command: [nope]", "nope is not on PATH"),
        ("command: [./nope]", "there is no program ./nope"),
        ("command: [./text]", "./text is no program"),
        ("command: [./noshebang]", "./noshebang is neither a program nor a script"),
        ("command: [pwd]\nchdir: nosuch", "cannot work in nosuch, the job's chdir"),
    ],
)
def test_what_cannot_be_started_is_said_before(
    tmp_path: Path, launcher: str, text: str, said: str
) -> None:
    (tmp_path / "text").write_text("echo\n")
    (tmp_path / "noshebang").write_text("echo\n")
    (tmp_path / "noshebang").chmod(0o755)
    job = tmp_path / "job.yaml"
    job.write_text(f"launcher: {launcher}\n{text}\n")
    done = run(job, tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert said in done.stderr
    assert "= fix: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_that_the_kernel_refuses(tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "broken").chmod(0o755)
    job = tmp_path / "job.yaml"
    job.write_text("launcher: plain\ncommand: [./broken]\n")
    done = run(job, tmp_path)
    assert done.returncode == 3
    assert "cannot run ./broken: Exec format error" in done.stderr
    assert "Traceback" not in done.stderr


def test_ranks_of_a_program_that_is_one_process(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("launcher: plain\ncommand: [pwd]\n")
    done = run(job, tmp_path, "--nproc", "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--nproc with launcher plain" in done.stderr


# Rank and child alike say that they are there, and then do as a training does.
HERE = """
import os, subprocess, sys, time
name = os.environ["RANK"] if len(sys.argv) < 2 else os.environ["RANK"] + "-child"
with open(f"pid-{name}", "w") as file:
    file.write(str(os.getpid()))
if len(sys.argv) < 2 and os.environ["CHILD"]:
    subprocess.Popen([sys.executable, __file__, "child"])
while True:
    time.sleep(0.1)
"""


@pytest.mark.parametrize(
    ("launcher", "key"),
    [
        *((launcher, "ddp: here.py") for launcher in ("srun", "torchrun", "spawn", "plain")),
        ("srun", "command: |\n  true\n  python3 here.py\n  true"),
    ],
)
def test_killed_it_leaves_nothing_that_trains(tmp_path: Path, launcher: str, key: str) -> None:
    (tmp_path / "here.py").write_text(HERE)
    (tmp_path / "job.yaml").write_text(
        f"nodes: 1\nntasks_per_node: 1\nlauncher: {launcher}\n{key}\n"
    )
    # Of one process the kill hits the supervisor itself: its rank is all that it can take along.
    alone = launcher == "plain"
    nproc, child = ([], "") if alone else (["--nproc", "2"], "yes")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "slurmgen", "run", "job.yaml", *nproc],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "CHILD": child},
            stdout=said,
            stderr=said,
        )
    names = [f"pid-{rank}{which}" for rank in (0, 1) for which in ("", "-child")]
    files = [tmp_path / name for name in (names[:1] if alone else names)]
    try:
        until(lambda: all(one.exists() and one.read_text() for one in files), process, tmp_path)
    finally:
        process.kill()
        process.wait()
    pids = [int(one.read_text()) for one in files]
    until(lambda: not any(map(runs, pids)))


def runs(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(
    met: Callable[[], bool],
    process: subprocess.Popen[bytes] | None = None,
    folder: Path | None = None,
) -> None:
    end = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < end
        if process is not None and folder is not None:
            assert process.poll() is None, (folder / "said").read_text()
        time.sleep(0.1)
