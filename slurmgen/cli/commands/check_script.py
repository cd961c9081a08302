"""What `slurmgen check` compares of a batch script that no job file is behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.cli import report
from slurmgen.cli.planning import profile_for
from slurmgen.diagnostics import ERROR, WARNING, Diagnostic, Place
from slurmgen.errors import UnavailableError, UsageError
from slurmgen.files import read_bytes
from slurmgen.jobfile.project import project_root
from slurmgen.lint import engine, inputs, registry
from slurmgen.lint.facts.on_cluster import asked, directive_of, mismatches, translated
from slurmgen.lint.facts.options import place, sound, value_place
from slurmgen.lint.job import load
from slurmgen.lint.other_codes import DOUBTFUL, LIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slurmgen.cluster.profile import Profile
    from slurmgen.errors import Refusal
    from slurmgen.lint.facts.on_cluster import Mismatch
    from slurmgen.lint.job import Job
    from slurmgen.slurm.answers.facts import Facts
    from slurmgen.slurm.directives import Directive
    from slurmgen.slurm.request import Request

_MISMATCH = ("cluster-mismatch", "SG117")


def is_script(path: str) -> bool:
    """Whether a file is a batch script and no job file, by its name and its text."""
    if path == "-" or inputs.is_job_file(path):
        return False
    try:
        inputs.decode(read_bytes(path))
    except (OSError, inputs.NotABatchScript):
        # By its name it is read as what it is not, and that is said.
        return Path(path).suffix in (".sbatch", ".slurm", ".sh")
    return True


class Script(NamedTuple):
    """A script, read. requests: of its components, those whose nodes and GPUs are known."""

    job: Job
    profile: Profile
    requests: tuple[Request, ...]


def read(path: str, cluster: str | None) -> Script:
    """Raises UsageError for what is no batch script, UnavailableError where it can't be read."""
    try:
        text = inputs.decode(read_bytes(path))
    except inputs.NotABatchScript as problem:
        raise UsageError(
            f"{path}: not a batch script: {problem}", fix="name a job file or a batch script"
        ) from None
    except OSError as error:
        raise UnavailableError(
            f"cannot read {path}: {error.strerror}", fix="check the path and its permissions"
        ) from error
    profile = profile_for(cluster, project_root(Path(path)))
    job = load(path, text, profile=profile, folder=Path(path).parent)
    known = tuple(filter(_is_known, job.script.requests))
    if len(known) < len(job.script.requests):
        report.note(
            f"slurmgen: {path}: its directives do not tell how many nodes and GPUs it gets; "
            "those limits are left to Slurm"
        )
    return Script(job, profile, known)


def _is_known(request: Request) -> bool:
    nodes = request.nodes if request.total_nodes is None else request.total_nodes
    return nodes is not None and request.node_gpus is not None


def offline(script: Script) -> list[Diagnostic]:
    """What lint and the profile have against it."""
    from slurmgen.cluster import waste

    job, profile = script.job, script.profile
    outcome = engine.check(job, registry.choose())
    for failure in outcome.failures:
        report.note(f"slurmgen: the rule {failure.what} failed; please report it as a bug")
    found = list(outcome.diagnostics)
    for request in script.requests if job.profile is not None else ():
        fine = _sound(job)
        # The rest is found by a rule of lint, whatever stands on the command line.
        said = {one.what for one in mismatches(request, profile, fine)}
        missing = mismatches(request, profile, fine, complete=True)
        found += [_diagnostic(m, job, _MISMATCH, ERROR) for m in missing if m.what not in said]
        spec, ask, _ = asked(request, profile, fine, [])
        wasted: list[Refusal] = []
        waste.check(spec, ask, whole_nodes=waste.are_whole(spec, profile), problems=wasted)
        found += _diagnostics(wasted, request, job, DOUBTFUL, WARNING)
    return found


def online(script: Script, live: Profile, facts: Facts) -> tuple[list[Diagnostic], bool, str]:
    """What the cluster has against it, whether it can't run there, and `Verdict.untestable`."""
    from slurmgen.cluster.live.verdict import judge

    job, fine = script.job, _sound(script.job)
    found: list[Diagnostic] = []
    refused, untestable = False, ""
    for request in script.requests:
        spec, ask, written = asked(request, live, fine, [])
        verdict = judge(spec, ask, written, live, facts)
        found += _diagnostics(verdict.refusals, request, job, LIVE, ERROR)
        found += _diagnostics(verdict.doubts, request, job, DOUBTFUL, WARNING)
        refused = refused or bool(verdict.refusals)
        untestable = untestable or verdict.untestable
    return found, refused, untestable


def locate(script: Script, key: str) -> Place:
    """The place of the directive that says what a job file has under `key`, else of line 1."""
    request = script.job.script.requests[0]
    return _place(directive_of(key, request), script.job)


def _sound(job: Job) -> set[int]:
    return {directive.start for directive in sound(job)}


def _diagnostics(
    problems: Iterable[Refusal], request: Request, job: Job, rule: tuple[str, str], severity: str
) -> Iterator[Diagnostic]:
    for problem in problems:
        yield _diagnostic(translated(problem, request), job, rule, severity)


def _diagnostic(mismatch: Mismatch, job: Job, rule: tuple[str, str], severity: str) -> Diagnostic:
    where = _place(mismatch.directive, job)
    return Diagnostic(where, *rule, severity, mismatch.what, mismatch.why, mismatch.fix)


def _place(directive: Directive | None, job: Job) -> Place:
    if directive is None:
        return Place(1, 1, path=job.path)
    there = value_place(job, directive) if directive.value is not None else place(directive)
    return there._replace(path=job.path)
