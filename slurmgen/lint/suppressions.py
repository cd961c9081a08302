"""`# slurmgen: ignore[rule] reason`: findings that a person has answered for.

The comments are looked for in the text, not in a parse of it: a script inside a string
(`bash -c '…'`) or a here-document has comments too, and findings.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import Edit, Place
from slurmgen.lint import registry
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

# Names that are no rule's, and for which the nearest one is looked for.
_MOST_SUGGESTED = 20

Lines = tuple[int, int]  # the first and the last, counted from 1

_COMMENT = re.compile(
    r"""
    (?<!\S) \# [ \t]* slurmgen: [ \t]* (?P<verb> [\w-]*)
    [ \t]* (?P<names> \[ [^]\r\n]* \])?
    (?P<reason> (?: (?! \# [ \t]* slurmgen: ) [^\r\n] )* )
    """,
    re.VERBOSE,
)


class Suppression(NamedTuple):
    """A comment; `start` and `end` are offsets in the text of its file.

    names: as written, each with the column where it stands. alone: no code on its line.
    lines: its own, and the next where it is for that; None: all of the file.
    """

    line: int
    column: int
    start: int
    end: int
    names: tuple[tuple[str, int], ...]
    reason: str
    alone: bool
    lines: Lines | None
    problem: str = ""


def read(text: str) -> list[Suppression]:
    """The comments of a file, in order."""
    # Most files have none, and then need not be looked through.
    if "slurmgen:" not in text:
        return []
    found: list[Suppression] = []
    head = True
    offset = 0
    for number, line in enumerate(text.split("\n"), start=1):
        code = line.strip()
        head = head and (not code or code.startswith("#"))
        matches = list(_COMMENT.finditer(line))
        alone = bool(matches) and not line[: matches[0].start()].strip()
        found += [_suppression(match, number, offset, alone, head) for match in matches]
        offset += len(line) + 1
    return _aimed(found)


Aimed = dict[str, dict[int, list[tuple[Suppression, str]]]]


def by_rule(comments: Iterable[Suppression]) -> Aimed:
    """Those that suppress anything, and as what each names the rule.

    By the rule's name and by each line they are for; of the whole file under 0.
    """
    found: Aimed = {}
    for comment in comments:
        if comment.problem:
            continue
        named: dict[str, str] = {}
        for name, _ in comment.names:
            rule = registry.find(name)
            if rule is not None:
                named.setdefault(rule.name, name)
        for line in {0} if comment.lines is None else set(comment.lines):
            for rule_name, name in named.items():
                of_rule = found.setdefault(rule_name, {})
                of_rule.setdefault(line, []).append((comment, name))
    return found


def _suppression(
    match: re.Match[str], line: int, offset: int, alone: bool, head: bool
) -> Suppression:
    listed = match["names"] or ""
    names = tuple(
        (name.group(), match.start("names") + name.start() + 1)
        for name in re.finditer(r"[^][,\s]+", listed)
    )
    whole_file = match["verb"] == "ignore-file"
    problem = ""
    if match["verb"] not in ("ignore", "ignore-file"):
        problem = f'"slurmgen: {match["verb"]}" means nothing'
    elif not names:
        problem = "the comment names no rule"
    elif whole_file and not head:
        problem = "ignore-file has no effect behind the first command"
    return Suppression(
        line,
        match.start() + 1,
        offset + match.start(),
        offset + match.end(),
        names,
        match["reason"].strip(),
        alone,
        None if whole_file else (line, line),
        problem,
    )


def _aimed(found: list[Suppression]) -> list[Suppression]:
    """Those alone on a line aim at the next line that is not one of them."""
    own = {comment.line for comment in found if comment.alone}
    return [_at_next_line(comment, own) for comment in found]


def _at_next_line(comment: Suppression, own: Collection[int]) -> Suppression:
    if not comment.alone or comment.lines is None:
        return comment
    target = comment.line + 1
    while target in own:
        target += 1
    # Its own line too, which may be inside a command over several lines.
    return comment._replace(lines=(comment.line, target))


def problems(
    comments: Iterable[Suppression],
    used: Collection[tuple[Suppression, str]],
    judged: Collection[registry.Rule],
    text: str,
) -> Iterator[Finding]:
    """What is wrong with the comments themselves, as findings of unused-suppression.

    used: the comments that suppressed something, each with the name it did so by. judged:
    the rules of which it is known that they had nothing to say.
    """
    unknown = 0
    for comment in comments:
        place = Place(comment.line, comment.column, comment.end - comment.start)
        if comment.problem:
            yield Finding(
                place,
                comment.problem,
                "it suppresses nothing",
                "write `# slurmgen: ignore[rule] reason`, or `ignore-file[rule]` above the first "
                "command",
            )
            continue
        unused = []
        for name, column in comment.names:
            rule = registry.find(name)
            if rule is None:
                unknown += 1
                near = registry.suggestion(name) if unknown <= _MOST_SUGGESTED else ""
                fix = near or "remove it"
                at_name = Place(comment.line, column, len(name))
                yield Finding(at_name, f'there is no rule "{name}"', "it suppresses nothing", fix)
            elif rule in judged and (comment, name) not in used:
                unused.append((name, column))
        if unused:
            yield _unused(comment, unused, text)
        elif not comment.reason:
            yield Finding(
                place,
                "the suppression gives no reason",
                "nobody can tell whether it still holds",
                "write the reason behind the bracket",
            )


def _unused(comment: Suppression, unused: list[tuple[str, int]], text: str) -> Finding:
    names = ", ".join(name for name, _ in unused)
    name, column = unused[0]
    return Finding(
        Place(comment.line, column, len(name)),
        f"nothing here is suppressed by {names}",
        "the comment would silence the next fault of this kind without a word",
        "remove it",
        edits=(_without(comment, {column for _, column in unused}, text),),
    )


def _without(comment: Suppression, columns: set[int], text: str) -> Edit:
    """Takes the names at these columns out, or the whole comment if none is left."""
    kept = [name for name, column in comment.names if column not in columns]
    if kept:
        start = text.index("[", comment.start) + 1
        return Edit(start, text.index("]", start), ", ".join(kept))
    line_start = text.rfind("\n", 0, comment.start) + 1
    line_end = text.find("\n", comment.end)
    line_end = len(text) if line_end < 0 else line_end
    if text[comment.end : line_end].strip():
        # Another comment follows, which needs the blank before it.
        return Edit(comment.start, comment.end, "")
    before = text[line_start : comment.start]
    if not before.strip():
        return Edit(line_start, min(line_end + 1, len(text)), "")
    return Edit(line_start + len(before.rstrip()), comment.end, "")
