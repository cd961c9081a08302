"""What a shell script holds: its simple commands, in order, and the variables it sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.shell.variables import Exported
from slurmgen.reading.shell.words import BATCH, Word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.reading.shell.text import ShellText
    from slurmgen.reading.shell.variables import Assignment, Variables

# Nobody writes a script with more; a generated one of 4 MiB has 60,000.
MOST_COMMANDS = 3000
MOST_WORDS = 5000
DEEPEST = 60
WHY_STOPPED = (
    f"it is too long, or holds over {MOST_COMMANDS:,} commands, {MOST_WORDS:,} words in one or "
    f"{DEEPEST} levels"
)


class Redirect(NamedTuple):
    """`>` and its like, with the target; `body` is the text of a here-document or here-string."""

    operator: str
    target: Word | None
    body: ShellText | None
    start: int
    end: int


class Context(NamedTuple):
    """Where a command stands.

    where: which shell runs it. background: behind it (or a group around it) stands `&`; job:
    the offset of what that puts into the background, the same for all of a group.
    loop: inside for, while or until. conditional: inside a branch, or behind && or ||.
    function: the function whose body it is in. piped: its output goes to a further
    command. substitution: inside `$(…)` or `<(…)`. condition: it is what an `if`, `while`
    or `!` tests. handler: it runs where a trap does.
    """

    where: str = BATCH
    background: bool = False
    loop: bool = False
    conditional: bool = False
    function: str | None = None
    piped: bool = False
    fed: bool = False
    substitution: bool = False
    condition: bool = False
    subshell: bool = False
    handler: bool = False
    job: int = -1


class Command(NamedTuple):
    """A simple command, expanded as far as the script tells.

    words: the name first. assignments: those in front of the name, for it alone.
    variables: what the script has set before, exported or not. options: of `set`
    (errexit, nounset, pipefail, allexport). caught: behind it stands `|| something`.
    last: nothing is run behind it at the same level.
    """

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...]
    redirects: tuple[Redirect, ...]
    start: int
    end: int
    context: Context
    variables: Variables
    options: frozenset[str]
    caught: bool = False

    @property
    def where(self) -> str:
        return self.context.where

    @property
    def background(self) -> bool:
        return self.context.background

    @property
    def loop(self) -> bool:
        return self.context.loop

    @property
    def function(self) -> str | None:
        return self.context.function

    @property
    def name(self) -> str:
        """The program's name without its folder; empty where an expansion gives it."""
        return self.words[0].name if self.words else ""

    @property
    def environment(self) -> Exported:
        """What the script has exported when the command runs, its own assignments included."""
        if not self.assignments:
            return self.variables.exported
        return Exported(self.variables, {own.name: own for own in self.assignments})


class ShellProgram(NamedTuple):
    """A script's shell code, evaluated.

    commands: in the order in which they stand, those of functions where they are first
    called. functions: name to the offset of its definition. errors: offsets of what the
    shell could not read. stopped: the offset from which on nothing is looked at, since there is
    too much; None: all of it is.
    """

    commands: tuple[Command, ...]
    assignments: tuple[Assignment, ...]
    functions: Mapping[str, int]
    errors: tuple[tuple[int, int], ...]
    stopped: int | None = None

    @property
    def truncated(self) -> bool:
        return self.stopped is not None
