"""What a person should know before trusting a profile, or a job on it. Nothing is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.cluster.citation import cite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slurmgen.cluster.profile import Partition, Profile, Qos
    from slurmgen.jobfile.job import JobSpec
    from slurmgen.jobfile.keys import Directive


def of_profile(profile: Profile) -> Iterator[str]:
    """Whether its facts are the site's own, and whether the cluster is for everybody."""
    if not profile.verified:
        said = "is not verified by the site's own documents"
        note = f": {profile.verified_note}" if profile.verified_note else ""
        yield f"the profile {profile.name} {said}{note}"
    if profile.status in ("ending", "restricted"):
        ends = f" on {profile.ends}" if profile.ends else ""
        reason = cite(profile, profile.status_reason, profile.status_source)
        said = f"{profile.name} is {profile.status}{ends}"
        yield f"{said}: {reason}" if reason.strip() else said


def of_job(
    spec: JobSpec, profile: Profile, directives: Sequence[Directive], restarts: int | None
) -> Iterator[str]:
    """What the site advises against, and what the profile can't judge.

    directives: of the script. restarts: how often the job may come back; None: it doesn't.
    """
    launch = profile.launch
    if launch is not None:
        advice = launch.avoid.get(spec.launcher)
        if advice is not None:
            reason = cite(profile, advice, launch.source)
            yield f"{profile.name} advises against launcher {spec.launcher}: {reason}"
        if launch.command:
            reason = cite(profile, "its documents start tasks so", launch.source)
            started = f"this script starts its tasks by srun, {profile.name} by {launch.command}"
            yield f"{started}: {reason}"
    if profile.memory == "ignored" and (spec.mem or spec.mem_per_cpu or spec.mem_per_gpu):
        yield f"{profile.name} ignores memory options, and the script has none"
    yield from _of_places(profile, directives, restarts)


def _of_places(
    profile: Profile, directives: Sequence[Directive], restarts: int | None
) -> Iterator[str]:
    written = {d.option: d.value for d in directives if d.option in ("partition", "qos")}
    partitions = (written.get("partition") or "").split(",")
    known = {partition.name: partition for partition in profile.partitions}
    if profile.other_partitions:
        for name in partitions:
            if name and name not in known:
                yield f"the profile {profile.name} knows no limits of partition {name}"
    places: list[Partition | Qos] = [known[name] for name in partitions if name in known]
    places += [qos for qos in profile.qos if qos.name == written.get("qos")]
    for place in places:
        if place.access:
            yield f"{place.name} on {profile.name}: {place.access}"
        if place.preemptible and restarts is None:
            yield (
                f"jobs in {place.name} are stopped for others"
                f"{_how(profile)}; requeue: {{}} makes this one save and come back"
            )
    most = profile.when_preempted.max_restarts if profile.when_preempted is not None else None
    if restarts is not None and most is not None and restarts > most:
        yield f"{profile.name} restarts a job {most} times, not {restarts}"


def _how(profile: Profile) -> str:
    how = profile.when_preempted
    if how is None or not how.why:
        return ""
    return f" ({cite(profile, how.why, how.source)})"
