"""`partition: auto` and `qos: auto`: which of a profile's take a job, and why.

The site's own default comes first, then the order of the profile, which is for whoever wrote
it to decide. What gives whole nodes comes behind that for a job that leaves GPUs of its nodes, and
what is for trials (`trial_partitions.py`) last, a default too: training goes there only where
nothing else takes it. Where a site has no default QOS and needs none, none is named before any
is. What needs special access, or is stopped for other jobs, a person has to name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.cluster.problems import refuse
from slurmgen.cluster.trial_partitions import is_for_trials
from slurmgen.jobfile.replaced import replaced
from slurmgen.slurm.grammars.gres import NO_GPUS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.cluster.profile import Partition, Profile, Qos
    from slurmgen.errors import Refusal
    from slurmgen.jobfile.job import JobSpec

AUTO = "auto"
# In place of a name, for a person.
_NO_QOS = "none"


class Candidate(NamedTuple):
    """The job with a choice made. names: what is chosen, by key (`partition`, `qos`).

    trials: those of the names that are for trials. wasteful: that which gives whole nodes, for
    a job that needs less.
    """

    spec: JobSpec
    names: dict[str, str]
    trials: tuple[str, ...]
    wasteful: str = ""


def is_open(spec: JobSpec) -> bool:
    """Whether the job leaves a choice to the profile."""
    return AUTO in (spec.partition, spec.qos)


def candidates(spec: JobSpec, profile: Profile) -> list[Candidate]:
    """Every choice that the profile offers, the best first."""
    places = _partitions(spec, profile) if spec.partition == AUTO else [None]
    levels = _qos(profile) if spec.qos == AUTO else [None]
    found = []
    for place in places:
        wasteful = place.name if place is not None and _wastes(spec, place, profile) else ""
        for level in levels:
            values: dict[str, str | None] = {}
            names: dict[str, str] = {}
            if place is not None:
                names["partition"] = place.name
                values["partition"] = None if place.unnamed is not None else place.name
            if spec.qos == AUTO:
                values["qos"] = None if level is None else level.name
                names["qos"] = _NO_QOS if level is None else level.name
            given = (one for one in (place, level) if one is not None)
            trials = tuple(one.name for one in given if is_for_trials(one))
            found.append(Candidate(replaced(spec, **values), names, trials, wasteful))
    return sorted(found, key=lambda one: (bool(one.trials), bool(one.wasteful)))


def _wastes(spec: JobSpec, place: Partition, profile: Profile) -> bool:
    """Whether the job would have GPUs there that it does not ask for."""
    if not place.whole_nodes:
        return False
    gpu_type, gpus = spec.gpus_per_node or NO_GPUS
    counts = [
        kind.gpus_per_node
        for kind in profile.node_types
        if kind.gpus_per_node
        and (not place.node_types or kind.name in place.node_types)
        and gpu_type in (None, kind.gpu, kind.name)
    ]
    return bool(counts) and 0 < gpus < min(counts)


def _partitions(spec: JobSpec, profile: Profile) -> list[Partition | None]:
    _, gpus = spec.gpus_per_node or NO_GPUS
    with_gpus = {kind.name for kind in profile.node_types if kind.gpu or kind.gpus_per_node}
    chosen_by = {
        name
        for kind in profile.node_types
        if kind.name in with_gpus and kind.select.partition
        for name in kind.select.partition.split(",")
    }
    found: list[Partition | None] = []
    last: list[Partition | None] = []
    # One that must not be named is the site's own choice as much as a default is.
    for place in sorted(profile.partitions, key=lambda p: (not p.default, p.unnamed is None)):
        if place.access or place.preemptible:
            continue
        held = set(place.node_types)
        if gpus:
            # A partition that says nothing of its nodes has GPUs where the kinds say so.
            fits = not held.isdisjoint(with_gpus) if held else not chosen_by
            if fits or place.name in chosen_by:
                found.append(place)
        elif held and held <= with_gpus:
            last.append(place)
        else:
            found.append(place)
    return found + last


def _qos(profile: Profile) -> list[Qos | None]:
    ordered = sorted(profile.qos, key=lambda level: not level.default)
    found: list[Qos | None] = [q for q in ordered if not (q.access or q.preemptible)]
    has_default = any(level.default for level in profile.qos)
    needed = has_default or "qos" in profile.required
    return found if needed or not profile.qos else [None, *found]


def reason(
    chosen: Candidate,
    profile: Profile,
    passed: Sequence[tuple[Candidate, Refusal]],
    left: Sequence[Candidate] = (),
) -> str:
    """`partition: auto is long (…): …`, for a person. left: those that were not tried."""
    said = " and ".join(f"{key}: auto is {name}" for key, name in chosen.names.items())
    others = "; ".join(f"{_named(other)}: {problem.what}" for other, problem in passed)
    others = f" (not {others})" if others else ""
    if chosen.trials:
        which = " and ".join(chosen.trials)
        return f"{said}; {which} is for trials, but nothing else takes such a job{others}"
    defaults = [p.name for p in (*profile.partitions, *profile.qos) if p.default] + [_NO_QOS]
    if all(name in defaults for name in chosen.names.values()):
        said += f", the default of {profile.name}"
    else:
        said += f", the first that {profile.name}'s profile has for such a job{others}"
    wasteful = dict.fromkeys(other.wasteful for other in left if other.wasteful)
    if wasteful and not chosen.wasteful:
        said += f"; {', '.join(wasteful)} would give whole nodes"
    trials = dict.fromkeys(name for other in left for name in other.trials)
    for_trials = f"; for trials, and only if nothing else is left: {', '.join(trials)}"
    return said + (for_trials if trials else "")


def _named(candidate: Candidate) -> str:
    return " with ".join(candidate.names.values())


def unknown_ranks(spec: JobSpec) -> list[Refusal]:
    """The Refusal that a job with a script of its own leaves the choice open."""
    problems: list[Refusal] = []
    key = "partition" if spec.partition == AUTO else "qos"
    refuse(
        problems,
        key,
        f"{key}: auto beside script",
        "what the script starts is not known, so no limit can be compared with it",
        f"write the {key}, or command: in place of script:",
    )
    return problems


def none_fits(
    spec: JobSpec, profile: Profile, passed: Sequence[tuple[Candidate, Refusal]]
) -> list[Refusal]:
    """The Refusal that there is nothing to choose."""
    problems: list[Refusal] = []
    key = "partition" if spec.partition == AUTO else "qos"
    noun = "partition" if key == "partition" else "QOS"
    named = profile.partitions if key == "partition" else profile.qos
    shut = [place.name for place in named if place.access or place.preemptible]
    never = (
        f"those that need access, or are stopped for other jobs, are never chosen: "
        f"{', '.join(shut)}"
    )
    if not passed:
        refuse(
            problems,
            key,
            f"{key}: auto, and the profile {profile.name} has no {noun} for such a job",
            never if shut else f"it names no {noun} that this job could go to",
            f"write {key}: {shut[0]}"
            if shut
            else f"remove {key}, or name a cluster (--cluster; `slurmgen cluster detect` makes "
            "a profile of the one you are on)",
        )
        return problems
    _, nearest = min(passed, key=lambda one: one[1].key != "time")
    tried = [f"{_named(other)}: {problem.what}" for other, problem in passed]
    refuse(
        problems,
        key,
        f"{key}: auto, and no {noun} of {profile.name} takes the job",
        "; ".join([*tried, never] if shut else tried),
        nearest.fix + (f", or name the {noun} yourself" if shut else ""),
    )
    return problems
