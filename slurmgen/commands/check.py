"""slurmgen check: a job against lint, its profile, and the cluster on which this runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slurmgen import report
from slurmgen.commands.lint import FORMATS
from slurmgen.commands.pipeline import as_linted, plan_job, recognised, render_job
from slurmgen.diagnostics import ERROR, WARNING, of_refusal
from slurmgen.errors import (
    EXIT_FINDINGS,
    EXIT_OK,
    EXIT_UNAVAILABLE,
    EXIT_USAGE,
    InvalidInput,
    Refusal,
    UnavailableError,
    UsageError,
)
from slurmgen.source import at_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slurmgen.commands.pipeline import Planned
    from slurmgen.diagnostics import Diagnostic
    from slurmgen.launchers import Problem

# What is found on the live cluster, what Slurm refuses for a reason of its own, and waste.
_LIVE = ("live-cluster", "SG005")
_REFUSED = ("refused-by-slurm", "SG006")
_DOUBTFUL = ("live-cluster-doubt", "SG007")


def run(
    job: str,
    *,
    cluster: str | None = None,
    overrides: Sequence[str] = (),
    format_: str = "text",
) -> int:
    """Report everything that keeps the job from running, or makes it take too much.

    Returns 0, 1 with findings, 2 for an invalid job file (then no cluster is asked), 3 where
    Slurm can't be reached; the report then has what can be known without it.
    """
    if format_ not in FORMATS:
        raise UsageError(
            f'there is no format "{format_}"', fix=f"choose {', '.join(FORMATS[:-1])} or sarif"
        )
    try:
        planned = plan_job(job, cluster=cluster or recognised(job), overrides=overrides)
        text = render_job(planned)
    except InvalidInput as problem:
        _print(problem.diagnostics, format_)
        report.note("slurmgen: the cluster was not asked; mend the job first")
        return EXIT_USAGE
    found = [*_lint(planned, text), *_waste(planned)]
    try:
        found += [d for d in _online(planned, text) if not _is_said(d, found)]
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
    texts = report.texts_of(found)
    if format_ == "json":
        text = report.format_json(found)
    elif format_ == "github":
        text = report.format_github(found)
    elif format_ == "sarif":
        from slurmgen.lint import sarif

        text = sarif.format_sarif(found, texts)
    else:
        text = report.format_text(found, texts)
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

    spec, plan, profile = planned.spec, planned.plan, planned.profile
    if plan.script is not None:
        return []
    kind = limits.choose_node_type(spec, profile, plan.gpu_type, plan.gpus_per_node, [])
    ask = limits.Ask(kind, plan.layout, plan.gpu_type, plan.gpus_per_node, plan.cpus_per_task)
    problems: list[Problem] = []
    waste.check(spec, ask, whole_nodes=False, problems=problems)
    return [_of_problem(p, planned, _DOUBTFUL, WARNING) for p in problems]


def _online(planned: Planned, text: str) -> list[Diagnostic]:
    """What the cluster has against the job; raises UnavailableError."""
    from slurmgen import directives
    from slurmgen.cluster.live.verdict import judge
    from slurmgen.commands.cluster import live_facts, live_profile
    from slurmgen.request import Request
    from slurmgen.slurm import sbatch

    facts = live_facts()
    live = live_profile(facts, with_names=True)
    request = Request(directives.read(text).directives)
    verdict = judge(planned.spec, planned.plan, request, live, facts)
    found = [_of_problem(p, planned, _LIVE, ERROR) for p in verdict.refusals]
    found += [_of_problem(p, planned, _DOUBTFUL, WARNING) for p in verdict.doubts]
    environment, _ = sbatch.clean_environment(os.environ)
    try:
        answer = sbatch.submit(text, environment=environment, test_only=True)
    except sbatch.Refused as refused:
        if not verdict.refusals:
            found.append(_of_slurm(refused.said, planned))
    else:
        report.note(str(answer))
    return found


def _of_problem(
    problem: Problem, planned: Planned, rule: tuple[str, str], severity: str
) -> Diagnostic:
    found = at_key(problem.key or (), problem.refusal, planned.source)
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


def _of_slurm(said: str, planned: Planned) -> Diagnostic:
    lines = [line.partition("error: ")[2] or line for line in said.splitlines()]
    last = lines[-1].removeprefix("allocation failure: ") if lines else "no reason"
    subject = next((key for word, key in _SUBJECTS if word in last.lower()), "")
    place, length = planned.source.locate((subject,) if subject else ())
    refusal = Refusal(
        f"Slurm refuses the job: {last}",
        why="; ".join(lines[:-1]) or "sbatch --test-only says so, and gives no other reason",
        fix="slurmgen cluster detect shows what this cluster has and allows",
    )
    found = of_refusal(refusal, place, length)
    return found._replace(rule=_REFUSED[0], code=_REFUSED[1])


def _is_said(found: Diagnostic, others: Iterable[Diagnostic]) -> bool:
    return any(o.message == found.message and o.location == found.location for o in others)
