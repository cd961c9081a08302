"""The directive block of a script -> keys with their comments, and what stays as it stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.importer.keys import Key, keys_of
from slurmgen.importer.yaml_text import is_printable
from slurmgen.script.stamp import MOST_COMMENTS, line_of
from slurmgen.slurm.options.catalog import ALIASES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.reading.script import BatchScript
    from slurmgen.slurm.directives import Directive, DirectiveProblem

# Of the options of a family the last one counts, whatever their names.
_FAMILIES = {
    **ALIASES,
    "oversubscribe": "exclusive",
    "no-requeue": "requeue",
    # Each of these sets what another has set.
    **dict.fromkeys(
        ("sockets-per-node", "cores-per-socket", "threads-per-core", "hint", "ntasks-per-core"),
        "extra-node-info",
    ),
}
_SEPARATOR = re.compile(r"#SBATCH\s*(?:het|pack)job\b")
# Comments that speak to a program, not to a person: they stay where the program looks.
_PRAGMA = re.compile(r"#\s*(?:shellcheck\b|vim?:|-\*-|///|(?:en)?coding[:=])")
# A script with more directives is not read to its end.
_MOST = 1900
# What slurmgen writes below the interpreter line.
_HEADER = ("# Rendered by slurmgen ", "# Change ")


class LiftedKey(NamedTuple):
    """A key, with the comments over and behind the directive."""

    key: Key
    above: tuple[str, ...] = ()
    beside: str = ""


class Lifted(NamedTuple):
    """The directives of a script taken apart.

    top: the comments that introduce the script. keys: in the script's order. kept: directive
    lines that have no keys, with the comments over them. rest: the lines behind the last
    directive, from line rest_line on. notes: the line and what could not become keys.
    """

    top: tuple[str, ...]
    keys: tuple[LiftedKey, ...]
    kept: tuple[str, ...]
    rest: tuple[str, ...]
    notes: tuple[tuple[int, str], ...]
    rest_line: int


class _Line(NamedTuple):
    """A directive line; `keys` is None where it stays as it stands, and `why` says why."""

    directives: tuple[Directive, ...]
    keys: tuple[tuple[Key, ...], ...] | None
    why: str = ""


def rendered_header(lines: Sequence[str]) -> int:
    """How many lines at the top are the interpreter line and slurmgen's own header, its stamp."""
    stamped = line_of("\n".join(lines[:MOST_COMMENTS]))
    if stamped:
        return stamped
    first = 1 if lines and lines[0].startswith("#!") else 0
    header = lines[first : first + len(_HEADER)]
    if len(header) == len(_HEADER) and all(map(str.startswith, header, _HEADER)):
        return first + len(_HEADER)
    return first


def lift(script: BatchScript) -> Lifted:
    """Take the directive block of a script apart; nothing of it is lost."""
    first = rendered_header(script.lines)
    block = script.block
    if len(block.directives) + len(block.problems) >= _MOST:
        why = "there are more directives than a job file has keys"
        return Lifted((), (), (), tuple(script.lines[first:]), ((1, why),), first + 1)
    found = _lines(script)
    last = max(found, default=first)
    _settle(found)
    effective = {_family(d): d for line in found.values() if line.keys for d in line.directives}
    is_hetjob = False
    top: list[str] = []
    pending: list[str] = []
    keys: list[LiftedKey] = []
    kept: list[str] = []
    notes: list[tuple[int, str]] = []
    for number in range(first + 1, last + 1):
        text = script.lines[number - 1]
        is_hetjob = is_hetjob or _SEPARATOR.match(text) is not None
        line = found.get(number)
        if line is None:
            if text.strip() in ("", "#"):
                # What stands above an empty line, before any key, introduces the script.
                if not keys and not kept:
                    top += pending
                    pending = []
                continue
            if text.strip() == "#SBATCH":
                continue
            if is_hetjob or not script.is_shell or not _is_for_people(text):
                kept.append(text)
            else:
                pending.append(text)
        elif line.keys is None:
            kept += [*pending, text]
            pending = []
            if line.why:
                notes.append((number, line.why))
        else:
            beside = _beside(text, script, line)
            if not _is_for_people(beside):
                kept.append(beside)
                beside = ""
            for directive, given in zip(line.directives, line.keys, strict=True):
                if effective[_family(directive)] is not directive:
                    if directive.option == "mail-type":
                        why = "the types of several lines are added up, which 26.05 doesn't do"
                        notes.append((number, f"--mail-type is given again; {why}"))
                        continue
                    notes.append((number, f"--{directive.option} is given again; the last counts"))
                    continue
                behind = beside if directive is line.directives[-1] else ""
                for at, key in enumerate(given):
                    above = tuple(pending) if not at else ()
                    keys.append(LiftedKey(key, above, behind if not at else ""))
                pending = []
            if beside and not (keys and keys[-1].beside == beside):
                pending.append(beside)
    kept += pending
    rest = tuple(script.lines[last:])
    return Lifted(tuple(top), _merged_mail(keys, found), tuple(kept), rest, tuple(notes), last + 1)


