"""Entries of a job file -> YAML text that slurmgen's own reader reads back unchanged.

Written by hand because comments stand beside their keys, and because text that looks like
a number must keep its look: `1.10` and `NO` in quotes, `4:00:00` without.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a plain scalar may look like anywhere in a block; YAML allows more.
_PLAIN = re.compile(r"[\w./$(^+<;~][^\x00-\x1f\x7f]*")
# What YAML 1.1 or 1.2 takes for something else than text; whole numbers are meant as such.
_NOT_TEXT = re.compile(
    r"~|null|true|false|yes|no|on|off|y|n|[-+]?(0[0-9_]+|0x[0-9a-f_]+|0o[0-7]+|[0-9_]*\.[0-9_]+"
    r"(e[-+]?[0-9]+)?|[0-9][0-9_]*\.[0-9_]*(e[-+]?[0-9]+)?|[0-9][0-9_]*e[-+]?[0-9]+|\.inf|\.nan"
    r"|[0-9]+_[0-9_]*)|=|<<|\d{4}-\d\d?-\d\d?.*",
    re.IGNORECASE,
)
# Printable in YAML 1.2 and no line break for any reader of it (PyYAML breaks at U+0085,
# U+2028 and U+2029 too, and takes U+FEFF for a byte order mark).
_ODD = re.compile(
    "[^\\t\\n\\x20-\\x7e\\xa0-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]"
    "|[\\u2028\\u2029]"
)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n", "\r": "\\r"}


class Entry(NamedTuple):
    """A key with its value: text, a tuple of texts, or a list of further entries.

    above: comment lines over it. beside: a comment behind it. clear: a value that may stand
    without quotes although other YAML readers take it for a number or a truth value.
    """

    key: str
    value: str | Sequence[str] | Sequence[Entry]
    above: tuple[str, ...] = ()
    beside: str = ""
    clear: bool = False


def is_printable(text: str) -> bool:
    """Whether YAML can hold the text as it is, in a block or a comment."""
    return _ODD.search(text) is None


def write(entries: Sequence[Entry], *, top: Sequence[str] = (), end: Sequence[str] = ()) -> str:
    """The whole file, with the comments that introduce and end it."""
    lines = [comment(line) for line in top]
    for entry in entries:
        _entry(entry, 0, lines)
    lines += [comment(line) for line in end]
    return "".join(line + "\n" for line in lines)


def _entry(entry: Entry, indent: int, lines: list[str]) -> None:
    margin = " " * indent
    lines += [margin + comment(line) for line in entry.above]
    start = margin + _scalar(entry.key, clear=False) + ":"
    beside = f"  {comment(entry.beside)}" if entry.beside else ""
    value = entry.value
    if isinstance(value, str):
        _text(start, value, indent, lines, beside, clear=entry.clear)
        return
    # Entries are a list, texts a tuple.
    empty = "" if value else " {}" if isinstance(value, list) else " []"
    lines.append(start + empty + beside)
    for item in value:
        if isinstance(item, Entry):
            _entry(item, indent + 2, lines)
        else:
            _text(f"{margin}  -", item, indent + 2, lines, "", clear=False)


def _text(
    start: str, text: str, indent: int, lines: list[str], beside: str, *, clear: bool
) -> None:
    if "\n" in text and _fits_block(text):
        lines.append(f"{start} {_header(text)}{beside}")
        margin = " " * (indent + 2)
        # The line break of the last line is written by the caller.
        body = text.removesuffix("\n").split("\n")
        lines += [margin + line if line else "" for line in body]
    else:
        lines.append(f"{start} {_scalar(text, clear=clear)}{beside}")


def _fits_block(text: str) -> bool:
    """Whether a literal block gives the text back: it must not begin with blanks alone."""
    first = next((line for line in text.split("\n") if line), "")
    return is_printable(text) and bool(first.strip(" \t"))


def _header(text: str) -> str:
    """`|` with an indentation where the first line has its own, and how the text ends."""
    first = next(line for line in text.split("\n") if line)
    indicator = "2" if first[0] in " \t" or text[0] == "\n" else ""
    if not text.endswith("\n"):
        return f"|{indicator}-"
    return f"|{indicator}+" if text.endswith("\n\n") else f"|{indicator}"


def comment(line: str) -> str:
    """A comment of the script, hash and all; what stands in it is printable already."""
    return line.strip()


def _scalar(text: str, *, clear: bool) -> str:
    if _is_plain(text) and (clear or not _NOT_TEXT.fullmatch(text)):
        return text
    if is_printable(text) and "\n" not in text and "'" not in text:
        return f"'{text}'"
    return '"' + "".join(map(_escape, text)) + '"'


def _is_plain(text: str) -> bool:
    return (
        bool(_PLAIN.fullmatch(text))
        and is_printable(text)
        and ": " not in text
        and " #" not in text
        and not text.endswith((":", " "))
        and "\t" not in text
        and text.lower() != "null"
    )


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if is_printable(character):
        return character
    code = ord(character)
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )
