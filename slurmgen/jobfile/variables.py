"""`vars:` of a job file: values for a project's own template.

They reach it as everything else does: text is one Bash word already. A whole number and
true or false are what they look like, so that a template can ask and count; a list is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurmgen.errors import Refusal
from slurmgen.slurm.quoting import bash_word, check_one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Scalar = bool | int | str
Value = Scalar | tuple[Scalar, ...]

_LARGEST = 18  # digits of a number that fits 64 bits


def read_scalar(text: str) -> Scalar:
    """true, false and whole numbers in their usual form as such, else the text itself.

    `007` and `1e-3` stay text: they would be printed as something else than was written.
    Raises Refusal for what is more than a line.
    """
    check_one_line(text)
    if text in ("true", "false"):
        return text == "true"
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= _LARGEST and text == str(int(text)):
        return int(text)
    return text


def check_name(name: str) -> None:
    """Raises Refusal for what a template could not say as `vars.NAME`."""
    if name.isascii() and name.isidentifier() and not name.startswith("_"):
        return
    raise Refusal(
        f'"{name[:60]}" cannot be the name of a variable',
        why="a template says vars.NAME: letters, digits and _, a letter first",
        fix="rename it",
    )


class Variables:
    """`vars` in a template: no attribute but what the job file gives."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = {name: _quoted(value) for name, value in values.items()}

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _quoted(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(bash_word(item) if isinstance(item, str) else item for item in value)
    return bash_word(value) if isinstance(value, str) else value


def printed(value: Any) -> Any:
    """What a template prints of a value: `true`, and the words of a list in a row."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return " ".join(str(printed(item)) for item in value)
    return value
