"""The only printer: diagnostics as text, results on stdout."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.diagnostics import order
from slurmgen.errors import InvalidInput, SlurmgenError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TextIO

    from slurmgen.diagnostics import Diagnostic, Place


# How `lint` and `check` report.
FORMATS = ("text", "json", "github", "sarif")


def out(text: str) -> None:
    """The result, on stdout, as UTF-8 whatever the locale says (and the bytes of a script)."""
    # None: the shell closed it (`>&-`).
    if sys.stdout is None:
        raise UnavailableError("cannot write to stdout: it is closed", fix=_STDOUT_FIX)
    try:
        sys.stdout.buffer.write(text.encode(errors="surrogateescape"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise stdout_refused(error) from error


def show(text: str) -> None:
    """A result for a person to read, on stdout; no control character gets there."""
    out("\n".join(map(_visible, text.split("\n"))))


_STDOUT_FIX = "check where the output goes, or write to a file with -o"


def stdout_refused(error: OSError) -> UnavailableError:
    """What to raise where stdout takes nothing more; it is given nothing more."""
    discard_stdout()
    return UnavailableError(f"cannot write to stdout: {error.strerror}", fix=_STDOUT_FIX)


def discard_stdout() -> None:
    """Drop what stdout did not take: Python would complain of it at exit."""
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    # Under a test, or in a notebook, it may be no file.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def note(text: str) -> bool:
    """A line (or several) for the person, on stderr; no control character gets there.

    Returns whether stderr took it.
    """
    if sys.stderr is None:
        return False
    try:
        sys.stderr.write("\n".join(map(_visible, text.split("\n"))) + "\n")
        sys.stderr.flush()
    except OSError:
        # Python would try once more at exit, and end with a status of its own.
        _discard(sys.stderr)
        return False
    return True


def error(problem: SlurmgenError) -> None:
    """A SlurmgenError on stderr, its fix on a line of its own."""
    if isinstance(problem, InvalidInput):
        note(format_text(problem.diagnostics, texts_of(problem.diagnostics)))
        return
    note(f"slurmgen: {problem}")
    if problem.fix:
        note(f"  = fix: {problem.fix}")


def texts_of(diagnostics: Iterable[Diagnostic]) -> dict[str, str]:
    """The text of each file that a diagnostic points into, as far as it can be read."""
    texts = {}
    for path in {diagnostic.location.path for diagnostic in diagnostics}:
        with suppress(OSError, ValueError):
            texts[path] = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    return texts


def formatted(found: Iterable[Diagnostic], texts: Mapping[str, str], format_: str) -> str:
    """A report in one of FORMATS; texts: as `texts_of` returns them."""
    if format_ == "json":
        return format_json(found)
    if format_ == "github":
        return format_github(found)
    if format_ == "sarif":
        from slurmgen.lint import sarif

        return sarif.format_sarif(found, texts)
    return format_text(found, texts)


def format_text(diagnostics: Iterable[Diagnostic], texts: Mapping[str, str]) -> str:
    """Diagnostics sorted by place, each with the line it is about where `texts` has the file."""
    lines = {path: text.split("\n") for path, text in texts.items()}
    return "\n".join(
        "\n".join(_format(diagnostic, lines.get(diagnostic.location.path, [])))
        for diagnostic in sorted(diagnostics, key=order)
    )


def _format(diagnostic: Diagnostic, source: Sequence[str]) -> list[str]:
    path, line, column = diagnostic.location.start
    code = f"{diagnostic.rule} {diagnostic.code}".strip()
    first = f"{path}:{line}:{column}: {diagnostic.severity}: {diagnostic.message} [{code}]"
    lines = [_visible(first)]
    margin = " " * len(str(line))
    if 0 < line <= len(source) and source[line - 1].strip():
        shown = _visible(source[line - 1].rstrip("\r").replace("\t", " "))
        if len(shown) <= 160:
            marker = "^" + "~" * (min(diagnostic.location.length, len(shown) - column + 1) - 1)
            lines += [
                f"{margin} |",
                f"{line} | {shown}",
                f"{margin} | {' ' * (column - 1)}{marker}",
            ]
    lines += [f"{margin} = also: {_visible(_place(other))}" for other in diagnostic.also]
    if diagnostic.why:
        lines.append(f"{margin} = why: {_visible(diagnostic.why)}")
    if diagnostic.fix:
        lines.append(f"{margin} = fix: {_visible(diagnostic.fix)}")
    return lines


def diff(before: str, after: str, from_file: str, to_file: str) -> str:
    """A unified diff; "" where there is no difference."""
    import difflib

    lines = difflib.unified_diff(_lines(before), _lines(after), fromfile=from_file, tofile=to_file)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(text: str) -> list[str]:
    """With their ends; what `patch` takes for a line is one."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def format_json(diagnostics: Iterable[Diagnostic]) -> str:
    """An array of objects, one per diagnostic."""
    import json

    found = [
        {
            "path": d.location.path,
            "line": d.location.line,
            "column": d.location.column,
            "rule": d.rule,
            "code": d.code,
            "severity": d.severity,
            "message": d.message,
            "why": d.why,
            "fix": d.fix,
        }
        for d in sorted(diagnostics, key=order)
    ]
    return json.dumps(found, indent=2, ensure_ascii=False)


def format_github(diagnostics: Iterable[Diagnostic]) -> str:
    """Workflow commands of GitHub Actions, which shows them in the diff."""
    return "\n".join(map(_github_command, sorted(diagnostics, key=order)))


def _github_command(diagnostic: Diagnostic) -> str:
    path, line, column = diagnostic.location.start
    properties = {
        "file": path,
        "line": str(line),
        "col": str(column),
        "endColumn": str(column + diagnostic.location.length),
        "title": f"{diagnostic.rule} {diagnostic.code}",
    }
    shown = ",".join(f"{key}={_github_property(value)}" for key, value in properties.items())
    parts = [diagnostic.message]
    if diagnostic.why:
        parts.append(f"why: {diagnostic.why}")
    if diagnostic.fix:
        parts.append(f"fix: {diagnostic.fix}")
    return f"::{diagnostic.severity} {shown}::{_github_data(chr(10).join(parts))}"


def _github_data(text: str) -> str:
    text = "".join(c if c in "\r\n\t" or c.isprintable() else "?" for c in text)
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _github_property(text: str) -> str:
    return _github_data(text).replace(":", "%3A").replace(",", "%2C")


def _place(place: Place) -> str:
    return ":".join(map(str, place.start))


def _visible(text: str) -> str:
    """No control character of a file reaches the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else "?" for c in text)
