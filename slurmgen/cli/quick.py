"""The fast way in: plain command lines of verbs that run in editors, hooks and loops.

What these cost is mostly imports, so a plain one is recognised before the parser is loaded;
whatever else is on the command line, a wrong option too, is left to the parser.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from slurmgen.cli import verbs

if TYPE_CHECKING:
    from slurmgen.cli.verbs import Verb


def run(words: list[str]) -> int | None:
    """The status of a verb, or of a help text; None where the parser has to take the words."""
    verb, rest = verbs.called(words)
    if rest in (["--help"], ["-h"]):
        return _help(" ".join(["slurmgen", *words[:-1]]), verb)
    values = plain(rest, verb) if verb.quick else None
    return None if values is None else verb.run(values)


def plain(words: list[str], verb: Verb) -> dict[str, Any] | None:
    """The values of a verb with one argument that takes all words; None: not plain."""
    (argument,) = verb.arguments
    options = {flag: option for option in verb.options for flag in option.flags}
    others: list[str] = []
    found: dict[str, Any] = {}
    if verb is verbs.RENDER:
        words = with_check_value(words)
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            if not word:
                return None
            others.append(word)
            continue
        option = options.get(flag)
        if option is None or (equals and (option.is_flag or not flag.startswith("--"))):
            return None
        if option.is_flag:
            found[option.name] = True
            continue
        if not equals:
            value = next(rest, "")
        if option.many:
            found[option.name] = (*found.get(option.name, ()), value)
        elif option.name in found or not value or value.startswith("-"):
            return None
        else:
            found[option.name] = value
    return {argument.name: tuple(others), **found}


def with_check_value(words: list[str]) -> list[str]:
    """The words behind `render` with a value, if an empty one, for every `--check`.

    What stands behind it is the script to compare with, unless it is a job file or a folder.
    """
    found = []
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        alone = (
            following[:1] in ("", "-")
            or following.endswith((".yaml", ".yml"))
            or os.path.isdir(following)
        )
        found.append("--check=" if word == "--check" and alone else word)
        if word == "--":
            return [*found, *words[index + 1 :]]
    return found


def _help(path: str, verb: Verb) -> int:
    from slurmgen.cli import helptext, report
    from slurmgen.errors import EXIT_OK

    report.out(helptext.text(helptext.page(verb, path), helptext.columns()) + "\n")
    return EXIT_OK
