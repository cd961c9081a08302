"""What real shells make of Tab: Bash and Zsh at a terminal, fish by its own `complete`."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.cli.completion import offer

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[2]
# Generous: a completion takes a fraction of a second.
TIMEOUT_S = 60


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}, which is not installed")


# What is typed, with \t for the Tab key, and the words that it becomes.
LINES = {
    "slurmgen ren\tjo\tX": ["render", "job.yaml", "X"],
    "slurmgen plan ru\tn\tX": ["plan", "runs/nightly.yaml", "X"],
    "slurmgen plan bi\tX": ["plan", "big job.yaml", "X"],
    "slurmgen render -c he\tX": ["render", "-c", "here", "X"],
    "slurmgen render --cluster=he\tX": ["render", "--cluster=here", "X"],
    "slurmgen render --set gpu_f\tgres": ["render", "--set", "gpu_form=gres"],
    "slurmgen render --output=no\tX": ["render", "--output=notes.txt", "X"],
    "slurmgen lint --form\tgi\tX": ["lint", "--format", "github", "X"],
    "slurmgen lint --ignore SG110,SG40\t1": ["lint", "--ignore", "SG110,SG401"],
    "slurmgen lint --explain time-in\tX": ["lint", "--explain", "time-in-minutes", "X"],
    "slurmgen template show mi\tX": ["template", "show", "mine", "X"],
    "slurmgen sandbox exec --name a no\tX": [
        *("sandbox", "exec", "--name", "a", "notes.txt", "X"),
    ],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project to complete in, beside a home folder and a folder of programs."""
    folder = tmp_path / "project"
    for name in (
        *("pyproject.toml", "job.yaml", "notes.txt", "big job.yaml", "runs/nightly.yaml"),
        *("clusters/here.yaml", "templates/mine.sbatch.j2"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (tmp_path / "home").mkdir()
    programs = tmp_path / "bin"
    programs.mkdir()
    # What a shell makes of the line that was completed.
    heard = "import json, sys; print(json.dumps(sys.argv[1:]), file=open('heard', 'a'))"
    for name, arguments in (("slurmgen", "-m slurmgen"), ("hear", f'-c "{heard}"')):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n')
        (programs / name).chmod(0o755)
    return folder


def environment(project: Path) -> dict[str, str]:
    path = os.pathsep.join([str(project.parent / "bin"), os.environ["PATH"]])
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "ZDOTDIR"))},
        "PATH": path,
        "HOME": str(project.parent / "home"),
        "PYTHONPATH": str(ROOT),
        "TERM": "vt100",
    }


