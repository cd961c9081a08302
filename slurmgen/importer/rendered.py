"""A script that slurmgen rendered before there were stamps, or that was edited since.

Without it, an import of a rendered import would keep our own launch block as somebody's
code. What is read here is held against the script by rendering it again, byte for byte, so
that a script which was edited, or which another template laid out, is simply not taken.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from slurmgen import launchers
from slurmgen.importer.code_as_keys import Parts, Variable
from slurmgen.importer.container import RUNTIMES, Container
from slurmgen.importer.directives import rendered_header
from slurmgen.importer.nodes import expandable, source, walk
from slurmgen.importer.started_program import NotIdiomaticError
from slurmgen.reading.shell.syntax import parse

if TYPE_CHECKING:
    from tree_sitter import Node

    from slurmgen.importer.directives import Lifted
    from slurmgen.reading.script import BatchScript

_MODULES = "# A batch shell does not always inherit the function `module` from the login shell."
_VENV = "# shellcheck source=/dev/null"
_CONDA = "# conda is a shell function, which a batch shell does not inherit."
_THREADS = "# Or every rank would start a thread for each CPU that it can see."
_COMMANDS = "# From setup.commands: run once, on the first node."
_RENDEZVOUS = "# Rank 0 runs on the first node of the job, and every rank meets it there."
_COMMAND = "# The command of the job file, which each task evaluates up to the first line that"
_STRAY = "# Left over from a job in which this one was submitted"
# What follows setup.commands: one of them in every script.
_LAUNCH = (_RENDEZVOUS, _COMMAND, _STRAY)
_TEXT = re.compile(
    r"^IFS= read -r -d '' command <<'(COMMAND_*)' \|\| true\n(.*?)\n\1$", re.MULTILINE | re.DOTALL
)
_NPROC = re.compile(r"--nproc-per-node=(\d+)|LOCAL_WORLD_SIZE=(\d+)$", re.MULTILINE)


def is_rendered(script: BatchScript) -> bool:
    """Whether the script says that slurmgen has made it."""
    return rendered_header(script.lines) > 1


def is_same(script: str, again: str) -> bool:
    """Whether two rendered scripts differ in their header at most."""
    first, second = script.split("\n"), again.split("\n")
    return first[rendered_header(first) :] == second[rendered_header(second) :]


def read(script: BatchScript, lifted: Lifted) -> Parts:
    """What the script was rendered from.

    Raises NotIdiomaticError where it is laid out otherwise.
    """
    text = "\n".join(lifted.rest)
    command = _TEXT.search(text)
    launch = _Launch(text)
    if command is None and not launch.words:
        raise NotIdiomaticError("a rendered script that was changed")
    launcher = next(
        (one for one in launchers.every() if one.unstamped and f"\n{one.unstamped}" in text),
        launchers.with_ranks(launchers.ONE),
    )
    nproc = None
    if launcher.ranks in (launchers.AGENT, launchers.PROGRAM) and script.requests[0].node_gpus == 0:
        found = _NPROC.search(text)
        number = int(found[1] or found[2]) if found else 1
        nproc = number if number > 1 else None
    reader = _Reader(list(lifted.rest))
    reader.read()
    words = command[2] if command is not None else ""
    return Parts(
        launcher=launcher,
        command=words + "\n" if "\n" in words else words,
        words=() if command is not None else launch.words,
        rdzv="c10d" if "--rdzv-backend=c10d" in text else "static",
        nproc=nproc,
        purge=reader.purge,
        use=tuple(reader.use),
        load=tuple(reader.load),
        venv=reader.venv,
        conda=reader.conda,
        container=launch.container(script.requests[0].node_gpus or 0),
        env=tuple(reader.env),
        commands=reader.commands,
    )


class _Reader:
    """Goes through the lines down to the launch block."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.purge = False
        self.use: list[str] = []
        self.load: list[str] = []
        self.venv = self.conda = self.commands = ""
        self.env: list[Variable] = []

    def read(self) -> None:
        at = 0
        while at < len(self.lines):
            line = self.lines[at]
            at += 1
            if line == _COMMANDS:
                self.commands = self._until_launch(at)
                return
            if line.startswith(_LAUNCH):
                return
            if line == _THREADS:
                at += 1
            elif line == _MODULES:
                while at < len(self.lines) and self.lines[at] != "fi":
                    at += 1
            elif line.startswith("module "):
                self._module(line)
            elif line == _VENV and at < len(self.lines):
                self.venv = _words(self.lines[at])[-1].removesuffix("/bin/activate")
                at += 1
            elif line.startswith("conda activate "):
                self.conda = _words(line)[-1]
            elif line.startswith("export "):
                self._export(line)

    def _until_launch(self, at: int) -> str:
        found: list[str] = []
        for line in self.lines[at:]:
            if line.startswith(_LAUNCH):
                # An empty line stands before it.
                return "\n".join(found[:-1]) + "\n"
            found.append(line)
        return ""

    def _module(self, line: str) -> None:
        _, verb, *rest = _words(line)
        if verb == "purge":
            self.purge = True
        elif verb == "use":
            self.use += rest
        else:
            self.load += rest

    def _export(self, line: str) -> None:
        root = parse(line)
        if root is None or not root.named_children:
            return
        for word in root.named_children[0].named_children:
            value = word.child_by_field_name("value")
            if word.named_children:
                text = "" if value is None else expandable(value, line)
                self.env.append(Variable(source(word.named_children[0], line), text or ""))


