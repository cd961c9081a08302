"""The way from a job file to a script, for the verbs: what it tells goes to stderr."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slurmgen.cli import report
from slurmgen.script import pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slurmgen.cluster.profile import Profile
    from slurmgen.script.pipeline import Planned


def plan_job(job: str, *, cluster: str | None = None, overrides: Sequence[str] = ()) -> Planned:
    """`pipeline.plan_job`, aloud."""
    return pipeline.plan_job(job, cluster=cluster, overrides=overrides, tell=_say)


def profile_for(cluster: str | None, root: Path) -> Profile:
    """`pipeline.profile_for`, aloud."""
    return pipeline.profile_for(cluster, root, _say)


def render_job(planned: Planned) -> str:
    """`pipeline.render_job`, aloud."""
    return pipeline.render_job(planned, tell=_say)


def recognised(job: str) -> str | None:
    """The cluster on which this runs, if a profile says how one knows it."""
    import socket

    from slurmgen.cluster.detect import recognise

    found = recognise(pipeline.job_folder(job), os.environ, socket.gethostname())
    if found is None:
        return None
    _say(f"this is {found.name} ({found.sign}); --cluster NAME says otherwise")
    return found.name


def diff(before: str, after: str, before_name: str, after_name: str) -> str:
    """Two rendered scripts compared; their stamps are shown only if nothing else differs."""
    from slurmgen.script import stamp_reader

    first, second = stamp_reader.shortened(before), stamp_reader.shortened(after)
    if first == second:
        first, second = before, after
    return report.diff(first, second, before_name, after_name)


def _say(note: str) -> None:
    report.note(f"slurmgen: {note}")
