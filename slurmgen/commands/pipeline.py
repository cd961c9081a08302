"""The way from a job file to a script, which several verbs share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurmgen import report
from slurmgen.cluster import generic
from slurmgen.cluster.load import load_profile
from slurmgen.diagnostics import of_refusal
from slurmgen.errors import InvalidInput, Refusal
from slurmgen.plan import JobPlan, PlanError, resolve
from slurmgen.project import project_root, project_templates
from slurmgen.source import Source, at_key, read_text
from slurmgen.spec.load import load_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.cluster.profile import Profile
    from slurmgen.spec.job import JobSpec


class Planned(NamedTuple):
    """A job file all the way to its plan."""

    spec: JobSpec
    profile: Profile
    plan: JobPlan
    source: Source
    root: Path


def plan_job(job: str, *, cluster: str | None = None, overrides: Sequence[str] = ()) -> Planned:
    """Read, validate and resolve the job file `job` (`-`: standard input).

    Raises InvalidInput with every error, UsageError, UnavailableError.
    """
    path = Path(job)
    if job == "-":
        text, name, root = sys.stdin.read(), "<stdin>", project_root(Path.cwd() / "job.yaml")
    else:
        text, name, root = read_text(path), job, project_root(path)
    profile = load_profile(cluster or generic.NAME, root)
    _note_doubts(profile)
    loaded = load_job(text, name, overrides=overrides, defaults=profile.defaults)
    try:
        plan = resolve(loaded.spec, profile, source="job.yaml" if job == "-" else path.name)
    except PlanError as error:
        found = [at_key(p.key, p.refusal, loaded.source) for p in error.problems]
        raise InvalidInput(found) from None
    return Planned(loaded.spec, profile, plan, loaded.source, root)


def _note_doubts(profile: Profile) -> None:
    """What a person should know of a profile before trusting it."""
    if not profile.verified:
        report.note(
            f"slurmgen: the profile {profile.name} is not verified by the site's own documents"
        )
    if profile.status in ("ending", "restricted"):
        reason = f": {profile.status_reason}" if profile.status_reason else ""
        report.note(f"slurmgen: {profile.name} is {profile.status}{reason}")


def render_job(planned: Planned) -> str:
    """The script of a plan, with the project's own templates.

    Raises InvalidInput, also where a template changed what the plan decided.
    """
    from slurmgen.render import render
    from slurmgen.script import check_directives

    templates = project_templates(planned.root)
    try:
        text = render(planned.plan, templates=templates)
    except Refusal as refusal:
        place, length = planned.source.locate(())
        raise InvalidInput([of_refusal(refusal, place, length)]) from None
    if templates is not None:
        check_directives(text, planned.plan)
    return text
