"""Where a profile's facts come from, and how one knows that one stands on the cluster."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from slurmgen.cluster.profile.values import Day, Names
from slurmgen.jobfile.base import SpecModel


class Source(SpecModel):
    """A document. Blocks of the profile name it in their own `source`.

    kind: `site` (the centre's own pages, or its repository of documents and examples),
    `site-copy` (somebody else's copy of them) or `third-party` (other people's scripts).
    """

    where: str = Field(description="address, and the file in a repository")
    date: Day = Field("undated", description="the date that the document itself shows")
    kind: Literal["site", "site-copy", "third-party"] = "site"


class Note(SpecModel):
    """A rule of the site that nothing here can check, for `slurmgen cluster show`."""

    text: str
    source: Names = ()


class Detection(SpecModel):
    """How the cluster is recognised: by one of its variables or by the name of the host.

    Values and names are patterns, in which `*` is any text and `[1-4]` one of the digits.
    """

    env: dict[str, Names] = Field(default_factory=dict)
    hosts: Names = ()
    source: Names = ()
