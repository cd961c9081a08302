"""The only printer: diagnostics as text, results on stdout."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.errors import InvalidInput, SlurmgenError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slurmgen.diagnostics import Diagnostic


def out(text: str) -> None:
    """The result, on stdout, as UTF-8 whatever the locale says."""
    # None: the shell closed it (`>&-`).
    if sys.stdout is None:
        raise UnavailableError("cannot write to stdout: it is closed", fix=_STDOUT_FIX)
    try:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise stdout_refused(error) from error


_STDOUT_FIX = "check where the output goes, or write to a file with -o"


def stdout_refused(error: OSError) -> UnavailableError:
    """What to raise where stdout takes nothing more; it is given nothing more."""
    discard_stdout()
    return UnavailableError(f"cannot write to stdout: {error.strerror}", fix=_STDOUT_FIX)


def discard_stdout() -> None:
    """Drop what stdout did not take: Python would complain of it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    """A line (or several) for the person, on stderr; no control character gets there."""
    if sys.stderr is None:
        return
    with suppress(OSError):
        sys.stderr.write("\n".join(map(_visible, text.split("\n"))) + "\n")
        sys.stderr.flush()


def error(problem: SlurmgenError) -> None:
    """A SlurmgenError on stderr, its fix on a line of its own."""
    if isinstance(problem, InvalidInput):
        note(format_text(problem.diagnostics, _texts(problem.diagnostics)))
        return
    note(f"slurmgen: {problem}")
    if problem.fix:
        note(f"  = fix: {problem.fix}")


def _texts(diagnostics: Iterable[Diagnostic]) -> dict[str, str]:
    """The text of each file that a diagnostic points into, as far as it can be read."""
    texts = {}
    for path in {diagnostic.location.path for diagnostic in diagnostics}:
        with suppress(OSError, ValueError):
            texts[path] = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    return texts


def format_text(diagnostics: Iterable[Diagnostic], texts: Mapping[str, str]) -> str:
    """Diagnostics sorted by place, each with the line it is about where `texts` has the file."""
    return "\n".join(
        "\n".join(_format(diagnostic, texts.get(diagnostic.location.path)))
        for diagnostic in sorted(diagnostics)
    )


def _format(diagnostic: Diagnostic, text: str | None) -> list[str]:
    path, line, column = diagnostic.location
    code = f"{diagnostic.rule} {diagnostic.code}".strip()
    first = f"{path}:{line}:{column}: {diagnostic.severity}: {diagnostic.message} [{code}]"
    lines = [_visible(first)]
    margin = " " * len(str(line))
    source = text.splitlines() if text else []
    if 0 < line <= len(source) and source[line - 1].strip():
        shown = _visible(source[line - 1].replace("\t", " "))
        if len(shown) <= 160:
            marker = "^" + "~" * (min(diagnostic.length, len(shown) - column + 1) - 1)
            lines += [
                f"{margin} |",
                f"{line} | {shown}",
                f"{margin} | {' ' * (column - 1)}{marker}",
            ]
    if diagnostic.why:
        lines.append(f"{margin} = why: {_visible(diagnostic.why)}")
    if diagnostic.fix:
        lines.append(f"{margin} = fix: {_visible(diagnostic.fix)}")
    return lines


def _visible(text: str) -> str:
    """No control character of a file reaches the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else "?" for c in text)
