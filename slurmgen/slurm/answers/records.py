"""Records of `scontrol show`: words of the form Key=value, whose values may hold blanks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# `OS=Linux 5.10 #1 SMP` has blanks, `Reason=Not responding` too. A key starts with a capital.
_KEY = re.compile(r"(?<!\S)([A-Z][A-Za-z0-9_/:]*)=")


def records(text: str) -> Iterator[dict[str, str]]:
    """One for each block between blank lines. Of a key given twice the first counts: a
    node's Reason and Comment are a person's words, may hold any, and stand at the end.
    """
    for block in re.split(r"\n\s*\n", text):
        keys = list(_KEY.finditer(block))
        ends = [*(key.start() for key in keys[1:]), len(block)]
        found: dict[str, str] = {}
        for key, end in zip(keys, ends, strict=False):
            found.setdefault(key[1], block[key.end() : end].strip())
        if found:
            yield found


def settings(text: str) -> dict[str, str]:
    """`scontrol show config`: a line for each, `Key  = value`; what is not set is left out."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and value.strip() not in ("", "(null)"):
            found.setdefault(key.strip(), value.strip())
    return found


def rows(text: str, columns: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """Lines of `sacctmgr --parsable2`."""
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) == len(columns):
            yield dict(zip(columns, cells, strict=True))


def number(text: str | None) -> int | None:
    """A count; None for UNLIMITED, N/A and what is not there."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def names(text: str | None) -> tuple[str, ...] | None:
    """A list of names; None for ALL, and for what is not there."""
    if text is None or text.upper() in ("ALL", "(NULL)", "N/A", ""):
        return None
    return tuple(name for name in text.split(",") if name)


def tres(text: str | None) -> dict[str, str]:
    """`cpu=8,gres/gpu=4` by its parts."""
    pairs = (item.partition("=") for item in (text or "").split(",") if item)
    return {name: value for name, _, value in pairs if value}
