"""The option that a name stands for: getopt_long takes any beginning that is only one's."""

from __future__ import annotations

from functools import cache

from slurmgen.slurm.options import catalog


def of_letter(letter: str) -> catalog.Option | None:
    """The option of a short one's letter."""
    return _letters().get(letter)


@cache
def _letters() -> dict[str, catalog.Option]:
    return catalog.by_letter(catalog.options())


def resolve(name: str) -> tuple[str | None, str | None]:
    """The long name that `name` (without dashes) means, and the kind of problem with it.

    Of the beginnings that a newer release made ambiguous: what they were before.
    """
    options = catalog.options()
    if name in options:
        return name, None
    dashed = name.replace("_", "-").lower()
    if dashed in options or catalog.is_srun_only(dashed):
        return dashed, "unknown-option"
    meant = [
        known
        for known, option in options.items()
        if known.startswith(name) and catalog.is_known_in(option, None)
    ]
    if len(meant) > 1:
        meant = [known for known in meant if options[known].since is None] or meant
    if len(meant) == 1:
        return meant[0], None
    if meant:
        return None, "ambiguous-option"
    close = catalog.suggest(name) if 2 < len(name) < 40 and name.isascii() else None
    return close, "unknown-option"


def single_dash(word: str) -> str | None:
    """The long option that `-name` or `-name=value` means, None for letters and values."""
    name, equals, _ = word[1:].partition("=")
    dashed = name.replace("_", "-")
    if not 3 <= len(name) < 40:
        return None
    if dashed in catalog.options() or (equals and catalog.is_srun_only(dashed)):
        return dashed
    meant = [known for known in catalog.options() if known.startswith(dashed)] if equals else []
    return meant[0] if len(meant) == 1 else None


def options_in(words: list[str]) -> list[str]:
    """The long names of the options among some words, as far as they are known."""
    found: list[str | None] = []
    for word in words:
        if word.startswith("--"):
            found.append(resolve(word[2:].partition("=")[0])[0])
        elif word.startswith("-"):
            known = of_letter(word[1:2])
            found.append(single_dash(word) or (known.name if known is not None else None))
    return [name for name in found if name is not None]
