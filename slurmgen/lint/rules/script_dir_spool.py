"""Files are looked for beside the script, which runs from a copy in Slurm's spool folder.

## What it does

Finds paths derived from `$0` or BASH_SOURCE (`dirname "$0"`, `${BASH_SOURCE[0]%/*}`) that the
script goes on to use. `sbatch "$0"`, `cat "$0"` and messages are left alone; so is a fallback
for runs outside Slurm (`${SLURM_SUBMIT_DIR:-$(dirname "$0")}`).

## Why is this bad

sbatch copies the script; slurmd runs it as /var/spool/slurmd/job123/slurm_script. No neighbour
lies there: "No such file or directory" (seen on 20.11 to 26.05). The job starts in the folder it
was submitted from, SLURM_SUBMIT_DIR.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
srun python "$here/train.py"
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
here=$SLURM_SUBMIT_DIR
srun python "$here/train.py"
```

## References

- sbatch(1), SLURM_SUBMIT_DIR
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import ERROR
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.words import COMMAND, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.words import Piece, Word

NAME = "script-dir-spool"
CODE = "SG505"
SEVERITY = ERROR

_SELF = r"(\$0|\$\{0\b[^}]*\}|\$\{?BASH_SOURCE\b(\[\d\])?[^}\s]*\}?|\$\{\(%\):-%[xN]\})"
_DIRNAME = re.compile(rf"\b(dirname|realpath|readlink)\b[^|;]*{_SELF}", re.DOTALL)
_CUT = re.compile(r"(\[\d\])?%{1,2}/?\*?|:[hAPa]")
# Inside Slurm another way is taken.
_GUARDS = re.compile(r"SLURM_SUBMIT_DIR|SLURM_JOB_ID|SLURM_JOBID|scontrol\s+show\s+job")
_TEST = re.compile(r"[ \t]*(if|elif|fi)\b")
_SLURM = re.compile(r"SLURM_|scontrol")
_EXPANDED = re.compile(r"\$\{?(\w+)")
_CUT_OFF = re.compile(r"\$\{(\w+)%")
# Places that are named.
_MOST = 10
_SHOWING = ("echo", "printf", "usage", "log")


def check(job: Job) -> Iterator[Finding]:
    if job.is_submitter or not job.script.directives:
        return
    found: dict[Place, None] = {}
    uses = _Uses(job)
    for piece in _pieces(uses):
        if not uses.is_guarded(piece):
            found.setdefault(job.place_of(piece))
        if len(found) >= _MOST:
            break
    if not found:
        return
    first, *others = found
    yield Finding(
        first,
        "a path is made of the script's own place",
        "Slurm runs a copy in its spool folder: nothing lies beside it",
        "use $SLURM_SUBMIT_DIR, or an absolute path",
        also=tuple(others),
    )


def _pieces(uses: _Uses) -> Iterator[Piece]:
    """What holds the script's folder in a word that some command is given."""
    shell = uses.job.script.shell
    for command in shell.commands:
        if command.name in _SHOWING or command.context.substitution:
            continue
        if uses.is_in_guard(command.start):
            continue
        for word in command.words:
            yield from _own_folder(uses, word, "")
    for assignment in shell.assignments:
        for piece in _own_folder(uses, assignment.value, assignment.name):
            if assignment.name in uses.replaced:
                continue
            if assignment.exported or assignment.name in uses.used:
                yield piece


def _own_folder(uses: _Uses, word: Word, name: str) -> Iterator[Piece]:
    """What holds the script's folder, or its path where `name` is cut to the folder later."""
    for piece in word.expansions():
        if piece.kind == COMMAND and _DIRNAME.search(piece.text):
            # The script's own path alone is good for reading or copying it.
            if "dirname" in piece.text or name in uses.cut:
                yield piece
        elif piece.kind == VARIABLE and piece.name in ("0", "BASH_SOURCE"):
            if _CUT.match(piece.operator):
                yield piece
        elif piece.value is not None:
            yield from _own_folder(uses, piece.value, name)


class _Uses:
    """What the script does with its variables, and where it asks for Slurm; each read once."""

    def __init__(self, job: Job) -> None:
        self.job = job

    @cached_property
    def cut(self) -> set[str]:
        """The variables of whose paths the script takes the folder."""
        found = set(_CUT_OFF.findall(self.job.text))
        for line in self.job.script.lines:
            at = line.find("dirname")
            if at >= 0:
                found.update(_EXPANDED.findall(line, at))
        return found

    @cached_property
    def replaced(self) -> set[str]:
        """The variables that the script gives up for another folder."""
        return {a.name for a in self.job.script.shell.assignments if _GUARDS.search(a.value.text)}

    @cached_property
    def used(self) -> set[str]:
        """The variables that a command is given which does more than show them."""
        found: set[str] = set()
        read = 0
        commands = (c for c in self.job.script.shell.commands if c.name not in _SHOWING)
        for command in sorted(commands, key=lambda command: command.start):
            if self.is_in_guard(command.start):
                continue
            # One command may lie in another.
            if command.end > read:
                start = max(command.start, read)
                found.update(_EXPANDED.findall(self.job.text, start, command.end))
                read = command.end
            for redirect in command.redirects:
                if redirect.target is not None:
                    found.update(_EXPANDED.findall(redirect.target.text))
        return found

    def is_guarded(self, piece: Piece) -> bool:
        """Whether it serves outside Slurm only."""
        first, _ = self.job.script.position(piece.start)
        last, _ = self.job.script.position(piece.end)
        lines = self.job.script.lines[first - 1 : last]
        return any(map(_GUARDS.search, lines)) or self.is_in_guard(piece.start)

    def is_in_guard(self, offset: int) -> bool:
        """Whether a place lies in an `if` whose tests up to there ask for Slurm."""
        line, column = self.job.script.position(offset)
        before = self._tests[line - 1]
        opened, closed, asks = before.after(self.job.script.lines[line - 1][: column - 1])
        return opened > closed and asks

    @cached_property
    def _tests(self) -> list[_Tests]:
        """What stands before each line."""
        found = [_Tests(0, 0, False)]
        for line in self.job.script.lines:
            found.append(found[-1].after(line))
        return found


class _Tests(NamedTuple):
    """How many `if` and `fi` there were; asks: the tests since the last `if` ask for Slurm."""

    opened: int
    closed: int
    asks: bool

    def after(self, line: str) -> _Tests:
        word = _TEST.match(line)
        if word is None:
            return self
        if word[1] == "fi":
            return self._replace(closed=self.closed + 1)
        asks = _SLURM.search(line) is not None
        if word[1] == "if":
            return self._replace(opened=self.opened + 1, asks=asks)
        return self._replace(asks=self.asks or asks)