def install(project: Path, shell: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["slurmgen", "completion", "--install"],
        cwd=project,
        env={**environment(project), "SHELL": f"/usr/bin/{shell}"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def completed(project: Path, shell: str, lines: Iterable[str]) -> list[list[str]]:
    """The words of lines in which \\t is the Tab key, as the shell takes them in the end."""
    start_file = project.parent / "home" / {"bash": ".bashrc", "zsh": ".zshrc"}[shell]
    with start_file.open("a") as file:
        file.write("PS1='type: '\n")
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        [shell, "-i"],
        cwd=project,
        env=environment(project),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        seen_until(terminal, b"type: ")
        for line in lines:
            # Ctrl-A: the words go to another program in the end.
            os.write(terminal, f"{line}\x01hear \r".encode())
            seen_until(terminal, b"type: ")
        # Ctrl-D at an empty line.
        os.write(terminal, b"\x04")
        seen_until(terminal, b"")
        process.wait(TIMEOUT_S)
    os.close(terminal)
    return [json.loads(line)[1:] for line in (project / "heard").read_text().splitlines()]


def seen_until(terminal: int, mark: bytes) -> bytes:
    """What a terminal shows until the mark comes (b"": until the shell ends)."""
    shown = b""
    while not (mark and shown.endswith(mark)):
        if not select.select([terminal], [], [], TIMEOUT_S)[0]:
            pytest.fail(f"the shell shows nothing more: {shown!r}")
        try:
            shown += os.read(terminal, 1)
        except OSError:
            break
    return shown


def offered_by_fish(project: Path, typed: str) -> dict[str, str]:
    """What fish offers for a line, and what it says of each."""
    done = subprocess.run(
        ["fish", "--command", "complete --do-complete $argv[1]", typed],
        cwd=project,
        env=environment(project),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    rows = (line.partition("\t") for line in done.stdout.splitlines())
    return {value: meaning for value, _, meaning in rows}


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_lines_are_completed(project: Path, shell: str) -> None:
    needs(shell)
    assert install(project, shell).returncode == 0
    assert dict(zip(LINES, completed(project, shell, LINES), strict=True)) == LINES


FISH = {
    "slurmgen ren": {"render": "Print the sbatch script of a job file."},
    "slurmgen plan jo": {"job.yaml": ""},
    "slurmgen plan runs/": {"runs/nightly.yaml": ""},
    "slurmgen plan bi": {"big job.yaml": ""},
    "slurmgen render -c he": {"here": ""},
    "slurmgen render --cluster=he": {"--cluster=here": ""},
    "slurmgen render --set gpus_p": {"gpus_per_node=": "GPUs of each node: [type:]count"},
    "slurmgen render --output=no": {"--output=notes.txt": ""},
    "slurmgen lint --format gi": {"github": ""},
    "slurmgen lint --ignore SG110,SG401": {
        "SG110,SG401": "A rank is read in the batch shell, once for all tasks."
    },
    "slurmgen template show mi": {"mine": ""},
    "slurmgen sandbox exec no": {"notes.txt": ""},
    "slurmgen nosuch ": {},
}


def test_fish_offers_values_and_says_what_they_are(project: Path) -> None:
    needs("fish")
    assert install(project, "fish").returncode == 0
    assert {typed: offered_by_fish(project, typed) for typed in FISH} == FISH


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_it_is_set_up_once_and_nothing_is_lost(project: Path, shell: str) -> None:
    home = project.parent / "home"
    start_file = home / {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/own"}[shell]
    start_file.parent.mkdir(parents=True, exist_ok=True)
    start_file.write_bytes(b"alias l='ls \xff'  # no end of line")
    first, second = install(project, shell), install(project, shell)
    assert (first.returncode, first.stdout) == (second.returncode, second.stdout) == (0, "")
    assert f"a new {shell} completes slurmgen" in first.stderr
    own, *added = start_file.read_bytes().split(b"\n")
    assert own == b"alias l='ls \xff'  # no end of line"
    assert [line.startswith(b"source ") for line in added if line] == [True] * (shell != "fish")


@pytest.mark.parametrize(
    ("arguments", "shell", "message"),
    [
        (["tcsh"], "/bin/bash", 'there is no completion for "tcsh"'),
        (["--install"], "/usr/bin/ksh", 'there is no completion for "ksh"'),
        ([], "", "$SHELL names no shell"),
    ],
)
def test_a_shell_that_is_not_known(
    project: Path, arguments: list[str], shell: str, message: str
) -> None:
    done = subprocess.run(
        ["slurmgen", "completion", *arguments],
        cwd=project,
        env={**environment(project), "SHELL": shell},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "fix: name one that there is: slurmgen completion bash|zsh|fish" in done.stderr


OFFERS = {
    "": {"render", "submit", "lint", "sandbox", "completion"},
    "sandbox ": {"up", "down", "exec"},
    "sandbox k": {"kill"},
    "render --": {"--cluster", "--set", "--help"},
    "render -c lumi --set nodes=2 --": {"--set", "--output"},
    "render -c lumi jobs/a.yaml --o": {"--output"},
    "init --no-": {"--no-hooks", "--no-ci"},
    "init --launcher ": {"srun", "torchrun", "spawn", "plain"},
    "schema ": {"job", "cluster"},
    "cluster show lum": {"lumi"},
    "lint --select SG110,time-in": {"SG110,time-in-minutes"},
}


@pytest.mark.parametrize("line", OFFERS)
def test_what_is_offered(line: str) -> None:
    assert OFFERS[line] <= {value for value, _ in offer(line.split(" ")).values}


@pytest.mark.parametrize(
    "line", ["render --write=", "render nosuch/", "nosuch x", "schema job ", "plan --nosuch=x"]
)
def test_what_cannot_be_known_is_not_offered(line: str) -> None:
    assert offer(line.split(" ")).values == ()


def test_an_option_is_offered_once_unless_it_may_be_given_again() -> None:
    given = offer(["render", "-c", "lumi", "--set", "nodes=2", "--"]).values
    assert {"--cluster"} & dict(given).keys() == set()


def test_what_stands_behind_an_option_with_an_argument_is_its_own() -> None:
    """The program that `sandbox exec` runs has options of its own."""
    assert offer(["sandbox", "exec", "squeue", "--"]).kind == "files"
