"""The pages of the site, and what their blocks would say now.

A fence may name a file behind its language: that block is the file. Where docs/examples has a
folder of the page's path with such a file, the block is its text. A `console` block is run, in a
folder with the files that the page has named before it; a `diff` block compares two of them.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
# Written by tests of their own.
GENERATED = ("rules/", "reference/job-file.md", "examples/")
ELLIPSIS = "..."

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A fenced block; name: the file that it is, empty where it is none."""

    language: str
    name: str
    text: str
    start: int
    end: int


def written() -> list[Path]:
    """The pages that people write."""
    found = (path for path in sorted(DOCS.rglob("*.md")))
    return [p for p in found if not p.relative_to(DOCS).as_posix().startswith(GENERATED)]


def name_of(page: Path) -> str:
    """A page as tests call it: launch/srun.md."""
    return page.relative_to(DOCS).as_posix()


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, without the indent that puts them into a list."""
    found = []
    for match in _FENCE.finditer(text):
        inner = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        found.append(Block(match["language"], match["name"] or "", inner, *match.span("text")))
    return found


def examples_of(page: Path) -> Path:
    """questions/other-nodes/ for questions/other-nodes.md."""
    return EXAMPLES / Path(name_of(page)).with_suffix("")


def files(folder: Path) -> dict[str, str]:
    """The text of each file in a folder of docs/examples, which need not be there."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.glob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


def refreshed(text: str, examples: dict[str, str], folder: Path) -> str:
    """A page with every block as it would be now; `folder` is where its commands run."""
    for name, content in examples.items():
        _write(folder / name, content)
    parts, done = [], 0
    for block in blocks(text):
        now = block.text
        if block.language == "diff" and ".." in block.name:
            old, new = block.name.split("..")
            now = _diff(folder, old, new)
        elif block.name:
            now = examples.get(block.name, block.text)
            _write(folder / block.name, now)
        elif block.language == "console":
            now = _replayed(block.text, folder)
        if now != block.text:
            parts += [text[done : block.start], now]
            done = block.end
    return "".join([*parts, text[done:]])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _diff(folder: Path, old: str, new: str) -> str:
    before, after = ((folder / name).read_text(encoding="utf-8") for name in (old, new))
    return "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), old, new))


def _replayed(text: str, folder: Path) -> str:
    """A console block with the output that its commands have now."""
    parts = []
    # Each command, with the lines that a backslash continues, and what is shown below it.
    for command in re.findall(r"^\$ .*\n(?:(?<=\\\n).*\n)*(?:(?!\$ ).*\n)*", text, re.MULTILINE):
        lines = command.splitlines(True)
        count = 1
        while lines[count - 1].endswith("\\\n"):
            count += 1
        shown = "".join(lines[count:])
        output = run("".join(lines[:count]).removeprefix("$ "), folder)
        parts += [*lines[:count], shown if matches(shown, output) else output]
    return "".join(parts)


def matches(shown: str, output: str) -> bool:
    """Whether an output is what is shown, in which a line `...` is for any lines."""
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == ELLIPSIS else re.escape(line)
        for line in shown.splitlines(True)
    )
    return re.fullmatch(pattern, output) is not None


def run(command: str, folder: Path) -> str:
    """What a command prints, both streams as a terminal shows them."""
    programs = folder.with_name(f"{folder.name}-bin")
    if not programs.exists():
        programs.mkdir()
        program = programs / "slurmgen"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m slurmgen "$@"\n')
        program.chmod(0o755)
    finished = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "GITHUB_"))},
            "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "XDG_CONFIG_HOME": str(programs),
            "COLUMNS": "100",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return re.sub(r"[ \t]+$", "", finished.stdout, flags=re.MULTILINE)
