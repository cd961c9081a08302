"""A project's copies of built-in templates: what each was taken from, and what has changed since.

The first line of a copy is its stamp. The text it was taken from is kept in
`templates/.ejected/`, so that after an upgrade both texts are at hand.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen import __version__
from slurmgen.errors import UsageError
from slurmgen.resources import templates_dir

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = ".sbatch.j2"
KEPT = ".ejected"
_STAMP = re.compile(
    r"\A\{# Ejected from slurmgen (?P<version>\S+): (?P<name>[\w/.-]+)"
    r"(?: block (?P<block>\w+))?, sha256 (?P<digest>[0-9a-f]{16})\. .*#\}\n"
)
_BLOCK = r"\{%-?\s*block\s+(\w+)[^%]*%\}"
_END = r"\{%-?\s*endblock\b[^%]*%\}"


class Stamp(NamedTuple):
    """What a copy was taken from: the whole template `name`, or one block of it."""

    version: str
    name: str
    block: str | None
    digest: str

    @property
    def original(self) -> str:
        """In words."""
        if self.block is None:
            return f"the built-in {self.name}"
        return f"the block {self.block} of the built-in {self.name}"

    @property
    def kept_as(self) -> str:
        """The name, in `templates/.ejected/`, of the text as it was."""
        return f"{self.name}{'' if self.block is None else f'.{self.block}'}{SUFFIX}"


def names() -> list[str]:
    """The built-in templates, parts of templates too."""
    folder = templates_dir()
    return sorted(
        p.relative_to(folder).as_posix().removesuffix(SUFFIX) for p in folder.rglob(f"*{SUFFIX}")
    )


def builtin_text(name: str, block: str | None = None) -> str:
    """A built-in template, or one block of it, its tags included.

    Raises UsageError where there is none.
    """
    if name not in names():
        raise UsageError(
            f'there is no built-in template "{name[:60]}"', fix=f"known: {', '.join(names())}"
        )
    text = (templates_dir() / f"{name}{SUFFIX}").read_text(encoding="utf-8")
    if block is None:
        return text
    blocks = _blocks(text)
    if block not in blocks:
        raise UsageError(
            f'the template {name} has no block "{block[:60]}"',
            fix=f"its blocks: {', '.join(blocks)}" if blocks else "it has none: eject all of it",
        )
    return blocks[block]


def block_names(text: str) -> list[str]:
    """The blocks of a template, in their order."""
    return re.findall(_BLOCK, text)


def _blocks(text: str) -> dict[str, str]:
    """Each block from its first tag to its last; the built-in ones do not nest."""
    found = re.finditer(rf"{_BLOCK}\n.*?{_END}\n", text, re.DOTALL)
    return {match[1]: match[0] for match in found}


def stamp_now(name: str, block: str | None) -> Stamp:
    """The stamp of a copy that is taken now."""
    return Stamp(__version__, name, block, _digest(builtin_text(name, block)))


def first_line(stamp: Stamp) -> str:
    """The stamp as the first line of a copy; a comment, of which nothing is printed."""
    block = "" if stamp.block is None else f" block {stamp.block}"
    return (
        f"{{# Ejected from slurmgen {stamp.version}: {stamp.name}{block}, sha256 {stamp.digest}. "
        "What has changed since: slurmgen template show --diff #}\n"
    )


def copy(stamp: Stamp) -> str:
    """A project's template that renders what the built-in one does."""
    text = builtin_text(stamp.name, stamp.block)
    if stamp.block is not None:
        text = f'{{% extends "slurmgen/{stamp.name}{SUFFIX}" %}}\n{text}'
    return first_line(stamp) + text


def stamp_of(text: str) -> Stamp | None:
    """The stamp of a template; None where it was not ejected."""
    found = _STAMP.match(text)
    if found is None:
        return None
    return Stamp(found["version"], found["name"], found["block"], found["digest"])


def stamp_of_file(path: Path) -> Stamp | None:
    """The stamp of a template's file; None where it has none, or can't be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return stamp_of(file.readline(1000))
    except OSError:
        return None


def restamped(text: str, stamp: Stamp) -> str:
    """A copy, into which what has changed was taken, under its new stamp."""
    return first_line(stamp) + _STAMP.sub("", text, count=1)


def has_changed(stamp: Stamp) -> bool:
    """Whether the built-in text is another one than the one that was copied."""
    try:
        return _digest(builtin_text(stamp.name, stamp.block)) != stamp.digest
    except UsageError:
        # It is gone.
        return True


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()[:16]
