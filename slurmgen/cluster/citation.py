"""Reasons of a site with the document that states them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurmgen.cluster.profile import Profile


def cite(profile: Profile, why: str, source: Iterable[str]) -> str:
    """`why` with its documents and their dates behind it."""
    places = "; ".join(reference(profile, name) for name in source)
    return f"{why} ({places})" if places else why


def reference(profile: Profile, name: str) -> str:
    """One source of a profile: where it is, and the date it shows."""
    source = profile.sources[name]
    return f"{source.where}, {source.date}"
