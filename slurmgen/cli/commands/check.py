"""slurmgen check: a job, or a batch script, against lint, its profile and the cluster it is on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slurmgen.cli import report
from slurmgen.cli.commands import check_script
from slurmgen.cli.planning import plan_job, recognised, render_job
from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.errors import (
    EXIT_FINDINGS,
    EXIT_OK,
    EXIT_UNAVAILABLE,
    EXIT_USAGE,
    InvalidInput,
    JobRefused,
    Refusal,
    UnavailableError,
    UsageError,
)
from slurmgen.jobfile.source import at_key
from slurmgen.lint.other_codes import DOUBTFUL, LIVE, REFUSED
from slurmgen.lint.rendered import as_linted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from slurmgen.cli.commands.check_script import Script
    from slurmgen.diagnostics import Diagnostic, Place
    from slurmgen.script.pipeline import Planned


def run(
    job: str,
    *,
    cluster: str | None = None,
    overrides: Sequence[str] = (),
    format_: str = "text",
) -> int:
    """Report everything that keeps the job from running, or makes it take too much.

    job: a job file, or a batch script of any origin. Returns 0, 1 with findings, 2 for an
    invalid job file (then no cluster is asked), 3 where Slurm can't be reached; the report then
    has what can be known without it.
    """
    if format_ not in report.FORMATS:
        raise UsageError(
            f'there is no format "{format_}"',
            fix=f"choose {', '.join(report.FORMATS[:-1])} or sarif",
        )
    if check_script.is_script(job):
        if overrides:
            raise UsageError(
                "--set is for job files, and a batch script has no keys",
                fix=f"slurmgen import {job} makes a job file of it",
            )
        script = check_script.read(job, cluster or recognised(job))
        return _report(check_script.offline(script), lambda: _online_script(script), format_)
    try:
        planned = plan_job(job, cluster=cluster or recognised(job), overrides=overrides)
        text = render_job(planned)
    except InvalidInput as problem:
        _print(problem.diagnostics, format_)
        report.note("slurmgen: the cluster was not asked; mend this first")
        return EXIT_USAGE
    found = [*_lint(planned, text), *_waste(planned)]
    return _report(found, lambda: _online(planned, text), format_)


def _report(found: list[Diagnostic], online: Callable[[], list[Diagnostic]], format_: str) -> int:
    """Print what was found without the cluster, and what the cluster has to say."""
    try:
        found += [d for d in online() if not _is_said(d, found)]
    except UnavailableError as problem:
        _print(found, format_)
        report.error(problem)
        report.note("slurmgen: the cluster was not asked; the rest is reported")
        return EXIT_UNAVAILABLE
    _print(found, format_)
    if not found:
        report.note("slurmgen: nothing is wrong with it")
    return EXIT_FINDINGS if found else EXIT_OK


def _print(found: Iterable[Diagnostic], format_: str) -> None:
    found = tuple(found)
    text = report.formatted(found, report.texts_of(found), format_)
    if text:
        report.out(f"{text}\n")


def _lint(planned: Planned, text: str) -> tuple[Diagnostic, ...]:
    from slurmgen.lint import engine, registry

    outcome = engine.check(as_linted(planned, text), registry.choose())
    for failure in outcome.failures:
        report.note(f"slurmgen: the rule {failure.what} failed; please report it as a bug")
    return outcome.diagnostics


def _waste(planned: Planned) -> list[Diagnostic]:
    from slurmgen.cluster import limits, waste
    from slurmgen.cluster.ask import Ask

    spec, plan, profile = planned.spec, planned.plan, planned.profile
    if plan.script is not None:
        return []
    kind = limits.choose_node_type(spec, profile, plan.gpu_type, plan.gpus_per_node, [])
    ask = Ask(kind, plan.layout, plan.gpu_type, plan.gpus_per_node, plan.cpus_per_task)
    problems: list[Refusal] = []
    waste.check(spec, ask, whole_nodes=waste.are_whole(spec, profile), problems=problems)
    return [_of_problem(p, planned, DOUBTFUL, WARNING) for p in problems]


def _online(planned: Planned, text: str) -> list[Diagnostic]:
    """What the cluster has against the job; raises UnavailableError."""
    from slurmgen.cli.commands.cluster import live_facts, live_profile
    from slurmgen.cluster.ask import Ask
    from slurmgen.cluster.live.verdict import judge
    from slurmgen.slurm import directives
    from slurmgen.slurm.request import Request

    facts = live_facts()
    live = live_profile(facts, with_names=True)
    plan, request = planned.plan, Request(directives.read(text).directives)
    # GPUs by the type that is written.
    gpus = request.node_gpus or 0
    ask = Ask(None, plan.layout, request.gpu_type, gpus, plan.cpus_per_task)
    verdict = judge(planned.spec, ask, plan.directives, live, facts)
    found = [_of_problem(p, planned, LIVE, ERROR) for p in verdict.refusals]
    found += [_of_problem(p, planned, DOUBTFUL, WARNING) for p in verdict.doubts]
    said = _asked_of_slurm(text, verdict.untestable)
    if said is not None and not verdict.refusals:
        found.append(_of_slurm(said, lambda key: planned.source.locate((key,) if key else ())))
    return found


def _online_script(script: Script) -> list[Diagnostic]:
    """The same of a batch script."""
    from slurmgen.cli.commands.cluster import live_facts, live_profile

    facts = live_facts()
    live = live_profile(facts, with_names=True)
    found, is_refused, untestable = check_script.online(script, live, facts)
    said = _asked_of_slurm(script.job.text, untestable)
    if said is not None and not is_refused:
        found.append(_of_slurm(said, lambda key: check_script.locate(script, key)))
    return found


def _asked_of_slurm(text: str, untestable: str) -> str | None:
    """What sbatch --test-only refuses the script for; where it takes it, its estimate is noted.

    untestable: why it may be wrong about the script's nodes, if it may.
    """
    from slurmgen.slurm.live import sbatch

    environment, _ = sbatch.clean_environment(os.environ)
    try:
        answer = sbatch.would_start(text, environment=environment)
    except JobRefused as refused:
        if untestable and "node configuration is not available" in refused.said:
            report.note(f"slurmgen: sbatch --test-only refuses the job: {untestable}")
            return None
        return refused.said
    report.note(answer)
    return None


def _of_problem(
    problem: Refusal, planned: Planned, rule: tuple[str, str], severity: str
) -> Diagnostic:
    found = at_key(problem, planned.source)
    return found._replace(rule=rule[0], code=rule[1], severity=severity)


# What sbatch's sentences are about, by a word in them; the first that fits counts.
_SUBJECTS = (
    ("partition", "partition"),
    ("account", "account"),
    ("qos", "qos"),
    ("feature", "constraint"),
    ("time limit", "time"),
    ("array", "array"),
    ("license", "licenses"),
    ("reservation", "reservation"),
    ("dependency", "dependency"),
    ("memory", "mem"),
    ("generic resource", "gpus_per_node"),
    ("node", "nodes"),
)


def _of_slurm(said: str, locate: Callable[[str], Place]) -> Diagnostic:
    lines = [line.partition("error: ")[2] or line for line in said.splitlines()]
    last = lines[-1].removeprefix("allocation failure: ") if lines else "no reason"
    subject = next((key for word, key in _SUBJECTS if word in last.lower()), "")
    refusal = Refusal(
        f"Slurm refuses the job: {last}",
        why="; ".join(lines[:-1]) or "sbatch --test-only says so, and gives no other reason",
        fix="slurmgen cluster detect shows what this cluster has and allows",
    )
    found = refusal.at(locate(subject))
    return found._replace(rule=REFUSED[0], code=REFUSED[1])


def _is_said(found: Diagnostic, others: Iterable[Diagnostic]) -> bool:
    said = {(other.message, other.location.start) for other in others}
    return (found.message, found.location.start) in said
