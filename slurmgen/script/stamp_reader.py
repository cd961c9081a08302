"""A rendered script's stamp read back: what it says, whether it is still true, and the keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from slurmgen.script.stamp import MARK, hash_of, hash_of_text, line_of, usual_breaks, without
from slurmgen.slurm.unquoting import read_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Stamp(NamedTuple):
    """What the line says.

    job: the hash of the job file's data (`hash_of`), without what `--set` changed; script: of the
    script without this line, and of the keys in it. overrides: the keys that `--set` changed.
    keys: of the job as it was rendered, with places in the script (`keys_of` reads them); None
    where one has no place.
    """

    version: str
    source: str
    template: str
    cluster: str
    job: str
    script: str
    overrides: tuple[str, ...]
    keys: dict[str, Any] | None


def read(text: str) -> Stamp | None:
    """The stamp of a script; None where it has none, or one that can't be read."""
    at = line_of(text)
    if not at:
        return None
    line = text.split("\n", at)[at - 1]
    try:
        said = json.loads(line.removeprefix(MARK))
        keys = said.get("keys")
        return Stamp(
            version=str(said["slurmgen"]),
            source=str(said["job"]),
            template=str(said["template"]),
            cluster=str(said["cluster"]),
            job=str(said["sha256"]["job"]),
            script=str(said["sha256"]["script"]),
            overrides=tuple(map(str, said.get("set", ()))),
            keys=None if keys is None else dict(keys),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def shortened(text: str) -> str:
    """The script for people who compare it: line for line, but of the stamp only that it is one."""
    at = line_of(text)
    lines = text.split("\n")
    return "\n".join([*lines[: at - 1], f"{MARK}{{…}}", *lines[at:]]) if at else text


def is_as_rendered(text: str, stamp: Stamp) -> bool:
    """Whether nobody has changed the script since."""
    return hash_of_text(without(text) + json.dumps(stamp.keys)) == stamp.script


def changes(text: str, data: Mapping[str, Any]) -> str:
    """What has changed since a script was rendered, in words; empty where the stamp can't tell.

    data: of the job file as it is now.
    """
    said = read(text)
    if said is None:
        return ""
    found = [] if is_as_rendered(text, said) else ["the script was edited"]
    if hash_of(data) != said.job:
        found.append("the job file has changed")
    return " and ".join(found)


def keys_of(text: str, stamp: Stamp) -> dict[str, Any] | None:
    """The keys and values of the job file, all as text; None where the script doesn't hold them.

    text: the script with its stamp, as it was rendered.
    """
    if stamp.keys is None:
        return None
    try:
        found = _resolved(text.split("\n"), stamp.keys, ())
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


_Found = tuple["tuple[str | int, ...]", int]


def key_at(stamp: Stamp, line: int) -> _Found | None:
    """The key whose text stands in a line of the script, and in which line of that text.

    None where it is no text of a key's; the words of a step are not told apart.
    """
    return _key_at(stamp.keys or {}, line, ())


def _key_at(value: Any, line: int, path: tuple[str | int, ...]) -> _Found | None:
    if isinstance(value, int):
        return (path, 0) if value == line else None
    if isinstance(value, dict) and isinstance(value.get("line"), int):
        at = line - value["line"]
        return (path, at) if 0 <= at < value.get("lines", 0) else None
    inner: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    answers = (_key_at(item, line, (*path, key)) for key, item in inner)
    return next((found for found in answers if found is not None), None)


def _resolved(lines: Sequence[str], value: Any, path: tuple[str, ...]) -> Any:
    """A value with what stands at its places in the script."""
    if isinstance(value, int) and path[:1] == ("env",):
        quoted = lines[value - 1].removeprefix(f"export {path[1]}=")
        return read_words(quoted, expandable=True)[0]
    if isinstance(value, list):
        return [_resolved(lines, inner, path) for inner in value]
    if not isinstance(value, dict):
        return str(value)
    if path in _PLACED and isinstance(value.get("line"), int):
        first = value["line"]
        if "words" in value:
            words = read_words(_step(lines, first), expandable=False)
            return words[len(words) - value["words"] :]
        found = lines[first - 1 : first - 1 + value["lines"]]
        if value.get("interpreter"):
            found = [lines[0], *found]
        return "\n".join(found) + "\n" * value.get("breaks", usual_breaks(value["lines"]))
    return {str(key): _resolved(lines, inner, (*path, str(key))) for key, inner in value.items()}


_PLACED = (("command",), ("args",), ("script",), ("setup", "commands"))


def _step(lines: Sequence[str], first: int) -> str:
    """A command that goes on over several lines, in one."""
    found = lines[first - 1 :]
    last = next(at for at, line in enumerate(found) if not line.endswith(" \\"))
    return " ".join(line.removesuffix(" \\") for line in found[: last + 1])
