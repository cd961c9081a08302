"""What `--help` and the man pages say of a command: one text, read from its declaration.

A command is what Typer makes of a function in `cli.py`; only what its parameters say of themselves
is read, so that the text is the same whichever version of Typer is installed.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


def page(command: Any, path: str) -> Page:
    """The help of a command of Typer's; path: the words that call it (`slurmgen sandbox up`)."""
    verbs = getattr(command, "commands", {})
    summary, _, more = (command.help or "").partition("\n\n")
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    pieces = [path, "[OPTIONS]", *map(_in_usage, arguments), *["COMMAND ..."] * bool(verbs)]
    return Page(
        command=path,
        usage=" ".join(pieces),
        summary=_one_line(summary),
        more=_one_line(more),
        arguments=tuple((_name(p), _meaning(p)) for p in arguments),
        options=(*((spelling(p), _meaning(p)) for p in options), HELP),
        verbs=tuple((name, page(verb, name).summary) for name, verb in verbs.items()),
        examples=tuple(_examples(command.epilog or "")),
    )


def pages(command: Any, path: str) -> Iterator[Page]:
    """The help of a command and of all below it."""
    yield page(command, path)
    for name, verb in getattr(command, "commands", {}).items():
        yield from pages(verb, f"{path} {name}")


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


def spelling(option: Any) -> str:
    """`-o, --output FILE`, `--hooks / --no-hooks`; the short one first."""
    names = ", ".join(sorted(option.opts, key=len))
    if option.secondary_opts:
        names += f" / {', '.join(option.secondary_opts)}"
    return names if option.is_flag else f"{names} {option.metavar}"


def _in_usage(argument: Any) -> str:
    name = _name(argument)
    many = argument.nargs == -1
    bare = name.removesuffix("...") + "..." * many
    return bare if argument.required or name.startswith("[") else f"[{bare}]"


def _name(parameter: Any) -> str:
    return str(parameter.metavar)


def _meaning(parameter: Any) -> str:
    default = parameter.default
    if parameter.is_eager or callable(default) or default in (None, False, True, "", (), []):
        return _one_line(parameter.help or "")
    return f"{_one_line(parameter.help or '')} [default: {default}]".strip()


def _one_line(words: str) -> str:
    return " ".join(words.split())


def _examples(lines: str) -> Iterator[Example]:
    for line in lines.splitlines():
        command, _, remark = re.sub(r" {2,}", "\0", line.strip(), count=1).partition("\0")
        yield Example(command, remark)


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
