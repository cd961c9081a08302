r"""A command over several lines breaks off before its end.

## What it does

Finds a backslash with a blank (or a comment) behind it at the end of a line, a comment or an
empty line in the middle of a continued command, and lines of options that no backslash joins to
the command above.

## Why is this bad

Only a backslash as the very last character joins the next line. The training starts without
the arguments below the break, with default values, and the next line fails with "--lr: command
not found", which without `set -e` nobody notices.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:2
#SBATCH --time=1:00:00
torchrun --standalone --nproc_per_node=2 train.py \
    --lr 3e-4 \
    # --resume last.pt \
    --batch-size 64
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:2
#SBATCH --time=1:00:00
# --resume last.pt
torchrun --standalone --nproc_per_node=2 train.py \
    --lr 3e-4 \
    --batch-size 64
```

## References

- bash(1), QUOTING and COMMENTS
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import ERROR, Edit
from slurmgen.lint.finding import Finding
from slurmgen.lint.lines import merged
from slurmgen.reading.shell.words import TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "broken-continuation"
CODE = "SG506"
SEVERITY = ERROR
HIDES = ("standalone-multinode", "fixed-port")

_BLANK_BEHIND = re.compile(r"(?<!\\)(?:\\\\)*\\[ \t]+$")
_COMMENT_BEHIND = re.compile(r"(?<!\\)\\[ \t]+#.*$|\s#.*\\$")
_OPTION = re.compile(r"\s*(--?[A-Za-z][\w-]*|\+\+?[\w.]+=)")


class _Break(NamedTuple):
    """line: counted from 0. edit: what mends it, where nothing has to be guessed."""

    line: int
    start: int
    end: int
    what: str
    why: str
    fix: str
    edits: tuple[Edit, ...] = ()


def check(job: Job) -> Iterator[Finding]:
    if not job.script.is_shell or "\r\n" in job.text:
        return
    texts = merged(_texts(job))
    seen: set[int] = set()
    for found in (*_by_lines(job, texts), *_by_commands(job)):
        if found.line in seen:
            continue
        # The lines around it say the same in other words.
        seen.update(range(found.line - 2, found.line + 3))
        yield Finding(
            job.place(found.start, found.end),
            found.what,
            found.why,
            found.fix,
            edits=found.edits,
        )


def _texts(job: Job) -> list[tuple[int, int]]:
    """The bodies of here-documents that no shell runs: data, not commands."""
    spans = []
    for command in job.script.shell.commands:
        if command.name in ("bash", "sh", "zsh", "srun", "ssh"):
            continue
        for redirect in command.redirects:
            if redirect.operator == "<<":
                spans.append((redirect.start, redirect.end))
                if redirect.body is not None and redirect.body.text:
                    start = redirect.body.offset(0)
                    spans.append((start, redirect.body.offset(len(redirect.body.text) - 1)))
    return spans


def _by_lines(job: Job, texts: list[tuple[int, int]]) -> Iterator[_Break]:
    lines = job.script.lines
    at_text = 0
    for number, line in enumerate(lines[:-1]):
        offset = job.script.offset(number + 1)
        while at_text < len(texts) and texts[at_text][1] <= offset:
            at_text += 1
        is_text = at_text < len(texts) and texts[at_text][0] <= offset
        if is_text or line.lstrip().startswith("#"):
            continue
        following = lines[number + 1]
        blank = _BLANK_BEHIND.search(line)
        if blank is not None and not following.lstrip().startswith("#"):
            at = len(line.rstrip()) - 1
            yield _Break(
                number,
                offset + at,
                offset + len(line),
                "a blank stands behind the backslash at the end of the line",
                "the backslash quotes the blank and joins no line: the command ends here",
                "remove the blank",
                (Edit(offset + at + 1, offset + len(line), ""),),
            )
        elif _COMMENT_BEHIND.search(line) and _OPTION.match(following):
            start = offset + line.rindex("#")
            yield _Break(
                number,
                start,
                offset + len(line),
                "a comment stands at the end of a line that should go on",
                "a backslash counts only as the last character, and in a comment it does not: the "
                "command ends here",
                "move the comment above the command",
            )
        elif line.endswith("\\") and not line.endswith("\\\\"):
            yield from _interrupted(job, number)


def _interrupted(job: Job, number: int) -> Iterator[_Break]:
    """A comment or an empty line below a line that goes on, and more of the command below."""
    lines = job.script.lines
    at = number + 1
    while at < len(lines) and (not lines[at].strip() or lines[at].lstrip().startswith("#")):
        at += 1
    between = lines[number + 1 : at]
    if not between or at >= len(lines):
        return
    comment = next((n for n, line in enumerate(between) if line.strip()), None)
    rest = lines[at]
    if not (_OPTION.match(rest) if comment is None else _goes_on(job, number, rest)):
        return
    where = number + 1 + (comment or 0)
    offset = job.script.offset(where + 1)
    line = lines[where]
    if comment is None:
        yield _Break(
            where,
            offset,
            offset + max(1, len(line)),
            "an empty line stands in the middle of a continued command",
            "the command ends there, and the lines below are commands of their own",
            "remove the empty line",
        )
    else:
        yield _Break(
            where,
            offset + _indent(line),
            offset + len(line),
            "a comment stands in the middle of a continued command",
            "the comment takes its own backslash with it: the command ends there, and the lines "
            "below are commands of their own",
            "move the comment above the command",
        )


def _goes_on(job: Job, above: int, rest: str) -> bool:
    """Whether a line below a comment belongs to the command above it: by how far in it is."""
    lines = job.script.lines
    while above > 0 and lines[above - 1].endswith("\\"):
        above -= 1
    return bool(_OPTION.match(rest)) or _indent(rest) > _indent(lines[above])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _by_commands(job: Job) -> Iterator[_Break]:
    """Commands that are what is left of one that broke off above: they begin with an option."""
    before = None
    directives: set[int] = set()
    for launch in job.launches:
        is_cut = before is not None and before.launcher is not None and not before.words
        before = launch
        if not launch.words:
            continue
        word = launch.inner.words[0]
        text = word.text
        if (
            not word.pieces
            or word.pieces[0].kind != TEXT
            or not (re.match(r"--?[A-Za-z]", text) or (is_cut and text.endswith(".py")))
        ):
            continue
        number, column = job.script.position(word.start)
        lines = job.script.lines
        if lines[number - 1][: column - 1].strip():
            continue
        above = number - 2
        while above > 0 and not lines[above].strip():
            above -= 1
        if lines[above].startswith("#SBATCH") or above in directives:
            # A directive that should have gone on.
            directives.add(number - 1)
            continue
        if above < 1 or lines[above].lstrip().startswith("#"):
            above = number - 1
        offset = job.script.offset(above + 1)
        yield _Break(
            above,
            offset + _indent(lines[above]),
            offset + len(lines[above]),
            "the line should go on, but has no backslash at its end",
            f'the next line is a command of its own: "{text}: command not found"',
            "end the line with a backslash",
        )