def _lines(script: BatchScript) -> dict[int, _Line]:
    """The directive lines by their number."""
    block = script.block
    grouped: dict[int, list[Directive]] = {}
    for directive in block.directives:
        grouped.setdefault(directive.line, []).append(directive)
    found: dict[int, _Line] = {}
    # The GPUs have one key.
    options = {d.option for d in block.directives if d.option != "gres" or "gpu" in (d.value or "")}
    twice = {"gres", "gpus-per-node"} <= options
    for number, directives in grouped.items():
        given = [None if twice and d.option == "gres" else keys_of(d) for d in directives]
        missing = [d for d, keys in zip(directives, given, strict=True) if keys is None]
        if missing:
            why = "no key says " + " ".join(map(_shown, missing))
            found[number] = _Line(tuple(directives), None, why)
        elif any(directive.component for directive in directives):
            found[number] = _Line(tuple(directives), None)
        else:
            keys = tuple(tuple(keys or ()) for keys in given)
            found[number] = _Line(tuple(directives), keys)
    for problem in block.problems:
        if problem.kind == "after-command" or _is_of_a_plugin(problem, found.get(problem.line)):
            continue
        directives_here = found[problem.line].directives if problem.line in found else ()
        kind, first_line = problem.kind.replace("-", " "), problem.text.partition("\n")[0]
        found[problem.line] = _Line(directives_here, None, f"{kind}: {first_line[:80]}")
        for number in range(problem.line + 1, min(problem.last_line + 1, block.ends_at_line)):
            found.setdefault(number, _Line((), None))
    for number in block.translated:
        if number < block.ends_at_line:
            why = "sbatch translates this line of another batch system"
            found[number] = _Line((), None, why)
    for number in range(1, min(block.ends_at_line, len(script.lines) + 1)):
        if block.components > 1 and _SEPARATOR.match(script.lines[number - 1]):
            found[number] = _Line((), None, "a heterogeneous job has no keys for its components")
    return found


def _is_of_a_plugin(problem: DirectiveProblem, line: _Line | None) -> bool:
    """Whether the option is unknown because a site's plugin has it, and could be lifted."""
    if problem.kind != "unknown-option" or line is None or line.keys is None:
        return False
    paths = {key.path for keys in line.keys for key in keys}
    return any(path[1:] == (problem.text.lstrip("-"), "plugin") for path in paths)


def _settle(found: dict[int, _Line]) -> None:
    """Options of a family become keys all or none: kept lines come behind all keys."""
    names: dict[str, set[str]] = {}
    for line in found.values():
        for directive in line.directives:
            if directive.option not in ALIASES:
                # The flags of several signals add up.
                named = f"signal={directive.value}" if directive.option == "signal" else ""
                names.setdefault(_family(directive), set()).add(named or directive.option)
    opposed = {family for family, options in names.items() if len(options) > 1}
    while True:
        kept = opposed | {
            _family(directive)
            for line in found.values()
            if line.keys is None
            for directive in line.directives
            if not directive.component
        }
        more = [
            number
            for number, line in found.items()
            if line.keys is not None and any(_family(d) in kept for d in line.directives)
        ]
        if not more:
            return
        for number in more:
            why = "another line, which has no key, says something of the same"
            found[number] = found[number]._replace(keys=None, why=why)


def _family(directive: Directive) -> str:
    return _FAMILIES.get(directive.option, directive.option)


def _merged_mail(keys: list[LiftedKey], found: dict[int, _Line]) -> tuple[LiftedKey, ...]:
    """Slurm adds up the mail types of several directives; the last of any other option counts.

    Not on 26.05, where the last one counts (seen on 26.05.5, and not on 24.11.5).
    """
    types: list[str] = []
    for _, line in sorted(found.items()):
        for given in line.keys or ():
            for key in given:
                if key.path == ("mail_type",):
                    types += [t for t in key.value.split(",") if t not in types]
    return tuple(
        lifted._replace(key=Key(("mail_type",), ",".join(types)))
        if lifted.key.path == ("mail_type",)
        else lifted
        for lifted in keys
    )


def _shown(directive: Directive) -> str:
    value = "" if directive.value is None else f"={directive.value[:60]}"
    return f"--{directive.option}{value}"


def _beside(text: str, script: BatchScript, line: _Line) -> str:
    """The comment behind the options of a line."""
    end = line.directives[-1].end - script.offset(line.directives[-1].line)
    rest = text[end:].strip()
    return rest if rest.startswith("#") else ""


def _is_for_people(comment: str) -> bool:
    return is_printable(comment) and _PRAGMA.match(comment) is None
