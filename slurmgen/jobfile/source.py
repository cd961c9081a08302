"""YAML text to plain data, and where in the file every key and value stands.

A job file is YAML 1.2, but no scalar is converted here: `4:00:00`, `0123`, `NO`,
`1e-3` and `true` arrive as the text that was written, and each field of the spec
reads the text by its own grammar. Only an empty value, `~` and `null` become None.
So nothing can lose its meaning on the way (PyYAML's own YAML 1.1 rules would make
45000 of `12:30:00`, 83 of `0123` and False of `NO`).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from slurmgen.diagnostics import ERROR, Diagnostic, Place
from slurmgen.errors import InvalidInput, Refusal, UnavailableError
from slurmgen.files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from slurmgen.diagnostics import KeyPath

_NULL = ("", "~", "null", "Null", "NULL")
_STRING_TAG = "tag:yaml.org,2002:str"
_COLLECTION_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
# An alias may stand for a whole tree; this many nodes is more than any job file has
# and few enough that a file made of nested aliases cannot fill the memory.
_MAX_NODES = 20_000
# The deepest value of a job file is four levels down (`sbatch`, an option, its `value`).
_MAX_DEPTH = 32

_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _TextLoader(_BaseLoader):  # type: ignore[misc]
    """Parses, but resolves no plain scalar to anything but text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own protocol


class Span(NamedTuple):
    """Where a key and its value start, counted from 1, and how long the key is."""

    key_line: int
    key_column: int
    key_length: int
    value_line: int
    value_column: int
    value_length: int


class Source(NamedTuple):
    """A file's data with the span of every key path (`("setup", "modules", 0)`)."""

    path: str
    text: str
    data: dict[str, Any]
    spans: dict[KeyPath, Span]
    # Keys whose value came from elsewhere, and from where (`--set nodes=4`).
    elsewhere: Mapping[KeyPath, str] = MappingProxyType({})

    def has(self, key: KeyPath) -> bool:
        """Whether the file, or the command line, says something of `key`."""
        return key in self.spans or key in self.elsewhere

    def locate(self, key: KeyPath, *, at_key: bool = False) -> Place:
        """The place of `key`, or of its nearest parent that is in the file."""
        for other, origin in self.elsewhere.items():
            if key[: len(other)] == other:
                return Place(1, 1, path=origin)
        while key and key not in self.spans:
            key = key[:-1]
        span = self.spans.get(key)
        if span is None:
            return Place(1, 1, path=self.path)
        if at_key:
            return Place(span.key_line, span.key_column, span.key_length, self.path)
        return Place(span.value_line, span.value_column, span.value_length, self.path)


def at_key(refusal: Refusal, source: Source) -> Diagnostic:
    """The Diagnostic of a Refusal that knows its key, in a file."""
    path = refusal.path
    if path not in source.spans and path not in source.elsewhere:
        # Options are known by their name with dashes, and may be written with underscores.
        other = tuple(str(part).replace("-", "_") for part in path)
        path = other if other in source.spans else path
    # A variable or an option is wrong by its name as often as by its value.
    by_name = len(path) > 1 and path[0] in ("env", "sbatch", "vars")
    return refusal.at(source.locate(path, at_key=by_name))


def read_text(path: Path) -> str:
    """The file as text; raises UnavailableError, or InvalidInput where it is not UTF-8."""
    try:
        raw = read_bytes(path)
    except OSError as error:
        raise UnavailableError(
            f"cannot read {path}: {error.strerror}", fix="check the path and its permissions"
        ) from error
    return decode(raw, str(path))


def decode(raw: bytes, path: str) -> str:
    """The bytes of a file as text; raises InvalidInput where they are not UTF-8."""
    # Not "utf-8-sig", whose errors count from behind the mark.
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line, column = _line_and_column(raw[: error.start].decode())
        raise InvalidInput(
            [
                Diagnostic(
                    Place(line, column, path=path),
                    "not-utf-8",
                    "SG001",
                    ERROR,
                    f"byte 0x{raw[error.start]:02x} is not UTF-8 text",
                    "YAML files are UTF-8",
                    "save the file as UTF-8",
                )
            ]
        ) from error


def parse_yaml(text: str, path: str) -> Source:
    """Parse one YAML document whose top level is a mapping.

    Raises InvalidInput with every duplicate key, or with the one syntax error.
    """
    _check_encodable(text, path)
    try:
        loader = _TextLoader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise InvalidInput([_syntax_error(error, text, path)]) from error
    except RecursionError:
        raise InvalidInput([_problem(path, 1, 1, *_TOO_DEEP)]) from None
    if node is None:
        return Source(path, text, {}, {})
    converter = _Converter(path)
    data = converter.convert(node, ())
    if not isinstance(data, dict):
        mark = node.start_mark
        converter.problems.append(
            _problem(
                path,
                mark.line + 1,
                mark.column + 1,
                "the file is not a mapping of keys to values",
                "a job file is lines of the form `key: value`",
                "start with, say, `nodes: 2`",
            )
        )
    if converter.problems:
        raise InvalidInput(converter.problems)
    return Source(path, text, data, converter.spans)


