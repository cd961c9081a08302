"""man/*.1, from what `--help` says: a page for each command, in man(7)."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen import errors
from slurmgen.cli import helptext, verbs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAN = Path(__file__).resolve().parents[2] / "man"

_STATUS = {
    errors.EXIT_OK: "fine",
    errors.EXIT_FINDINGS: "findings, or drift",
    errors.EXIT_USAGE: "wrong usage, or an invalid job file",
    errors.EXIT_UNAVAILABLE: "Slurm or a file can't be reached, or refused",
    errors.EXIT_BUG: "a bug of slurmgen",
    errors.EXIT_INTERRUPTED: "interrupted",
}
_ESCAPES = str.maketrans(
    {"\\": r"\e", "-": r"\-", "^": r"\(ha", "~": r"\(ti", "'": r"\(aq", '"': r"\(dq"}
)
_ALSO = ("sbatch", "srun", "torchrun")


def pages() -> dict[str, str]:
    """The text of each file by its name."""
    shown = list(helptext.pages(verbs.ALL, "slurmgen"))
    return {f"{_name(page)}.1": _page(page, shown) for page in shown}


def _name(page: helptext.Page) -> str:
    return page.command.replace(" ", "-")


def _page(page: helptext.Page, everything: Iterable[helptext.Page]) -> str:
    name = _name(page)
    _, *arguments = page.usage.removeprefix(page.command).split(" ")
    lines = [
        r".\" Written by `make docs` from what --help says.",
        f'.TH {name.upper()} 1 "" slurmgen "The slurmgen manual"',
        ".SH NAME",
        _filled(f"{name} - {page.summary.rstrip('.')}"),
        ".SH SYNOPSIS",
        f".B {_text(page.command)}",
        _text(" ".join(arguments)),
        ".SH DESCRIPTION",
        _filled(page.summary),
        *([".PP", _filled(page.more)] if page.more else []),
        *_section("ARGUMENTS", page.arguments),
        *_section("OPTIONS", page.options),
        *_section("COMMANDS", page.verbs),
        *_examples(page.examples),
        *_section("EXIT STATUS", ((str(status), meaning) for status, meaning in _STATUS.items())),
        ".SH SEE ALSO",
        *_also(page, everything),
    ]
    return "\n".join(lines) + "\n"


def _section(title: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    rows = tuple(rows)
    if rows:
        yield f".SH {title}"
    for word, meaning in rows:
        yield from (".TP", f".B {_text(word)}", _filled(meaning))


def _examples(examples: Iterable[helptext.Example]) -> Iterator[str]:
    yield ".SH EXAMPLES"
    for index, (command, remark) in enumerate(examples):
        if index:
            yield ".PP"
        if remark:
            yield f"{_text(remark[0].upper() + remark[1:])}:"
        yield from (".RS", ".nf", _text(command), ".fi", ".RE")


def _also(page: helptext.Page, everything: Iterable[helptext.Page]) -> Iterator[str]:
    """The command above, those below, and what is not ours."""
    above = page.command.rpartition(" ")[0]
    near = [
        _name(other)
        for other in everything
        if other.command == above or other.command.rpartition(" ")[0] == page.command
    ]
    names = [*near, *_ALSO[: 1 if near else None]]
    for index, name in enumerate(names):
        yield f".BR {_text(name)} (1){',' * (index < len(names) - 1)}"


def _filled(words: str) -> str:
    """Text in lines of less than 80 bytes, none of which is taken for a request."""
    lines = textwrap.wrap(_text(words), 78, break_long_words=False, break_on_hyphens=False)
    return "\n".join(rf"\&{line}" if line.startswith(".") else line for line in lines)


def _text(words: str) -> str:
    r"""Words as roff prints them; a hyphen is one that can be typed again."""
    return words.translate(_ESCAPES)
