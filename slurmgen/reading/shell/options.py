"""Options in front of what a wrapper starts: `srun -n4 --gres=gpu:4 prog`, `torchrun …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.shell.words import Word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NO = "no"
OPTIONAL = "optional"
REQUIRED = "required"


class Grammar(NamedTuple):
    """How a program reads its options.

    long: long name (dashes) to NO, OPTIONAL or REQUIRED. short: letter to long name.
    unknown: what is assumed of a long name that is not listed. abbreviates: whether a
    beginning is understood (getopt_long, argparse). single_dash: `-np 4` is one option.
    """

    long: Mapping[str, str]
    short: Mapping[str, str]
    unknown: str = NO
    abbreviates: bool = True
    single_dash: bool = False


class Given(NamedTuple):
    """Options found, what follows them, and whether some stand in a variable nobody knows."""

    options: dict[str, Word]
    rest: tuple[Word, ...]
    opaque: bool


def parse_options(words: Sequence[Word], grammar: Grammar) -> Given:
    """Read `words` (without the program's name) up to the first that is no option.

    The value of an option without one is an empty Word at the option's place.
    """
    found: dict[str, Word] = {}
    opaque = False
    at = 0
    while at < len(words):
        word = words[at]
        text = word.text
        if text == "--":
            at += 1
            break
        if word.pieces and word.pieces[0].kind != "text":
            # `srun $ARGS python x.py`: whatever it holds, the program comes later.
            if word.quoted or "/" in word.pieces[-1].text or not _more_to_come(words, at):
                break
            opaque = True
            at += 1
            continue
        if not text.startswith("-") or text == "-":
            break
        at += 1
        if text.startswith("--") or (grammar.single_dash and len(text) > 2):
            at += _long(word, words, at, grammar, found)
        else:
            at += _short(word, words, at, grammar, found)
    return Given(found, tuple(words[at:]), opaque)


def _more_to_come(words: Sequence[Word], at: int) -> bool:
    return at + 1 < len(words)


def _long(
    word: Word, words: Sequence[Word], at: int, grammar: Grammar, found: dict[str, Word]
) -> int:
    text = word.text
    dashes = 2 if text.startswith("--") else 1
    spelled, equals, _ = text[dashes:].partition("=")
    if "$" in spelled:
        return 0
    name = long_name(spelled, grammar)
    argument = grammar.long.get(name, grammar.unknown)
    if equals:
        found[name] = word.after(text[: dashes + len(spelled) + 1])
        return 0
    if argument == REQUIRED and at < len(words):
        found[name] = words[at]
        return 1
    found[name] = Word((), word.start, word.end)
    return 0


def _short(
    word: Word, words: Sequence[Word], at: int, grammar: Grammar, found: dict[str, Word]
) -> int:
    letters = word.pieces[0].text
    position = 1
    while position < len(letters):
        name = grammar.short.get(letters[position])
        if name is None:
            return 0
        argument = grammar.long.get(name, NO)
        position += 1
        if argument == NO:
            found[name] = Word((), word.start, word.end)
            continue
        glued = word.after(letters[:position])
        if glued.pieces:
            found[name] = glued
            return 0
        if argument == REQUIRED and at < len(words):
            found[name] = words[at]
            return 1
        found[name] = Word((), word.start, word.end)
    return 0


def long_name(spelled: str, grammar: Grammar) -> str:
    """The option's name with dashes, an abbreviation completed."""
    name = spelled.replace("_", "-")
    if spelled in grammar.long or name in grammar.long or not grammar.abbreviates:
        return name
    meant = [known for known in grammar.long if known.startswith(name)]
    return meant[0] if len(meant) == 1 else name


def table(required: str, no: str = "", optional: str = "") -> dict[str, str]:
    """Names in three lists as the `long` of a Grammar."""
    return {
        **dict.fromkeys(required.split(), REQUIRED),
        **dict.fromkeys(no.split(), NO),
        **dict.fromkeys(optional.split(), OPTIONAL),
    }
