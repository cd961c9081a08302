"""sbatch text -> its directives, exactly as sbatch reads them.

The grammar is that of `_get_options` in src/sbatch/opt.c and was compared with
`sbatch -vv --test-only` on 22.05: directives start in column 1 with `#SBATCH`, stand
before the first line that is neither blank nor a comment, are split at white space
outside quotes, and `#` starts a comment there, inside a word too (`a#b` is `a`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import ERROR, Diagnostic, Location
from slurmgen.errors import InvalidInput, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.plan import JobPlan

_KEYWORD = "#SBATCH"
# isspace() of C: a no-break space is a character like any other.
_BLANKS = " \t\n\v\f\r"


class ScriptDirective(NamedTuple):
    """One word of a directive line: an option, with the value that stands behind `=`."""

    line: int
    option: str
    value: str | None


def directives(text: str) -> Iterator[ScriptDirective]:
    """Every option on the directive lines of `text`.

    Raises Refusal for a quote that is not closed.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith(_KEYWORD):
            for word in split_words(line[len(_KEYWORD) :]):
                option, equals, value = word.partition("=")
                yield ScriptDirective(number, option.lstrip("-"), value if equals else None)
        elif line.strip() and not line.lstrip().startswith("#"):
            return


def split_words(text: str) -> list[str]:
    """The words of a directive line behind `#SBATCH`, quotes removed as sbatch does."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    characters = iter(text)
    for character in characters:
        if quote:
            if character == quote:
                quote = ""
            elif character == "\\":
                word = (word or "") + next(characters, "")
            else:
                word = (word or "") + character
        elif character in "\"'":
            quote, word = character, word or ""
        elif character in _BLANKS:
            if word is not None:
                words.append(word)
            word = None
        elif character == "#":
            break
        else:
            word = (word or "") + (next(characters, "") if character == "\\" else character)
    if quote:
        raise Refusal(
            "a quote is not closed",
            why="sbatch stops with a fatal error",
            fix=f"close it with {quote}",
        )
    if word is not None:
        words.append(word)
    return words


def check_directives(text: str, plan: JobPlan) -> None:
    """A project's template must not change what the plan decided about the allocation.

    It may add directives of its own. Raises InvalidInput.
    """
    found: dict[str, ScriptDirective] = {}
    for directive in directives(text):
        found[directive.option] = directive
    problems = []
    for planned in plan.directives:
        written = found.get(planned.option)
        if written is not None and written.value == planned.value:
            continue
        place = Location(f"{plan.template}.sbatch.j2", 1, 1)
        shown = f"--{planned.option}" + (f"={planned.value}" if planned.value is not None else "")
        what = f"the rendered script has no {shown} before its first command"
        if written is not None:
            what = f"line {written.line} of the rendered script says {written.value}, not {shown}"
        problems.append(
            Diagnostic(
                place,
                "template-changes-plan",
                "SG011",
                ERROR,
                what,
                "the ranks that the script starts would not fit the job",
                "print {% for directive in directives %} at the top of the template, and put "
                "the value into the job file",
            )
        )
    if problems:
        raise InvalidInput(problems)
