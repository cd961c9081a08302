"""The way from a job file to a script.

It prints nothing. What a person should know, though nothing is wrong, goes to `tell`: a sentence
each, at once, so that it is said whatever goes wrong behind it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from slurmgen.cluster import generic
from slurmgen.cluster.load import load_profile
from slurmgen.errors import (
    InvalidInput,
    Refusal,
    Refusals,
    SlurmgenError,
    UnavailableError,
    UsageError,
)
from slurmgen.jobfile.load import load_job
from slurmgen.jobfile.project import project_root, project_templates
from slurmgen.jobfile.source import Source, at_key, decode, parse_yaml, read_text
from slurmgen.script import stamp
from slurmgen.script.plan import JobPlan, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from slurmgen.cluster.profile import Profile
    from slurmgen.diagnostics import Diagnostic
    from slurmgen.jobfile.job import JobSpec
    from slurmgen.jobfile.load import LoadedJob


Tell = Callable[[str], object]


def nobody(_note: str) -> None:
    """Tells nobody."""


class Planned(NamedTuple):
    """A job file all the way to its plan.

    text: the file's own. given: its keys and values, with what `--set` changed of them.
    """

    spec: JobSpec
    profile: Profile
    plan: JobPlan
    source: Source
    root: Path
    text: str
    given: Mapping[str, Any]


def plan_job(
    job: str,
    *,
    cluster: str | None = None,
    overrides: Sequence[str] = (),
    tell: Tell = nobody,
) -> Planned:
    """Read, validate and resolve the job file `job` (`-`: standard input).

    Raises InvalidInput with every error, UsageError, UnavailableError.
    """
    path, root = Path(job), job_folder(job)
    if job == "-":
        text, name = decode(read_stdin(), _STDIN), _STDIN
    else:
        text, name = read_text(path), job
    profile = profile_for(cluster, root, tell)
    loaded = load_job(text, name, overrides=overrides, defaults=profile.defaults)
    planned = _plan(loaded, profile, root, text, "job.yaml" if job == "-" else path.name, tell)
    if loaded.spec.job_name is None:
        _check_default_name(planned.plan.job_name, job)
    return planned


def job_folder(job: str) -> Path:
    """The project to which a job file belongs; of standard input, the one around."""
    return project_root(Path("job.yaml" if job == "-" else job))


def plan_keys(
    keys: Mapping[str, Any], *, cluster: str | None = None, tell: Tell = nobody
) -> Planned:
    """The same of keys that come from Python; their errors have no line.

    Raises InvalidInput with every error, UsageError, UnavailableError.
    """
    from slurmgen.jobfile.load import load_keys

    root = project_root(Path("job.yaml"))
    profile = profile_for(cluster, root, tell)
    loaded = load_keys(keys, "Job(…)", defaults=profile.defaults)
    return _plan(loaded, profile, root, "", "job.yaml", tell)


def _plan(
    loaded: LoadedJob, profile: Profile, root: Path, text: str, name: str, tell: Tell
) -> Planned:
    with _placed(loaded.source):
        plan = resolve(loaded.spec, profile, source=name)
    _tell_all(plan.notes, tell)
    if profile is not generic.PROFILE:
        from slurmgen.cluster import advice

        restarts = plan.requeue.max_restarts if plan.requeue is not None else None
        _tell_all(advice.of_job(loaded.spec, profile, plan.directives, restarts), tell)
    return Planned(loaded.spec, profile, plan, loaded.source, root, text, loaded.given)


def profile_for(cluster: str | None, root: Path, tell: Tell = nobody) -> Profile:
    """The profile of a name or a file, `generic` if there is none; tells what is doubtful."""
    profile = load_profile(cluster or generic.NAME, root)
    if profile is not generic.PROFILE:
        from slurmgen.cluster import advice

        _tell_all(advice.of_profile(profile), tell)
    return profile


@contextmanager
def _placed(source: Source) -> Iterator[None]:
    """Raises what is refused in the `with` as InvalidInput, each with its place in the file."""
    try:
        yield
    except Refusal as refusal:
        raise InvalidInput([refusal.at(source.locate(()))]) from None
    except Refusals as error:
        raise InvalidInput([at_key(refusal, source) for refusal in error.problems]) from None


def job_file_of(script: Path, text: str) -> Path | None:
    """The job file that a script was rendered from: beside it, and neither has changed since."""
    from slurmgen.script import stamp_reader

    said = stamp_reader.read(text)
    if said is None or Path(said.source).name != said.source:
        return None
    path = script.parent / said.source
    try:
        data = parse_yaml(read_text(path), str(path)).data
    except (SlurmgenError, ValueError):
        return None
    same = stamp.hash_of(data) == said.job and stamp_reader.is_as_rendered(text, said)
    return path if same else None


def since(script: str, planned: Planned) -> str:
    """What has changed since a script was rendered, for the end of a sentence."""
    from slurmgen.script import stamp_reader

    changed = stamp_reader.changes(script, planned.source.data)
    return f": {changed} since it was rendered" if changed else ""


def require_ranks(plan: JobPlan, verb: str) -> None:
    """Raises UsageError for a job of which nobody knows what ranks it starts."""
    if plan.script is not None:
        raise UsageError(
            f"{verb}: the job has a script of its own, and what that starts is not known",
            fix="write command: in place of script:, and launcher: for how it is started",
        )


_STDIN = "<stdin>"


def read_stdin() -> bytes:
    """Everything on standard input; raises UsageError where it is closed, UnavailableError."""
    # None: the shell closed it (`<&-`).
    if sys.stdin is None:
        raise UsageError("standard input is closed", fix="name a file in place of -")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise UnavailableError(
            f"cannot read standard input: {error.strerror}", fix="name a file in place of -"
        ) from error


def _check_default_name(name: str, job: str) -> None:
    """Raises UsageError for a file whose name can't be the job's."""
    from slurmgen.jobfile.readers import name as read_name

    try:
        read_name(name)
    except Refusal as refusal:
        raise UsageError(
            f"the file's name, {job!r}, can't be the job's: {refusal.what}",
            fix="add job_name: to it, or rename the file",
        ) from None


def _tell_all(notes: Iterable[str], tell: Tell) -> None:
    for note in notes:
        tell(note)


def render_job(planned: Planned, *, tell: Tell = nobody) -> str:
    """The script of a plan, with the project's own templates.

    Raises InvalidInput, also where a template changed what the plan decided.
    """
    from slurmgen.script.render import check_size, render

    templates = project_templates(planned.root)
    with _placed(planned.source), _with_template_key(planned):
        text = render(planned.plan, templates=templates)
        script = _stamped(text, planned)
        check_size(script)
        if templates is not None:
            from slurmgen.script.agreement import check_script

            check_script(text, planned.plan)
    if templates is not None:
        _tell_of_ejected(planned.plan.template, templates, tell)
    return script


@contextmanager
def _with_template_key(planned: Planned) -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput([_at_template_key(d, planned) for d in error.diagnostics]) from None


def _stamped(text: str, planned: Planned) -> str:
    source = planned.source
    return stamp.stamped(
        text,
        planned.plan,
        planned.given,
        own=source.data,
        overrides=(
            ".".join(map(str, key))
            for key, origin in source.elsewhere.items()
            if origin.startswith("--set ")
        ),
    )


def _at_template_key(found: Diagnostic, planned: Planned) -> Diagnostic:
    """The job's own `template:` as the place, where it names none that exists, else beside it."""
    place = planned.source.locate(("template",))
    if found.message == f'there is no template "{planned.plan.template}.sbatch.j2"':
        return found._replace(location=place)
    if found.location.path == f"{planned.plan.template}.sbatch.j2":
        file = planned.root / "templates" / found.location.path
        if file.is_file():
            path = os.path.relpath(file)
            found = found._replace(location=found.location._replace(path=path))
    if not planned.source.has(("template",)):
        return found
    return found._replace(also=(*found.also, place))


def _tell_of_ejected(template: str, templates: Path, tell: Tell) -> None:
    """A line where the built-in template has changed since the project took its copy."""
    from slurmgen.script.templates import ejected

    path = templates / f"{template}{ejected.SUFFIX}"
    stamp = ejected.stamp_of_file(path)
    if stamp is not None and ejected.has_changed(stamp):
        tell(
            f"{os.path.relpath(path)} was ejected from slurmgen {stamp.version}, and "
            f"{stamp.original} has changed since\n"
            f"  = fix: slurmgen template show --diff {template}"
        )