class _Launch:
    """The srun command at the end, and what a task becomes."""

    def __init__(self, text: str) -> None:
        self.inside: list[str] = []
        self.pyxis: dict[str, str] = {}
        root = parse(text.replace(":?is not set}", "}"))
        last = root.named_children[-1] if root is not None and root.named_children else None
        code = text.replace(":?is not set}", "}")
        given = [] if root is None or last is None else _arguments(last, code)
        at = 1
        while at < len(given) and given[at].startswith("--"):
            name, _, value = given[at][2:].partition("=")
            if name.startswith("container-"):
                self.pyxis[name] = value
            at += 1
        rest = given[at:]
        if rest[:2] == ["bash", "-c"] and rest[3:4] == ["task"]:
            rest = rest[4:]
            for node in walk(root) if root is not None else ():
                words = _arguments(node, code) if node.type == "command" else []
                if words[:1] == ["exec"]:
                    self.inside = words[1:-1]
        elif rest[:1] and rest[0] in RUNTIMES:
            self.inside = rest
        self.words = tuple(rest)
        if self.inside is rest:
            end = self._end_of_container()
            self.words = tuple(rest[end:])

    def _end_of_container(self) -> int:
        """How many words are apptainer's: its options and the image."""
        at = 2
        while at < len(self.inside) and self.inside[at].startswith("--"):
            at += 1 if self.inside[at] in ("--nv", "--rocm") else 2
        return at + 1

    def container(self, gpus: int) -> Container | None:
        if self.pyxis:
            image = self.pyxis.get("container-image", "")
            mounts = tuple(filter(None, self.pyxis.get("container-mounts", "").split(",")))
            runtime = "" if image.endswith(".sqsh") else "pyxis"
            return Container(image, runtime, mounts, "", self.pyxis.get("container-workdir", ""))
        if self.inside[:1] and self.inside[0] in RUNTIMES:
            words = self.inside[: self._end_of_container()]
            gpu = {"--nv": "nvidia", "--rocm": "rocm"}.get(words[2], "none")
            mounts = tuple(v for n, v in pairwise(words) if n == "--bind")
            workdir = next((v for n, v in pairwise(words) if n == "--pwd"), "")
            gpu = "" if gpu == ("nvidia" if gpus else "none") else gpu
            runtime = "" if words[0] == "apptainer" else words[0]
            return Container(words[-1], runtime, mounts, gpu, workdir)
        return None


def _arguments(command: Node, code: str) -> list[str]:
    """The words of a command; what a job file has no way to write is empty."""
    nodes = [n.children[0] if n.type == "command_name" else n for n in command.named_children]
    return [expandable(node, code) or "" for node in nodes]


def _words(line: str) -> list[str]:
    """The words of a simple command, as a job file writes them."""
    line = line.replace(":?is not set}", "}")
    root = parse(line)
    command = root.named_children[0] if root is not None and root.named_children else None
    if command is None:
        return ["", ""]
    return _arguments(command, line)
