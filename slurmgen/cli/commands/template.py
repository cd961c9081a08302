"""slurmgen template: what templates there are, one of them, and a copy of a built-in one."""

from __future__ import annotations

import os
import re
from pathlib import Path

from slurmgen import __version__
from slurmgen.cli import report
from slurmgen.errors import EXIT_FINDINGS, EXIT_OK, UsageError
from slurmgen.files import write_atomically
from slurmgen.jobfile.project import project_root, project_templates
from slurmgen.jobfile.source import read_text
from slurmgen.resources import templates_dir
from slurmgen.script.templates import ejected
from slurmgen.script.templates.ejected import SUFFIX, Stamp

_EXTENDS = re.compile(r"\{%-?\s*extends\s+[\"']([^\"']+)[\"']")
_PARTS = ("partials/", "slurmgen/")


def list_() -> int:
    """Print every template by name: where it is, what it changes, what it has missed."""
    own = _own_folder()
    rows = [(name, "built-in", _blocks(ejected.builtin_text(name))) for name in ejected.names()]
    stale = []
    for path in sorted(own.rglob(f"*{SUFFIX}")) if own else []:
        name = path.relative_to(own).as_posix().removesuffix(SUFFIX) if own else ""
        if name.startswith("."):
            continue
        text = read_text(path)
        stamp = ejected.stamp_of(text)
        if stamp is not None and ejected.has_changed(stamp):
            stale.append((name, _shown(path), stamp))
        rows.append((name, _shown(path), _described(text, stamp)))
    # A project's own comes before the built-in one of its name.
    rows.sort(key=lambda row: (row[0].startswith(_PARTS), row[0], row[1] == "built-in"))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    report.out(
        "".join(
            f"{name.ljust(widths[0])}  {where.ljust(widths[1])}  {what}".rstrip() + "\n"
            for name, where, what in rows
        )
    )
    for name, shown, stamp in stale:
        report.note(
            f"slurmgen: {shown} was ejected from slurmgen {stamp.version}, and {stamp.original} "
            "has changed since"
        )
        report.note(f"  = fix: slurmgen template show --diff {name}")
    return EXIT_OK


def show(name: str, *, diff: bool) -> int:
    """Print the template that `template: NAME` stands for, or what its original has got since.

    With `diff`: 1 where the built-in text has changed since the project took its copy.
    """
    path = _find(name)
    if not diff:
        report.out(read_text(path))
        return EXIT_OK
    own = _own_folder()
    stamp = ejected.stamp_of_file(path)
    if own is None or stamp is None:
        raise UsageError(
            f"{_shown(path)} was not ejected",
            fix=f"slurmgen template eject {name} makes a copy that knows where it is from",
        )
    if not ejected.has_changed(stamp):
        report.note(f"slurmgen: {stamp.original} is what it was in slurmgen {stamp.version}")
        return EXIT_OK
    kept = own / ejected.KEPT / stamp.kept_as
    now = ejected.builtin_text(stamp.name, stamp.block)
    if kept.is_file():
        before, label = read_text(kept), f"{stamp.original}, slurmgen {stamp.version}"
    else:
        before, label = read_text(path), _shown(path)
        report.note(f"slurmgen: {_shown(kept)} is gone: the diff shows your own changes too")
    report.out(report.diff(before, now, label, f"{stamp.original}, slurmgen {__version__}"))
    report.note(f"slurmgen: {_shown(path)} has missed the changes above")
    report.note(f"  = fix: put them in, then slurmgen template eject --merged {name}")
    return EXIT_FINDINGS


def eject(name: str, *, block: str | None, merged: bool) -> int:
    """Copy a built-in template, or one block of it, into the project; print the file's name.

    merged: the project's copy has what the built-in one has got since; only its stamp and the
    kept original become those of now. Raises UsageError for a file that exists.
    """
    root = project_root(Path("job.yaml"))
    folder = root / "templates"
    if folder == templates_dir():
        raise UsageError(
            "this is slurmgen's own repository", fix="change templates/ here, or eject elsewhere"
        )
    path = folder / f"{name}{SUFFIX}"
    present = ejected.stamp_of_file(path) if merged else None
    if merged and present is None:
        raise UsageError(f"{_shown(path)} was not ejected", fix="leave out --merged")
    stamp = ejected.stamp_now(name, present.block if present else block)
    if merged:
        text = ejected.restamped(read_text(path), stamp)
    elif path.exists():
        raise UsageError(
            f"{_shown(path)} exists, and is left as it is",
            fix=f"move it away, or read the built-in one: slurmgen template show slurmgen/{name}",
        )
    else:
        text = ejected.copy(stamp)
    _write(folder / ejected.KEPT / stamp.kept_as, ejected.builtin_text(name, stamp.block))
    _write(path, text)
    report.out(f"{_shown(path)}\n")
    _note_use(stamp)
    return EXIT_OK


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot make {_shown(path.parent)}: {error.strerror}", fix="check its permissions"
        ) from error
    write_atomically(path, text)


def _note_use(stamp: Stamp) -> None:
    if stamp.name.startswith(_PARTS):
        report.note(
            f"slurmgen: a template of yours includes it as {stamp.name}{SUFFIX}; the built-in ones "
            "go on including their own"
        )
    report.note(
        f"slurmgen: commit it together with templates/{ejected.KEPT}/, which says after an "
        "upgrade what has changed"
    )


def _find(name: str) -> Path:
    """The file that a job file means by `name`; `slurmgen/NAME` is always the built-in one."""
    own = _own_folder()
    if own is not None and not name.startswith("slurmgen/"):
        path = own / f"{name}{SUFFIX}"
        if path.is_file() and path.resolve().is_relative_to(own.resolve()):
            return path
    builtin = name.removeprefix("slurmgen/")
    if builtin in ejected.names():
        return templates_dir() / f"{builtin}{SUFFIX}"
    from difflib import get_close_matches

    known = template_names()
    close = get_close_matches(name, known, n=1)
    raise UsageError(
        f'there is no template "{name[:60]}"',
        fix=f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}",
    )


def template_names() -> list[str]:
    """Every name that there is in this project, parts too."""
    own = _own_folder()
    found = own.rglob(f"*{SUFFIX}") if own else ()
    ours = {p.relative_to(own).as_posix().removesuffix(SUFFIX) for p in found} if own else set()
    return sorted({*ejected.names(), *(name for name in ours if not name.startswith("."))})


def _own_folder() -> Path | None:
    return project_templates(project_root(Path("job.yaml")))


def _described(text: str, stamp: Stamp | None) -> str:
    parts = []
    extends = _EXTENDS.search(text)
    if extends:
        parts.append(f"extends {extends[1].removesuffix(SUFFIX)}")
    if stamp is not None:
        changed = ", the built-in one has changed since" if ejected.has_changed(stamp) else ""
        parts.append(f"ejected from slurmgen {stamp.version}{changed}")
    return "; ".join(filter(None, [*parts, _blocks(text)]))


def _blocks(text: str) -> str:
    found = ejected.block_names(text)
    return f"blocks: {', '.join(found)}" if found else ""


def _shown(path: Path) -> str:
    return os.path.relpath(path)
