"""What a shell offers when Tab is pressed.

`slurmgen __complete WORD...` prints it; the scripts in `shells/`, which `slurmgen completion` sets
up, ask it. The last word is the one that is half typed. The first line says what follows:

    words   values, each with a tab and what it means behind it where that is known
    paths   files and folders by name
    files   nothing: any file is right, and a shell completes these best itself

What a parameter takes is read from its metavar, which people see in the help too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.cli import helptext, verbs
from slurmgen.errors import SlurmgenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from slurmgen.cli.verbs import Argument, Option

WORDS, PATHS, FILES = "words", "paths", "files"


class Offer(NamedTuple):
    """What may stand in place of the last word, and the kind of it."""

    kind: str
    values: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """As the shells' scripts read it."""
        rows = (f"{value}\t{meaning}".rstrip("\t") for value, meaning in self.values)
        return "\n".join([self.kind, *rows]) + "\n"


NOTHING = Offer(WORDS)


def offer(words: Sequence[str]) -> Offer:
    """What may stand in place of the last of the words behind `slurmgen`."""
    *before, last = words or [""]
    place = _Place()
    for word in before:
        if not place.passed(word):
            return NOTHING
    return place.offer(last)


class _Place:
    """Where one is in a command line."""

    def __init__(self) -> None:
        self.verb = verbs.ALL
        self.given: list[str] = []
        self.positions = 0
        # The option whose value comes next; whether `--` has ended all options.
        self.option: Option | None = None
        self.ended = False

    def passed(self, word: str) -> bool:
        """Go on behind a word; whether it can stand there."""
        if self.option is not None:
            self.option = None
            return True
        if not self._is_option(word):
            return self._argument(word)
        name, equals, _ = word.partition("=")
        self.given.append(name)
        self.ended = word == "--"
        option = self._found(name)
        if option is not None and not option.is_flag and not equals:
            self.option = option
        return True

    def offer(self, word: str) -> Offer:
        """What may stand here instead of a word that is half typed."""
        if self.option is not None:
            return _values(self.option, word)
        if self._is_option(word):
            name, equals, value = word.partition("=")
            if not equals:
                return _starting(self._options(), word)
            option = self._found(name)
            if option is None or option.is_flag:
                return NOTHING
            kind, values = _values(option, value)
            return Offer(kind, tuple((f"{name}={one}", meaning) for one, meaning in values))
        if self.verb.verbs:
            return _starting(((below.name, below.summary) for below in self.verb.verbs), word)
        arguments = self.verb.arguments
        if self.positions < len(arguments):
            return _values(arguments[self.positions], word)
        if arguments and arguments[-1].many:
            return _values(arguments[-1], word)
        return NOTHING

    def _is_option(self, word: str) -> bool:
        return word.startswith("-") and word != "-" and not self.ended

    def _argument(self, word: str) -> bool:
        if not self.verb.verbs:
            self.positions += 1
            # `sandbox exec`: what stands behind the program is the program's own.
            self.ended = self.ended or self.verb.rest_is_its_own
            return True
        below = self.verb.below(word)
        self.verb = below or self.verb
        self.given = []
        return below is not None

    def _found(self, name: str) -> Option | None:
        return next((option for option in self.verb.options if name in option.flags), None)

    def _options(self) -> list[tuple[str, str]]:
        found = []
        for option in self.verb.options:
            names = [*option.flags, *filter(None, [option.off])]
            if option.many or not set(names) & set(self.given):
                found += [(name, option.help) for name in names if name.startswith("--")]
        return [*found, ("--help", helptext.HELP[1])]


def _values(parameter: Argument | Option, word: str) -> Offer:
    metavar = parameter.metavar.strip("[]").removesuffix("...").rstrip(",")
    if metavar in _FILES:
        return Offer(FILES)
    if metavar == "JOB":
        return Offer(PATHS, tuple((path, "") for path in job_files(word)))
    if metavar == "CLUSTER" and "/" in word:
        return Offer(FILES)
    if metavar == "RULE":
        return rules(word)
    if metavar in _VALUES:
        try:
            return _starting(_VALUES[metavar](), word)
        except SlurmgenError:
            return NOTHING
    if "|" in metavar:
        return _starting(((one, "") for one in metavar.split("|")), word)
    return NOTHING


def _starting(values: Iterable[tuple[str, str]], word: str) -> Offer:
    return Offer(WORDS, tuple(value for value in values if value[0].startswith(word)))


def job_files(word: str) -> list[str]:
    """YAML files, and the folders on the way to them."""
    folder, slash, start = word.rpartition("/")
    where = f"{folder}{slash}"
    try:
        entries = sorted(os.scandir(os.path.expanduser(where) or "."), key=lambda e: e.name)
    except OSError:
        return []
    found = []
    for entry in entries:
        if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
            continue
        if entry.is_dir():
            found.append(f"{where}{entry.name}/")
        elif entry.name.endswith((".yaml", ".yml")):
            found.append(f"{where}{entry.name}")
    return found


def rules(word: str) -> Offer:
    """Rules of lint by name or code, also behind a comma."""
    from slurmgen.lint import registry

    before, comma, last = word.rpartition(",")
    # A code only where one is begun: the names say more.
    by_code = last.startswith("SG")
    return Offer(
        WORDS,
        tuple(
            (f"{before}{comma}{name}", rule.documentation.strip().partition("\n")[0])
            for rule in registry.rules()
            for name in [rule.code if by_code else rule.name]
            if name.startswith(last)
        ),
    )


def _clusters() -> list[tuple[str, str]]:
    from slurmgen.cli.commands.init import cluster_names

    return [(name, "") for name in cluster_names(Path())]


def _templates() -> list[tuple[str, str]]:
    from slurmgen.cli.commands.template import template_names

    return [(name, "") for name in template_names()]


def _keys() -> list[tuple[str, str]]:
    from slurmgen.jobfile.keys import KEYS

    return [(f"{name}=", key.description) for name, key in KEYS.items()]


_FILES = ("COMMAND", "FILE", "FOLDER", "SCRIPT")
_VALUES: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "CLUSTER": _clusters,
    "KEY=VALUE": _keys,
    "TEMPLATE": _templates,
}
