"""sbatch text -> BatchScript: its directives, what they ask for, and what its shell code does.

Shared by lint and import. Each part is read when it is first asked for; nothing here raises,
whatever the text is.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from slurmgen.slurm import directives

if TYPE_CHECKING:
    from slurmgen.reading.shell.commands import ShellProgram
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.slurm.directives import Directive, DirectiveBlock
    from slurmgen.slurm.request import Request

# Shells that tree-sitter-bash reads well enough.
_SHELLS = frozenset("bash sh dash ash ksh ksh93 mksh zsh".split())


class BatchScript:
    """A script's text and what is in it. Offsets count characters."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return self.text.split("\n")

    @cached_property
    def shebang(self) -> str | None:
        """The interpreter line without `#!`, None where the first line is none."""
        first = self.lines[0]
        return first[2:].strip() if first.startswith("#!") else None

    @cached_property
    def interpreter(self) -> str:
        """The interpreter's name: `bash` of `#!/usr/bin/env bash -l`; empty without one."""
        words = (self.shebang or "").split()
        names = [word.rsplit("/", 1)[-1] for word in words]
        if names[:1] == ["env"]:
            names = [name for name in names[1:] if not name.startswith("-") and "=" not in name]
        return names[0] if names else ""

    @cached_property
    def shebang_options(self) -> tuple[str, ...]:
        """What the shebang passes to the interpreter: `-e`, `-l` of `#!/bin/bash -e -l`."""
        words = (self.shebang or "").split()
        names = [word.rsplit("/", 1)[-1] for word in words]
        at = names.index(self.interpreter) if self.interpreter in names else len(words)
        return tuple(words[at + 1 :])

    @property
    def is_shell(self) -> bool:
        """Whether a Bourne shell runs it; a script without a shebang is taken for one."""
        return self.shebang is None or self.interpreter in _SHELLS

    @cached_property
    def block(self) -> DirectiveBlock:
        """The directives, and what sbatch refuses or ignores among them."""
        return directives.read(self.text)

    @property
    def directives(self) -> tuple[Directive, ...]:
        """The options that sbatch takes, in order."""
        return self.block.directives

    @cached_property
    def requests(self) -> tuple[Request, ...]:
        """What is asked for, one for each component of a heterogeneous job; at least one."""
        from slurmgen.slurm.request import requests

        return requests(self.block)

    @cached_property
    def shell(self) -> ShellProgram:
        """The shell code, evaluated; empty where another interpreter runs the script."""
        from slurmgen.reading.shell.commands import ShellProgram

        if not self.is_shell:
            return ShellProgram((), (), {}, ())
        from slurmgen.reading.shell.evaluate import evaluate
        from slurmgen.reading.shell.state import shell_options
        from slurmgen.reading.shell.text import ShellText

        return evaluate(ShellText.whole(self.text), options=shell_options(self.shebang_options))

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """Every program that the shell code starts, its wrappers peeled off."""
        from slurmgen.reading.shell.launch import launches

        return launches(self.shell)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(line) + 1 for line in self.lines[:-1])]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of the character at `offset`."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int = 1) -> int:
        """The offset of a line and column, both from 1."""
        return self._starts[line - 1] + column - 1
