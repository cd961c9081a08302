"""What went wrong in a template, at its own line, in words of a template's author."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slurmgen.diagnostics import ERROR, Diagnostic, Place
from slurmgen.resources import templates_dir

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jinja2

_NO_NAME = re.compile(r"'(?P<name>\w+)' is undefined")
_NO_VARIABLE = re.compile(
    r"'slurmgen\.jobfile\.variables\.Variables object' has no \w+ '?(?P<name>\w+)'?"
)
_SEE = "slurmgen template show job prints the built-in one: its blocks, and the names that exist"


def explain(
    error: Exception, template: str, names: Mapping[str, Any], environment: jinja2.Environment
) -> Diagnostic:
    """The Diagnostic of an exception of Jinja2, or of what a template computed.

    template: the one that was asked for. names: what it may print.
    """
    from jinja2 import TemplateNotFound, TemplateSyntaxError

    place = _frame(error)
    if isinstance(error, TemplateSyntaxError):
        path = error.filename or error.name or template
        return _diagnostic((path, error.lineno), "", str(error.message), "", _SEE)
    if isinstance(error, TemplateNotFound):
        return _not_found(error, place, template, environment)
    place = place or (template, 1)
    if isinstance(error, RecursionError):
        what = "the template extends or includes itself"
        return _diagnostic(
            place,
            "",
            what,
            "it would never end",
            f'extend the built-in one as "slurmgen/{template}"',
        )
    if isinstance(error, UnicodeDecodeError):
        what = f"the template is not UTF-8 text: {error}"
        return _diagnostic(place, "", what, "", "save it as UTF-8")
    message = f"{error}" or type(error).__name__
    variable = _NO_VARIABLE.search(message)
    if variable is not None:
        return _no_variable(variable["name"], place, names["vars"])
    name = _NO_NAME.fullmatch(message)
    if name is not None:
        close = get_close_matches(name["name"], names, n=1)
        what = f'nothing is called "{name["name"]}" here'
        why = "a name that is not there prints nothing elsewhere, and here it ends the rendering"
        return _diagnostic(place, name["name"], what, why, f"write {close[0]}" if close else _SEE)
    return _diagnostic(place, "", message, "", _SEE)


def _no_variable(name: str, place: tuple[str, int], given: Any) -> Diagnostic:
    close = get_close_matches(name, list(given), n=1)
    return _diagnostic(
        place,
        f"vars.{name}",
        f"the job file gives no vars.{name}",
        f"it gives {', '.join(given)}" if len(given) else "it has no vars:",
        f"write vars.{close[0]}"
        if close
        else f"add {name}: under vars: in the job file, or write vars.{name} | default(…)",
    )


def _not_found(
    error: Any, place: tuple[str, int] | None, template: str, environment: jinja2.Environment
) -> Diagnostic:
    missing = str(error.name)
    known = [name for name in environment.list_templates() if not name.startswith(".")]
    close = get_close_matches(missing, known, n=1)
    fix = "check the name, or put the file into the project's templates/ folder"
    return _diagnostic(
        place or (template, 1),
        missing,
        f'there is no template "{missing}"',
        "names are those of files below templates/, and of the built-in ones behind slurmgen/"
        if place
        else "",
        f"write {close[0] if place else close[0].partition('.')[0]}" if close else fix,
    )


def _frame(error: Exception) -> tuple[str, int] | None:
    """The innermost template line of a run-time error: Jinja2 rewrites the traceback."""
    found = None
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        # The mark of a frame that Jinja2 made, whatever the template's file is called.
        if "__jinja_exception__" in frame.f_globals or frame.f_code.co_filename.endswith(".j2"):
            found = frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next
    return found


def _diagnostic(place: tuple[str, int], name: str, what: str, why: str, fix: str) -> Diagnostic:
    path, line = place
    column, length = _within(path, line, name)
    shown = Place(line, column, length, _shown(path))
    return Diagnostic(shown, "template", "SG010", ERROR, what, why, fix)


def _within(path: str, line: int, name: str) -> tuple[int, int]:
    """The column of `name` in its line, else that of what the line starts with; and a length."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")[line - 1]
    except (OSError, IndexError, ValueError):
        return 1, 1
    found = re.search(rf"\b{re.escape(name)}\b", text) if name else None
    if found is not None:
        return found.start() + 1, len(name)
    return len(text) - len(text.lstrip()) + 1, max(1, len(text.strip()))


def _shown(path: str) -> str:
    if not os.path.isabs(path):
        return path
    if Path(path).is_relative_to(templates_dir()):
        return path
    return os.path.relpath(path)
