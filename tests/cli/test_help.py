"""`--help` of every command: examples that are right, and text that fits wherever it is shown."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.cli import helptext, verbs
from slurmgen.cli.parser import tree
from slurmgen.cli.schemas import KINDS
from slurmgen.jobfile.job import JobSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGES = list(helptext.pages(verbs.ALL, "slurmgen"))
EXAMPLES = [(page.command, example.command) for page in PAGES for example in page.examples]


def slurmgen(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {
        k: v
        for k, v in os.environ.items()
        if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TERM")
    }
    return subprocess.run(
        [sys.executable, "-m", "slurmgen", *arguments],
        cwd=ROOT,
        env={**env, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def declared(command: Any, path: str = "slurmgen") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, verb in getattr(command, "commands", {}).items():
        yield from declared(verb, f"{path} {name}")


COMMANDS = dict(declared(tree()))


def calls(line: str) -> Iterator[list[str]]:
    """The words of every call of slurmgen in a line of shell code."""
    for call in re.findall(r"slurmgen [^>&|)]*", line):
        yield shlex.split(call)[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.command)
def test_every_command_has_examples_of_itself(page: helptext.Page) -> None:
    assert page.examples
    # Of those below a group, some can be called in one way only.
    if page.command.count(" ") <= 1:
        assert len(page.examples) in (2, 3, 4)
    assert any(page.command in example.command for example in page.examples)


@pytest.mark.parametrize(("command", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_an_example_is_a_command_line_that_is_taken(command: str, line: str) -> None:
    checked = subprocess.run(["bash", "-n"], input=line, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    found = list(calls(line))
    assert found
    for words in found:
        given = values_of(words)
        for override in given.get("overrides") or ():
            assert override.partition("=")[0] in JobSpec.model_fields
        assert given.get("kind", "job") in KINDS


def values_of(words: list[str]) -> dict[str, Any]:
    """What the words behind `slurmgen` give to the function of a verb; wrong ones raise."""
    command, context = tree(), None
    while True:
        context = command.make_context(command.name, [*words], parent=context)
        if not hasattr(command, "commands"):
            return dict(context.params)
        first, *words = words
        command = command.commands[first]


@pytest.mark.parametrize("path", COMMANDS)
def test_what_takes_a_value_says_which(path: str) -> None:
    """Its metavar is what the help, the manual and completion go by."""
    for parameter in COMMANDS[path].params:
        if parameter.param_type_name == "argument" or not parameter.is_flag:
            assert parameter.metavar, parameter.name
        assert parameter.help, parameter.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.command)
@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_too_long(page: helptext.Page, width: int) -> None:
    """But a command line, and a word, which can't be broken."""
    commands = {f"  {example.command}" for example in page.examples}
    for line in helptext.text(page, width).splitlines():
        assert len(line) <= width or line in commands or len(line.split()) <= 2, line
        assert line == line.rstrip()


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"TERM": "dumb"},
        {"NO_COLOR": "1"},
        {"TERM": "xterm-256color", "FORCE_COLOR": "1"},
        {"COLUMNS": "60"},
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["", "render", "sandbox up"])
def test_it_is_plain_text_in_a_pipe(command: str, variables: dict[str, str]) -> None:
    done = slurmgen(*command.split(), "--help", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    width = int(variables.get("COLUMNS", "80"))
    page = next(p for p in PAGES if p.command == f"slurmgen {command}".strip())
    assert done.stdout == helptext.text(page, width) + "\n"


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}], ids=str)
def test_errors_and_results_have_no_colour_in_a_pipe(variables: dict[str, str]) -> None:
    quickstart = "configs/jobs/quickstart.yaml"
    for arguments in (["nosuch"], ["render"], ["plan", quickstart], ["render", "--nosuch"]):
        done = slurmgen(*arguments, TERM="xterm-256color", **variables)
        assert "\x1b" not in done.stdout + done.stderr


def test_a_terminal_is_told_what_a_pipe_is_told() -> None:
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "slurmgen", "render", "--help"],
        cwd=ROOT,
        env={**os.environ, "TERM": "dumb", "COLUMNS": "70"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        shown = b""
        try:
            while more := os.read(terminal, 4096):
                shown += more
        except OSError:
            pass  # Whoever held the other end has ended.
    os.close(terminal)
    page = next(p for p in PAGES if p.command == "slurmgen render")
    assert shown.decode().replace("\r\n", "\n") == helptext.text(page, 70) + "\n"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["rendr", "job.yaml"], "'render'"),
        (["sumbit", "job.yaml"], "'submit'"),
        (["sandbox", "strat"], "'status'"),
        (["cluster", "lst"], "'list'"),
        (["render", "--claster", "lumi", "job.yaml"], "--cluster"),
    ],
)
def test_a_word_that_is_almost_right_is_named(arguments: list[str], meant: str) -> None:
    done = slurmgen(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert meant in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "place", "fix"),
    [
        ("gpus_per_nod: 4", "1:1", 'write "gpus_per_node"'),
        ("setup: {modles: [a]}", "1:9", 'write "modules"'),
        ("requeue: {max_restart: 3}", "1:11", 'write "max_restarts"'),
        ("setup: {container: {imge: a.sif}}", "1:21", 'write "image"'),
        ("sbatch: {hnt: nomultithread}", "1:10", "write hint"),
        ("launcher: torchrn", "1:11", "write torchrun"),
    ],
)
def test_a_key_that_is_almost_right_is_named(
    tmp_path: Path, text: str, place: str, fix: str
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(f"{text}\ncommand: python train.py\n")
    done = slurmgen("render", str(job))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"job.yaml:{place}: error:" in done.stderr
    assert fix in done.stderr.partition("= fix:")[2]