def _check_encodable(text: str, path: str) -> None:
    """Raises InvalidInput for bytes of an argument that were no text."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line, column = _line_and_column(text[: error.start])
        message = "a byte here is not UTF-8 text"
        raise InvalidInput(
            [_problem(path, line, column, message, "YAML is UTF-8", "write it as UTF-8")]
        ) from None


# Message, why and fix.
_TOO_DEEP = (
    f"values are nested more than {_MAX_DEPTH} deep",
    "no value of a job file is so deep",
    "check the brackets and the indentation",
)


class _Converter:
    def __init__(self, path: str) -> None:
        self.path = path
        self.spans: dict[KeyPath, Span] = {}
        self.problems: list[Diagnostic] = []
        self.count = 0
        # The collections around the value that is being converted.
        self.around: list[Any] = []

    def convert(self, node: Any, key: KeyPath) -> Any:
        self.count += 1
        if self.count > _MAX_NODES:
            if self.count == _MAX_NODES + 1:
                self._report(node, "the file has too many values", "aliases multiply", "write less")
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if any(node is outer for outer in self.around):
            self._report(
                node,
                "the value holds an alias of itself",
                "it would never end",
                "write the value out in place of the alias",
            )
            return None
        if len(self.around) >= _MAX_DEPTH:
            self._report(node, *_TOO_DEEP)
            return None
        self.around.append(node)
        data = self._collection(node, key)
        self.around.pop()
        return data

    def _collection(self, node: Any, key: KeyPath) -> Any:
        if node.tag not in _COLLECTION_TAGS:
            self._unknown_tag(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._child(item, item, (*key, i)) for i, item in enumerate(node.value)]
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._report(key_node, "a key must be a single word", "", "write `key: value`")
                continue
            name = key_node.value
            if name in data:
                here = (*key, name)
                first = self.spans[here].key_line
                self._report(
                    key_node,
                    f'key "{name}" is given twice (first in line {first})',
                    "only one of the two could count, and which is easy to misread",
                    "keep one",
                )
                continue
            data[name] = self._child(key_node, value_node, (*key, name))
        return data

    def _child(self, key_node: Any, value_node: Any, key: KeyPath) -> Any:
        start, value_start = key_node.start_mark, value_node.start_mark
        self.spans[key] = Span(
            start.line + 1,
            start.column + 1,
            _length(key_node),
            value_start.line + 1,
            value_start.column + 1,
            _length(value_node),
        )
        return self.convert(value_node, key)

    def _scalar(self, node: Any) -> str | None:
        if node.tag != _STRING_TAG and node.tag != "!":
            self._unknown_tag(node)
        if not node.style and node.value in _NULL:
            return None
        return str(node.value)

    def _unknown_tag(self, node: Any) -> None:
        self._report(
            node, f"YAML tag {node.tag} has no meaning here", "values are text", "remove the tag"
        )

    def _report(self, node: Any, message: str, why: str, fix: str) -> None:
        mark = node.start_mark
        self.problems.append(
            _problem(self.path, mark.line + 1, mark.column + 1, message, why, fix, _length(node))
        )


def _length(node: Any) -> int:
    start, end = node.start_mark, node.end_mark
    return max(1, end.column - start.column) if start.line == end.line else 1


def _problem(
    path: str, line: int, column: int, message: str, why: str, fix: str, length: int = 1
) -> Diagnostic:
    place = Place(line, column, length, path)
    return Diagnostic(place, "yaml-syntax", "SG001", ERROR, message, why, fix)


def _line_and_column(before: str) -> tuple[int, int]:
    """The place of the character behind `before`."""
    lines = (before + "x").splitlines()
    return len(lines), len(lines[-1])


def _reader_error(error: Any, text: str, path: str) -> Diagnostic:
    """A character that YAML does not allow: libyaml counts bytes to it, PyYAML characters."""
    before = text[: error.position]
    if error.encoding != "unicode":
        before = text.encode()[: error.position].decode(errors="ignore")
    character = error.character
    code = character if isinstance(character, int) else ord(character)
    return _problem(
        path,
        *_line_and_column(before),
        f"character U+{code:04X} is not allowed in YAML",
        "it cannot be seen in an editor",
        'remove it, or write it as an escape in double quotes ("\\x07")',
    )


def _syntax_error(error: yaml.YAMLError, text: str, path: str) -> Diagnostic:
    if isinstance(error, yaml.reader.ReaderError):
        return _reader_error(error, text, path)
    mark = getattr(error, "problem_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    problem = getattr(error, "problem", None) or str(error)
    if "nesting depth" in problem:
        return _problem(path, line, column, *_TOO_DEEP)
    context = getattr(error, "context", None) or ""
    fix = "check the indentation, and the quotes, brackets and colons just before this place"
    if "document" in problem or "document" in context:
        fix = "keep one job in one file"
    lines = text.splitlines()
    found = lines[line - 1][column - 1 : column] if line <= len(lines) else ""
    if found == "\t":
        fix = "indent with spaces: YAML does not allow tabs"
    elif found in ("%", "@", "`"):
        fix = f"put the value in quotes: it may not start with {found}"
    elif "mapping values" in problem:
        fix = 'put a value that holds ": " in quotes'
    return _problem(path, line, column, problem, context, fix)
