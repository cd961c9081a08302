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
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.finding import Finding
from slurmgen.shell.words import COMMAND, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.finding import Place
    from slurmgen.lint.job import Job
    from slurmgen.shell.commands import Command
    from slurmgen.shell.words import Piece, Word

NAME = "script-dir-spool"
CODE = "SG505"
SEVERITY = ERROR

_SELF = r"(\$0|\$\{0\b[^}]*\}|\$\{?BASH_SOURCE\b(\[\d\])?[^}\s]*\}?|\$\{\(%\):-%[xN]\})"
_DIRNAME = re.compile(rf"\b(dirname|realpath|readlink)\b[^|;]*{_SELF}", re.DOTALL)
_CUT = re.compile(r"(\[\d\])?%{1,2}/?\*?|:[hAPa]")
# Inside Slurm another way is taken.
_GUARDS = re.compile(r"SLURM_SUBMIT_DIR|SLURM_JOB_ID|SLURM_JOBID|scontrol\s+show\s+job")
# Places that are named.
_MOST = 10
_SHOWING = ("echo", "printf", "usage", "log")


def check(job: Job) -> Iterator[Finding]:
    if job.is_submitter or not job.script.directives:
        return
    found: dict[Place, None] = {}
    for piece in _pieces(job):
        if not _is_guarded(job, piece):
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


def _pieces(job: Job) -> Iterator[Piece]:
    """What holds the script's folder in a word that some command is given."""
    for command in job.script.shell.commands:
        if command.name in _SHOWING or command.context.substitution:
            continue
        if _is_in_guard(job, command.start):
            continue
        for word in command.words:
            yield from _own_folder(job, word, "")
    for assignment in job.script.shell.assignments:
        for piece in _own_folder(job, assignment.value, assignment.name):
            if _is_replaced(job, assignment.name):
                continue
            if assignment.exported or _is_used(job, assignment.name):
                yield piece


def _own_folder(job: Job, word: Word, name: str) -> Iterator[Piece]:
    """What holds the script's folder, or its path where `name` is cut to the folder later."""
    for piece in word.expansions():
        if piece.kind == COMMAND and _DIRNAME.search(piece.text):
            # The script's own path alone is good for reading or copying it.
            if "dirname" in piece.text or _is_cut(job, name):
                yield piece
        elif piece.kind == VARIABLE and piece.name in ("0", "BASH_SOURCE"):
            if _CUT.match(piece.operator):
                yield piece
        elif piece.value is not None:
            yield from _own_folder(job, piece.value, name)


def _is_cut(job: Job, name: str) -> bool:
    """Whether the script takes the folder of a path in a variable."""
    name = re.escape(name)
    return bool(name) and bool(re.search(rf"dirname[^\n]*\$\{{?{name}\b|\$\{{{name}%", job.text))


def _is_replaced(job: Job, name: str) -> bool:
    """Whether the script gives the variable up for another folder."""
    values = [a.value.text for a in job.script.shell.assignments if a.name == name]
    return any(_GUARDS.search(text) for text in values)


def _is_used(job: Job, name: str) -> bool:
    """Whether a command that does more than show it is given the variable."""
    for command in job.script.shell.commands:
        if command.name in _SHOWING or _is_in_guard(job, command.start):
            continue
        text = job.text[command.start : command.end]
        if re.search(rf"\$\{{?{re.escape(name)}\b", text):
            return True
        if any(_redirects_to(command, name)):
            return True
    return False


def _redirects_to(command: Command, name: str) -> Iterator[bool]:
    for redirect in command.redirects:
        yield redirect.target is not None and f"${name}" in redirect.target.text


def _is_guarded(job: Job, piece: Piece) -> bool:
    """Whether it serves outside Slurm only."""
    line_start = job.text.rfind("\n", 0, piece.start) + 1
    line_end = job.text.find("\n", piece.end)
    line = job.text[line_start : line_end if line_end >= 0 else len(job.text)]
    if _GUARDS.search(line):
        return True
    return _is_in_guard(job, piece.start)


def _is_in_guard(job: Job, offset: int) -> bool:
    """Whether a place lies in an `if` whose tests up to there ask for Slurm."""
    before = job.text[:offset]
    opened = list(re.finditer(r"^[ \t]*if\b.*$", before, re.MULTILINE))
    closed = len(re.findall(r"^[ \t]*fi\b", before, re.MULTILINE))
    if len(opened) <= closed:
        return False
    tests = re.findall(r"^[ \t]*(?:if|elif)\b.*$", before[opened[-1].start() :], re.MULTILINE)
    return any(re.search(r"SLURM_|scontrol", test) for test in tests)
