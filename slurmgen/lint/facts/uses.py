"""Where a script hands a variable of Slurm's on: as what, and how."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.lint.facts.tools import is_tool
from slurmgen.reading.shell.words import ARITHMETIC, BATCH, TASK, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Piece, Word

# Programs that only show what they are given, or look at it.
_SHOWING = frozenset(
    "echo printf cat log : logger true export declare typeset local readonly unset test [ [[ "
    "tee set trap module ml mail mailx".split()
)


# `-j$N`
_GLUED = re.compile(r"-[A-Za-z](?=\$)")


class Use(NamedTuple):
    """A variable in a word that a program is given.

    target: what it is given as: the variable or option that gets it, or else the program's
    name. is_whole: nothing but the variable. is_arithmetic: inside `$(( … ))`. program: of
    the launch. piece: as it is written.
    """

    name: str
    target: str
    is_whole: bool
    is_arithmetic: bool
    program: str
    piece: Piece
    place: Place
    launch: Launch


def uses(job: Job, names: tuple[str, ...], where: str | None = None) -> Iterator[Use]:
    """Where a word that some program is given holds one of the variables.

    where: only those that this shell expands. Words that are only shown don't count.
    """
    seen: set[tuple[int, str]] = set()
    # Most launches have the environment of the one before.
    environments: set[int] = set()
    for launch in job.launches:
        if launch.where not in (BATCH, TASK) or launch.program in _SHOWING:
            continue
        for target, word in _words(launch, environments):
            for name, piece in _found(word, names, where):
                if (piece.start, name) in seen:
                    continue
                seen.add((piece.start, name))
                yield Use(
                    name,
                    target,
                    len(word.pieces) == 1 and piece.kind == VARIABLE and not piece.operator,
                    piece.kind == ARITHMETIC,
                    launch.program,
                    piece,
                    job.place_of(piece),
                    launch,
                )


def _words(launch: Launch, environments: set[int]) -> Iterator[tuple[str, Word]]:
    before = ""
    for word in launch.words:
        equals = word.text.partition("=")[0] if "=" in word.text.split("$")[0] else ""
        is_option = before.startswith("-") and "=" not in before
        target = equals or (before if is_option else launch.program)
        glued = _GLUED.match(word.text)
        if glued is not None:
            yield glued[0], word.after(glued[0])
        else:
            yield target, word.after(f"{equals}=") if equals else word
        before = word.text
    for options in (
        launch.launcher.options if launch.launcher is not None else {},
        launch.step.options if launch.step is not None else {},
        launch.mpirun.options if launch.mpirun is not None else {},
    ):
        yield from options.items()
    if id(launch.environment) not in environments and not is_tool(launch):
        environments.add(id(launch.environment))
        for name, assignment in launch.environment.items():
            yield name, assignment.value


def _found(word: Word, names: tuple[str, ...], where: str | None) -> Iterator[tuple[str, Piece]]:
    for piece in word.expansions(where):
        if piece.kind == VARIABLE:
            if piece.name in names:
                yield piece.name, piece
            elif piece.value is not None:
                yield from _found(piece.value, names, where)
            else:
                yield from _mentioned(piece.operator, names, piece)
        elif piece.kind == ARITHMETIC:
            yield from _mentioned(piece.text, names, piece)
        # The commands of `$(…)` are launches of their own.


def _mentioned(text: str, names: tuple[str, ...], piece: Piece) -> Iterator[tuple[str, Piece]]:
    """The variables in arithmetic, and in the index of an array's element."""
    for name in set(re.findall(r"\w+", text)).intersection(names):
        yield name, piece
