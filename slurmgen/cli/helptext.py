"""What `--help` and the man pages say of a verb: one text, read from the table of verbs."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.cli.verbs import REQUIRED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slurmgen.cli.verbs import Argument, Option, Verb

# Columns: as narrow as a terminal is taken to be, and as wide as text is easy to read.
_NARROWEST, _WIDEST = 40, 80
# A word wider than this has what it means below it, not beside it.
_WIDEST_WORD = 24
HELP = ("-h, --help", "Show this text.")


class Example(NamedTuple):
    """A command line, and what is to be said of it, if anything."""

    command: str
    remark: str


class Page(NamedTuple):
    """A command's help: each row is how something is written, and what it is.

    summary: one sentence; more: what there is to say behind it.
    """

    command: str
    usage: str
    summary: str
    more: str
    arguments: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]
    verbs: tuple[tuple[str, str], ...]
    examples: tuple[Example, ...]


def page(verb: Verb, path: str) -> Page:
    """The help of a verb; path: the words that call it (`slurmgen sandbox up`)."""
    pieces = [
        path,
        "[OPTIONS]",
        *map(_in_usage, verb.arguments),
        *["COMMAND ..."] * bool(verb.verbs),
    ]
    return Page(
        command=path,
        usage=" ".join(pieces),
        summary=verb.summary,
        more=verb.more,
        arguments=tuple((p.metavar, _meaning(p)) for p in verb.arguments),
        options=(*((spelling(p), _meaning(p)) for p in verb.options), HELP),
        verbs=tuple((below.name, below.summary) for below in verb.verbs),
        examples=tuple(map(_example, verb.examples)),
    )


def pages(verb: Verb, path: str) -> Iterator[Page]:
    """The help of a verb and of all below it."""
    yield page(verb, path)
    for below in verb.verbs:
        yield from pages(below, f"{path} {below.name}")


def columns() -> int:
    """The width of help here: that of the terminal, or what COLUMNS says."""
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))


def text(shown: Page, width: int) -> str:
    """What `--help` prints, in lines no longer than `width`."""
    parts = [
        _wrapped(f"Usage: {shown.usage}", width, "", " " * 7),
        _wrapped(shown.summary, width, "  ", "  "),
        *([_wrapped(shown.more, width, "  ", "  ")] if shown.more else []),
        *_section("Arguments", shown.arguments, width),
        *_section("Options", shown.options, width),
        *_section("Commands", shown.verbs, width),
    ]
    if shown.examples:
        parts.append("\n".join(["Examples:", *_example_lines(shown.examples, width)]))
    return "\n\n".join(parts)


def spelling(option: Option) -> str:
    """`-o, --output FILE`, `--hooks / --no-hooks`; the short one first."""
    names = ", ".join(sorted(option.flags, key=len))
    if option.off:
        names += f" / {option.off}"
    return names if option.is_flag else f"{names} {option.metavar}"


def _in_usage(argument: Argument) -> str:
    name = argument.metavar
    bare = name.removesuffix("...") + "..." * argument.many
    return bare if argument.default is REQUIRED or name.startswith("[") else f"[{bare}]"


def _meaning(parameter: Argument | Option) -> str:
    default = parameter.default
    if default is REQUIRED or default in (None, True, "", ()):
        return parameter.help
    return f"{parameter.help} [default: {default}]"


def _example(line: str) -> Example:
    command, _, remark = re.sub(r" {2,}", "\0", line, count=1).partition("\0")
    return Example(command, remark)


def _section(title: str, rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    rows = tuple(rows)
    if not rows:
        return
    beside = [len(word) for word, _ in rows if len(word) <= _WIDEST_WORD]
    margin = 4 + max(beside, default=4)
    lines = [f"{title}:"]
    for word, meaning in rows:
        start = f"  {word}".ljust(margin)
        if len(start) > margin:
            lines.append(start)
            start = " " * margin
        lines.append(_wrapped(meaning, width, start, " " * margin).rstrip() or start.rstrip())
    yield "\n".join(lines)


def _example_lines(examples: Iterable[Example], width: int) -> Iterator[str]:
    examples = tuple(examples)
    margin = max((len(command) for command, remark in examples if remark), default=0)
    for command, remark in examples:
        beside = f"  {command.ljust(margin)}  # {remark}"
        if remark and len(beside) <= width:
            yield beside
            continue
        if remark:
            yield _wrapped(remark, width, "  # ", "  # ")
        yield f"  {command}"


def _wrapped(words: str, width: int, first: str, others: str) -> str:
    return textwrap.fill(
        words,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
