"""What is read from the directives of a script, and where it stands."""

from __future__ import annotations

from typing import NamedTuple

# Of the directives and problems of a script, together.
_MOST = 2000


class Directive(NamedTuple):
    """One option that sbatch takes from the script.

    line, column, length: of option and value; line and column count from 1. option: its
    long name, an abbreviation resolved; an unknown one as it is written. spelled: as it is
    written, without the value (`--tasks`, `-n`). value: quotes removed; None for a flag.
    component: of a heterogeneous job, from 0. start, end: of option and value, as offsets
    in the text. value_start, value_end: of the value as it is written, quotes and all.
    """

    line: int
    column: int
    length: int
    option: str
    spelled: str
    value: str | None
    component: int
    start: int
    end: int
    value_start: int | None = None
    value_end: int | None = None


class DirectiveProblem(NamedTuple):
    """What sbatch refuses, ignores or takes for something else, and where.

    kind: "after-command" (a directive behind the first command), "not-recognised" (no
    `#SBATCH` for sbatch), "glued-keyword" (`#SBATCHX`), "continuation" (bare lines behind
    a backslash), "stray-text", "escaped-blank" (which up to 22.05 ends a word),
    "unclosed-quote", "unknown-option", "ambiguous-option", "missing-value",
    "unexpected-value", or "short-option-equals".
    text: what stands there. option: the long name of the one it belongs to, or that was
    meant; several, of a line that is not recognised, are joined by blanks. meant: what to
    write in place of [start, end), None where that is a guess. last_line: where it ends.
    spaced: `# SBATCH`, which may be a comment.
    """

    kind: str
    line: int
    column: int
    length: int
    start: int
    end: int
    text: str
    option: str | None = None
    meant: str | None = None
    last_line: int = 0
    spaced: bool = False


class DirectiveBlock(NamedTuple):
    """All directives of a script.

    ends_at_line: the first line that is neither blank nor a comment; one behind the last
    where there is none. components: of the job, 1 unless it is heterogeneous.
    translated: lines with `#PBS` or `#BSUB`, which sbatch translates wherever they stand,
    and whose options win over those of `#SBATCH`.
    """

    directives: tuple[Directive, ...]
    problems: tuple[DirectiveProblem, ...]
    ends_at_line: int
    components: int
    translated: tuple[int, ...] = ()


class Record:
    """The directives and problems found so far in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.directives: list[Directive] = []
        self.problems: list[DirectiveProblem] = []

    @property
    def is_full(self) -> bool:
        """Whether there are more of them than anybody writes; the rest is left unread."""
        return len(self.directives) + len(self.problems) >= _MOST

    def report(
        self,
        kind: str,
        line: int,
        start: int,
        end: int,
        *,
        option: str | None = None,
        meant: str | None = None,
        last_line: int = 0,
        spaced: bool = False,
    ) -> None:
        """Add a problem; blanks at its end do not count as its text."""
        text = self.text[start:end].rstrip(" \t\r")
        self.problems.append(
            DirectiveProblem(
                kind,
                line,
                start - self.text.rfind("\n", 0, start),
                max(1, len(text.partition("\n")[0])),
                start,
                end,
                text,
                option,
                meant,
                last_line or line,
                spaced,
            )
        )
