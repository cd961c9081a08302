"""A Python source and the local modules it imports, read from disk: nothing here raises."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import Place
from slurmgen.reading.programs.walker import tabulate

if TYPE_CHECKING:
    from pathlib import Path

    from slurmgen.reading.programs.scopes import Table

MAIN = "__main__"

# Nobody writes a larger one by hand, and reading one takes seconds.
LARGEST_BYTES = 2_000_000

# How many local modules of one program are read, and how much of them: half a second's worth.
MOST_MODULES = 40
LARGEST_MODULES_BYTES = 400_000


class Unit(NamedTuple):
    """One source: `name` is what the program imports it as, `path` as shown to the user."""

    name: str
    path: Path
    is_package: bool
    text: str
    lines: list[str]
    tree: ast.Module
    table: Table

    def place(self, node: ast.AST) -> Place:
        """Where a node stands; columns in characters, to the end of its first line."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        last, end = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        if text.isascii():
            start, stop = column, end if last == line else len(text)
        else:
            data = text.encode()
            start = len(data[:column].decode(errors="replace"))
            whole = data[:end] if last == line else data
            stop = len(whole.decode(errors="replace"))
        return Place(line, start + 1, max(1, stop - start), str(self.path))

    def absolute(self, dotted: str) -> str:
        """An imported name without its leading dots."""
        name = dotted.lstrip(".")
        level = len(dotted) - len(name)
        if not level:
            return name
        package = [] if self.name == MAIN else self.name.split(".")
        if package and not self.is_package:
            package.pop()
        package = package[: len(package) - level + 1] if level > 1 else package
        return ".".join([*package, name])


class Unreadable(Exception):
    """A file that is no Python source we can read; the text says why.

    is_too_much: it is too large, or nested too deeply.
    """

    def __init__(self, why: str, *, is_too_much: bool = False) -> None:
        super().__init__(why)
        self.is_too_much = is_too_much


def unit(name: str, path: Path, text: str | None = None) -> Unit:
    """Read one source.

    Raises:
        Unreadable: it can't be read, or isn't Python.
    """
    try:
        source = _text(path) if text is None else text
        if len(source) > LARGEST_BYTES:
            raise Unreadable("too large", is_too_much=True)
        source = source.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
        with warnings.catch_warnings():
            # A doubtful escape in somebody's string is none of our business.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        table = tabulate(tree, name)
    except (RecursionError, MemoryError):
        raise Unreadable("nested too deeply", is_too_much=True) from None
    # LookupError: of a codec that isn't one for text, such as rot13.
    except (SyntaxError, ValueError, LookupError, OSError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from None
    is_package = path.name == "__init__.py"
    return Unit(name, path, is_package, source, source.split("\n"), tree, table)


def _text(path: Path) -> str:
    if not path.is_file():
        raise Unreadable("not a file")
    with path.open("rb") as file:
        data = file.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise Unreadable("too large", is_too_much=True)
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)


def local_modules(main: Unit) -> tuple[dict[str, Unit], tuple[str, ...]]:
    """The modules beside a source that it imports, by name; and the imports not found there.

    One level deep: what those import in turn is not followed, but for what a package's
    ``__init__`` hands on from its own folder.
    """
    found: dict[str, Unit] = {}
    missing: dict[str, None] = {}
    seen = {_identity(main.path)}
    size = 0
    folders = _folders(main.path)
    pending = list(dict.fromkeys(_imported(main)))
    for absolute in pending:
        candidates = _candidates(folders, absolute)
        if not candidates:
            missing.setdefault(absolute)
        for name, path in candidates:
            identity = _identity(path)
            if name in found or identity in seen or len(found) >= MOST_MODULES:
                continue
            seen.add(identity)
            size += _size(path)
            if size > LARGEST_MODULES_BYTES:
                missing.setdefault(absolute)
                return found, tuple(missing)
            try:
                module = unit(name, path)
            except Unreadable:
                missing.setdefault(absolute)
                continue
            found[name] = module
            if module.is_package:
                pending += [item for item in _imported(module) if item.startswith(f"{name}.")]
    return found, tuple(missing)


def _imported(source: Unit) -> list[str]:
    names = [name for name, _ in source.table.imports]
    return [source.absolute(name) for name in (*names, *source.table.stars)]


def _folders(path: Path) -> list[Path]:
    """Where imports are looked for: beside the file, and beside the package it lies in."""
    folder = path.parent
    root = folder
    try:
        while (root / "__init__.py").is_file() and root.parent != root:
            root = root.parent
    except (OSError, ValueError):
        return [folder]
    return list(dict.fromkeys([folder, root]))


def _candidates(folders: list[Path], dotted: str) -> list[tuple[str, Path]]:
    """The files that ``import a.b`` or ``from a import b`` runs, outermost package first."""
    return next((found for folder in folders if (found := _below(folder, dotted))), [])


def _below(folder: Path, dotted: str) -> list[tuple[str, Path]]:
    found = []
    parts = dotted.split(".")
    for count in range(1, len(parts) + 1):
        if not all(part.isidentifier() for part in parts[:count]):
            break
        base = folder.joinpath(*parts[:count])
        name = ".".join(parts[:count])
        try:
            if base.with_suffix(".py").is_file():
                found.append((name, base.with_suffix(".py")))
                break
            if not base.is_dir():
                break
            if (base / "__init__.py").is_file():
                found.append((name, base / "__init__.py"))
        except (OSError, ValueError):
            break
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _identity(path: Path) -> str:
    try:
        return str(path.resolve())
    except (OSError, RuntimeError):
        return str(path)
