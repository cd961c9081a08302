"""Words of a command as they expand: text, and what remains to be expanded, each with its place.

A piece remembers which shell expands it: the batch shell, once, or the shell of each task.
That is the difference between `srun prog $SLURM_PROCID` (0 for every task) and
`srun bash -c 'prog $SLURM_PROCID'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# Who runs a command or expands a word. ELSEWHERE: another machine or another job.
BATCH = "batch"
TASK = "task"
ELSEWHERE = "elsewhere"

TEXT = "text"
VARIABLE = "variable"
COMMAND = "command"
ARITHMETIC = "arithmetic"


class Piece(NamedTuple):
    """A part of a word.

    kind: TEXT, VARIABLE (`$A`, `${A:-0}`), COMMAND (`$(date)`, `<(ls)`) or ARITHMETIC
    (`$((A+1))`). text: literal text, else the source as written. name, operator: of a
    VARIABLE, the operator being everything behind the name (`:-0`, `[0]`) or before it (`#`).
    where: the shell that expands it. start, end: offsets in the script. value: what the
    script last assigned to the variable, where an operator keeps it from being put in;
    links: how many values hang there in all.
    """

    kind: str
    text: str
    start: int
    end: int
    name: str = ""
    operator: str = ""
    where: str = BATCH
    quoted: bool = False
    value: Word | None = None
    links: int = 0

    @property
    def default(self) -> str | None:
        """`b` of `${a:-b}` and `${a:=b}`, where it is plain text."""
        if self.kind != VARIABLE or not self.operator:
            return None
        for sign in (":-", "-", ":=", "="):
            if self.operator.startswith(sign):
                text = self.operator[len(sign) :].strip("\"'")
                return None if "$" in text or "`" in text else text
        return None


class Word(NamedTuple):
    """One argument (or an assigned value), expanded as far as the script tells."""

    pieces: tuple[Piece, ...]
    start: int
    end: int
    quoted: bool = False

    @property
    def text(self) -> str:
        """As it reads: expansions as they are written in the script."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def literal(self) -> str | None:
        """The value, None where an expansion remains in it."""
        if all(piece.kind == TEXT for piece in self.pieces):
            return self.text
        return None

    @property
    def guess(self) -> str:
        """The value with defaults (`${PORT:-29500}`) in the place of expansions."""
        return "".join(
            piece.text if piece.kind == TEXT or piece.default is None else piece.default
            for piece in self.pieces
        )

    @property
    def name(self) -> str:
        """What stands behind the last slash: the name of a program."""
        # From the end, since a word may be long, and is asked for its name by every rule.
        parts: list[str] = []
        for piece in reversed(self.pieces):
            default = piece.default
            text = piece.text if default is None else default
            _, slash, last = text.rpartition("/")
            if "$" in last or "`" in last:
                return ""
            parts.append(last)
            if slash:
                break
        return "".join(reversed(parts))

    def expansions(self, where: str | None = None) -> Iterator[Piece]:
        """Every piece that remains to be expanded, those inside a linked value too."""
        for piece in self.pieces:
            if piece.kind != TEXT and where in (None, piece.where):
                yield piece

    def variables(self, where: str | None = None) -> Iterator[Piece]:
        """The VARIABLE pieces."""
        return (piece for piece in self.expansions(where) if piece.kind == VARIABLE)

    def uses(self, *names: str, where: str | None = None) -> Piece | None:
        """The first piece that expands one of the variables, arithmetic and `$(…)` searched too."""
        for piece in self.expansions(where):
            if piece.kind == VARIABLE:
                if piece.name in names:
                    return piece
                inner = piece.value.uses(*names, where=where) if piece.value else None
                if inner is not None:
                    return inner
            elif any(_mentions(piece.text, name) for name in names):
                return piece
        return None

    def after(self, prefix: str) -> Word:
        """The word without the literal `prefix` that it starts with."""
        pieces = list(self.pieces)
        left = len(prefix)
        while pieces and left:
            first = pieces[0]
            if len(first.text) > left:
                pieces[0] = first._replace(text=first.text[left:], start=first.start + left)
                break
            left -= len(first.text)
            del pieces[0]
        start = pieces[0].start if pieces else self.end
        return Word(tuple(pieces), start, self.end, self.quoted)


def _mentions(text: str, name: str) -> bool:
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, behind = text[at - 1 : at], text[end : end + 1]
        if not (before.isalnum() or before == "_" or behind.isalnum() or behind == "_"):
            return True
        at = text.find(name, end)
    return False


def literal_word(text: str, start: int, end: int) -> Word:
    """A Word of plain text."""
    return Word((Piece(TEXT, text, start, end),) if text else (), start, end)
