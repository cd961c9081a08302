"""Which of a name's bindings a use of it may see."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurmgen.reading.programs.scopes import Binding, Site

# A name bound in more places than this tells nothing.
_MOST = 8
# Farther back nobody looks.
_FARTHEST = 200


def reaching(bindings: list[Binding], site: Site | None) -> list[Binding]:
    """The bindings whose value a use at `site` may see; all that last, for a use from elsewhere."""
    chosen: list[Binding] = []
    # They stand in source order.
    count = len(bindings)
    if site is not None:
        count = bisect_left(bindings, site.order, key=lambda item: item.site.order) or count
    for binding in reversed(bindings[max(0, count - _FARTHEST) : count]):
        if site is not None and _excludes(binding.site, site):
            continue
        chosen.append(binding)
        if dominates(binding.site, site):
            break
        if len(chosen) > _MOST:
            break
    return chosen[::-1]


def dominates(before: Site, site: Site | None) -> bool:
    if site is None:
        return not before.branches
    return site.branches[: len(before.branches)] == before.branches


def _excludes(before: Site, site: Site) -> bool:
    """Whether they lie in different arms of one `if`."""
    for one, other in zip(before.branches, site.branches, strict=False):
        if one != other:
            return one[0] == other[0]
    return False
