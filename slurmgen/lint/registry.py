"""The rules by name and by code, and which of them a run asks."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import UsageError
from slurmgen.lint.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from slurmgen.lint.finding import Finding
    from slurmgen.lint.job import Job

UNUSED_SUPPRESSION = "unused-suppression"


class Rule(NamedTuple):
    """A module of `rules/`, read.

    hides: the rules whose findings are consequences of this one. since, until: the first
    release line of Slurm on which it holds, and the first on which it no longer does.
    version_needed: silent where the version is not known. needs: what it is silent
    without, in words; "" where a script alone will do. documentation: the docstring.
    """

    name: str
    code: str
    severity: str
    check: Callable[[Job], Iterator[Finding]]
    hides: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    version_needed: bool = False
    needs: str = ""
    example_slurm: str | None = None
    documentation: str = ""

    def holds_on(self, slurm: str | None) -> bool:
        """Whether it is asked on a release line ("22.05"; None: not known)."""
        if slurm is None:
            return not self.version_needed
        # Two digits each, so that text compares as numbers do.
        return (self.since or "") <= slurm and (self.until is None or slurm < self.until)


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule there is, by code."""
    return tuple(sorted(map(_read, RULES), key=lambda rule: rule.code))


def _read(name: str) -> Rule:
    module = import_module(f"slurmgen.lint.rules.{name}")
    return Rule(
        name=module.NAME,
        code=module.CODE,
        severity=module.SEVERITY,
        check=module.check,
        hides=getattr(module, "HIDES", ()),
        since=getattr(module, "SINCE", None),
        until=getattr(module, "UNTIL", None),
        version_needed=getattr(module, "VERSION_NEEDED", False),
        needs=getattr(module, "NEEDS", ""),
        example_slurm=getattr(module, "EXAMPLE_SLURM", None),
        documentation=module.__doc__ or "",
    )


def find(name: str) -> Rule | None:
    """The rule with this name or code, case aside."""
    return _by_name().get(name.lower())


@cache
def _by_name() -> dict[str, Rule]:
    return {key.lower(): rule for rule in rules() for key in (rule.name, rule.code)}


def suggestion(name: str) -> str:
    """What was probably meant, as an instruction; "" where nothing is near."""
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), _by_name(), n=1)
    if not close:
        return ""
    rule = _by_name()[close[0]]
    return f"write {rule.name} ({rule.code})"


def choose(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
    """The rules of a run: all, or those of `select`, without those of `ignore`.

    Each entry is a name, a code, the beginning of a code (SG1), or several with commas
    between. Raises UsageError for one that means no rule.
    """
    chosen = _named(select, "--select") if select else set(rules())
    chosen -= _named(ignore, "--ignore")
    return tuple(rule for rule in rules() if rule in chosen)


def _named(entries: Iterable[str], option: str) -> set[Rule]:
    found: set[Rule] = set()
    for name in (name.strip() for entry in entries for name in entry.split(",")):
        rule = find(name)
        meant = {rule} if rule else _family(name)
        if not meant:
            raise unknown(name, option)
        found |= meant
    return found


def _family(prefix: str) -> set[Rule]:
    """The rules whose codes begin so: SG and at least one digit."""
    if len(prefix) < 3:
        return set()
    return {rule for rule in rules() if rule.code.startswith(prefix.upper())}


def unknown(name: str, option: str) -> UsageError:
    """That an option of the command line names no rule."""
    fix = suggestion(name) or "`slurmgen lint --explain all` lists the rules"
    return UsageError(f'{option}: there is no rule "{name[:60]}"', fix=fix)
