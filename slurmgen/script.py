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
from slurmgen.spec import catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.plan import JobPlan

_KEYWORD = "#SBATCH"
# isspace() of C: a no-break space is a character like any other.
_BLANKS = " \t\n\v\f\r"


class ScriptDirective(NamedTuple):
    """A word of a directive line: an option by its long name, with the value in the word."""

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
                if word.startswith("--"):
                    name = _long_name(option[2:])
                    yield ScriptDirective(number, name, value if equals else None)
                elif word.startswith("-") and len(word) > 1:
                    yield ScriptDirective(number, _of_letter(word[1]), word[2:] or None)
                else:
                    # The value of the option before it, or what sbatch calls invalid.
                    yield ScriptDirective(number, option, value if equals else None)
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


_DECIDED = catalog.DECIDED_BY_THE_PLAN | {"mem", "mem-per-cpu", "mem-per-gpu"}


def check_script(text: str, plan: JobPlan) -> None:
    """A project's template must not change what the plan decided, nor forget to start it.

    It may add directives of other kinds. Raises InvalidInput.
    """
    try:
        written = {d.option: d for d in directives(text)}
    except Refusal as refusal:
        raise InvalidInput([_template_problem(plan, refusal.what, refusal.why)]) from None
    planned = {d.option: d.value for d in plan.directives}
    problems = []
    why = "the ranks that the script starts would not fit the job"
    for option, value in planned.items():
        shown = f"--{option}" + ("" if value is None else f"={value}")
        if option not in written:
            what = f"the rendered script has no {shown} before its first command"
            problems.append(_template_problem(plan, what, why))
        elif written[option].value != value:
            line, _, other = written[option]
            what = f"line {line} of the rendered script says {other}, not {shown}"
            problems.append(_template_problem(plan, what, why))
    for option in sorted(_DECIDED & set(written) - set(planned)):
        line = written[option].line
        what = f"line {line} of the rendered script adds --{option}"
        problems.append(_template_problem(plan, what, why))
    if not any(line.lstrip().startswith("srun ") for line in text.split("\n")):
        what = "the rendered script has no srun line"
        problems.append(_template_problem(plan, what, "the job would start nothing"))
    if problems:
        raise InvalidInput(problems)


def _long_name(option: str) -> str:
    """The one option of which sbatch takes `option` for the beginning; else itself."""
    if catalog.find(option) is not None:
        return option
    meant = [name for name in catalog.options() if name.startswith(option)]
    return meant[0] if len(meant) == 1 else option


def _of_letter(letter: str) -> str:
    found = (option.name for option in catalog.options().values() if option.short == letter)
    return next(found, letter)


def _template_problem(plan: JobPlan, what: str, why: str) -> Diagnostic:
    return Diagnostic(
        Location(f"{plan.template}.sbatch.j2", 1, 1),
        "template-changes-plan",
        "SG011",
        ERROR,
        what,
        why,
        "put the value into the job file, and keep {{ super() }} in the blocks directives and "
        "launch",
    )
