"""A profile in words, with its documents, for `slurmgen cluster show`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from slurmgen.cluster.conditions import describe as in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from slurmgen.cluster.profile import (
        Addition,
        Bounds,
        Limit,
        NodeType,
        Partition,
        Profile,
        Qos,
        Reason,
    )

    # A text with the numbers of its sources behind it.
    _Cited = Callable[[str, Iterable[str]], str]

_WRAPPER = textwrap.TextWrapper(
    width=96,
    initial_indent="  ",
    subsequent_indent="    ",
    break_on_hyphens=False,
    break_long_words=False,
)


def describe(profile: Profile) -> Iterator[str]:
    """The lines, none of them ending in a blank. Numbers in brackets are the sources'."""
    numbers = {name: number for number, name in enumerate(profile.sources, 1)}
    for line in _lines(profile, numbers):
        yield line.rstrip()


def _lines(profile: Profile, numbers: dict[str, int]) -> Iterator[str]:
    def cited(text: str, source: Iterable[str]) -> str:
        places = "".join(f" [{numbers[name]}]" for name in source if name in numbers)
        return f"{text}{places}"

    site = f", {profile.site}" if profile.site else ""
    yield f"{profile.name}: {profile.title or profile.name}{site}"
    yield from _status(profile, cited)
    for heading, entries in (
        ("GPUs", _gpus(profile, cited)),
        ("Nodes", [cited(_node(kind), kind.source) for kind in profile.node_types]),
        ("Partitions", [cited(_place(place), place.source) for place in profile.partitions]),
        ("QOS", [cited(_place(place), place.source) for place in profile.qos]),
        ("Limits", [cited(_limit(limit), limit.source) for limit in profile.limits]),
        ("A job must give", _reasons(profile.required, cited)),
        ("A job must not have", _reasons(profile.forbidden, cited, dashes="--")),
        ("Account", _account(profile, cited)),
        ("Added to a job", [cited(_addition(a), a.source) for a in profile.add] + _plain(profile)),
        ("Starting", _starting(profile, cited)),
        ("Preemption", _preemption(profile, cited)),
        ("Suggested by the site, not loaded", _suggested(profile, cited)),
        ("Good to know", [cited(note.text, note.source) for note in profile.notes]),
        ("Recognised by", _recognised(profile, cited)),
    ):  # fmt: skip
        if entries:
            yield ""
            yield f"{heading}:"
            for entry in entries:
                yield from _WRAPPER.wrap(entry)
    if profile.sources:
        yield ""
        yield f"Sources{f', read on {profile.read_on}' if profile.read_on else ''}:"
        for name, number in numbers.items():
            source = profile.sources[name]
            kind = {"site-copy": ", a copy", "third-party": ", not the site's"}.get(source.kind, "")
            yield f"  [{number}] {source.where} ({source.date}{kind})"


def _status(profile: Profile, cited: _Cited) -> Iterator[str]:
    if profile.status != "in service":
        when = f" ({profile.ends})" if profile.ends else ""
        reason = f": {profile.status_reason}" if profile.status_reason else ""
        yield cited(f"status: {profile.status}{when}{reason}", profile.status_source)
    if not profile.verified:
        note = f": {profile.verified_note}" if profile.verified_note else ""
        yield f"not verified by the site's own documents{note}"


def _gpus(profile: Profile, cited: _Cited) -> list[str]:
    gpus = profile.gpus
    form = {
        "gres": "--gres=gpu:{T}N for each node",
        "gpus-per-node": "--gpus-per-node={T}N",
        "gpus": "--gpus={T}N, on several nodes --gpus-per-node={T}N",
        "gpus-per-task": "--gpus-per-task={T}N",
        "none": "no option: a job has all GPUs of its nodes",
    }[gpus.form]
    kind = {"always": "TYPE:", "optional": "[TYPE:]", "never": ""}[gpus.typed]
    text = form.replace("{T}", kind)
    if gpus.step is not None:
        text += f"; srun asks for them by --{gpus.step}"
    if gpus.counts:
        text += f"; {' or '.join(map(str, gpus.counts))} of a node"
    return [cited(_with_why(text, gpus.why), gpus.source)]


def _node(kind: NodeType) -> str:
    parts = [f"{kind.name}: {kind.gpus_per_node or '?'} x {kind.title or kind.gpu or 'GPU'}"]
    if kind.arch is not None:
        parts.append(kind.arch)
    if kind.gpu_memory is not None:
        parts.append(f"{kind.gpu_memory} each")
    if kind.cpus is not None:
        parts.append(f"{kind.cpus} CPUs for jobs")
    if kind.cpus_per_gpu is not None:
        rule = {"recommended": "", "maximum": " at most", "exact": " exactly"}[kind.cpus_rule]
        parts.append(f"{kind.cpus_per_gpu} for a GPU{rule}")
    if kind.memory is not None:
        parts.append(f"{kind.memory} of memory")
    if kind.mem_per_gpu is not None:
        parts.append(f"{kind.mem_per_gpu} for a GPU")
    if kind.gpu_counts:
        parts.append(f"{' or '.join(map(str, kind.gpu_counts))} GPUs of a node only")
    if kind.count is not None:
        parts.append(f"{kind.count} nodes")
    chosen = [f"{key}: {value}" for key, value in kind.select.given().items()]
    if chosen:
        parts.append(f"chosen by {', '.join(chosen)}")
    if kind.account is not None:
        parts.append(f"accounts {kind.account}")
    return _with_why(", ".join(parts), kind.note)


def _place(place: Partition | Qos) -> str:
    parts = [", ".join(_bounds(place))] if _bounds(place) else []
    parts += [f"{_condition(limit)}{', '.join(_bounds(limit))}" for limit in place.limits]
    if place.node_types:
        parts.append(f"{', '.join(place.node_types)} nodes")
    if place.default:
        parts.append("where a job names none")
    if place.preemptible:
        parts.append("preemptible")
    if getattr(place, "whole_nodes", False):
        parts.append("whole nodes")
    unnamed = getattr(place, "unnamed", None)
    if unnamed is not None:
        parts.append(f"must not be named ({unnamed})")
    parts += [text for text in (place.access, place.why, place.note) if text]
    return f"{place.name}: {'; '.join(parts)}" if parts else place.name


# What is said of each, and what it counts.
_BOUNDS = {
    "min_time": ("{} at least", ""),
    "max_time": ("up to {}", ""),
    "min_nodes": ("{} at least", "node"),
    "max_nodes": ("up to {}", "node"),
    "min_gpus": ("{} at least", "GPU"),
    "max_gpus": ("up to {}", "GPU"),
    "max_cpus": ("up to {}", "CPU"),
    "max_mem": ("up to {} of a node's memory", ""),
    "max_node_time": ("nodes x time up to {}", ""),
}


def _bounds(bounds: Bounds) -> list[str]:
    found = []
    for field, (text, noun) in _BOUNDS.items():
        value = getattr(bounds, field)
        if value is not None:
            found.append(
                text.format(f"{value} {noun}{'' if value == 1 else 's'}" if noun else value)
            )
    if bounds.gpu_counts:
        found.append(f"{' or '.join(map(str, bounds.gpu_counts))} GPUs of a node")
    return found


def _limit(limit: Limit) -> str:
    return _with_why(f"{_condition(limit)}{', '.join(_bounds(limit))}", limit.why)


def _condition(limit: Limit) -> str:
    words = in_words(limit.when)
    return f"{words}: " if words else ""


def _reasons(reasons: dict[str, Reason], cited: _Cited, dashes: str = "") -> list[str]:
    found = []
    for name, reason in reasons.items():
        words = in_words(reason.when)
        where = f" for {words}" if words else ""
        found.append(cited(f"{dashes}{name}{where}: {reason.why}", reason.source))
    return found


def _account(profile: Profile, cited: _Cited) -> list[str]:
    account = profile.account
    if account is None:
        return []
    shown = [f"like {text}" for text in (account.pattern, account.example) if text]
    return [cited(_with_why(", ".join(shown), account.why).strip("; "), account.source)]


def _addition(addition: Addition) -> str:
    parts = [f"#SBATCH --{o}" + (f"={v}" if v else "") for o, v in addition.sbatch.items()]
    parts += [f"srun {word}" for word in addition.srun]
    parts += [f"{name}={value}" for name, value in addition.env.items()]
    parts += [f"in each task {name}={value}" for name, value in addition.task_env.items()]
    parts += [f"module use {path}" for path in addition.module_use]
    parts += [f"module load {name}" for name in addition.modules]
    words = in_words(addition.when)
    return _with_why(f"{f'{words}: ' if words else ''}{', '.join(parts)}", addition.why)


def _plain(profile: Profile) -> list[str]:
    """What jobs get under no condition, and without a source of its own."""
    found = [f"{key}: {value}, where the job gives none" for key, value in profile.defaults.items()]
    found += [f"#SBATCH --{o}" + (f"={v}" if v else "") for o, v in profile.sbatch.items()]
    found += [f"srun {word}" for word in profile.srun]
    found += [f"{name}={value}" for name, value in profile.env.items()]
    found += ["module purge"] if profile.module_purge else []
    found += [f"module use {path}" for path in profile.module_use]
    found += [f"module load {name}" for name in profile.modules]
    return found


def _starting(profile: Profile, cited: _Cited) -> list[str]:
    found = []
    launch, binding, meeting = profile.launch, profile.binding, profile.rendezvous
    if launch is not None:
        parts = [f"launcher {' or '.join(launch.prefer)} is advised"] if launch.prefer else []
        parts += [f"not launcher {name}: {why}" for name, why in launch.avoid.items()]
        parts += [f"the site's own program is {launch.command}"] if launch.command else []
        found.append(cited(_with_why("; ".join(parts), launch.why), launch.source))
    if binding is not None:
        parts = [f"whole nodes: {' '.join(binding.whole_nodes)}"] if binding.whole_nodes else []
        if binding.shared_nodes:
            parts.append(f"shared nodes: {' '.join(binding.shared_nodes)}")
        found.append(cited(_with_why("; ".join(parts), binding.why), binding.source))
    if profile.container is not None:
        container = profile.container
        text = f"containers run by {container.runtime}"
        found.append(cited(_with_why(text, container.why), container.source))
    parts = []
    if meeting.suffix:
        parts.append(f"the first node's name with {meeting.suffix} behind it")
    elif meeting.address != "name":
        words = {"ip": "the first node's IP address", "address": "Slurm's address of it"}
        parts.append(words[meeting.address])
    if meeting.port is not None:
        last = meeting.port.first + meeting.port.count - 1
        parts.append(f"a port from {meeting.port.first} to {last}")
    if parts:
        text = f"ranks meet at {', '.join(parts)}"
        found.append(cited(_with_why(text, meeting.why), meeting.source))
    if profile.memory != "explicit":
        refused = profile.memory == "omit"
        found.append(f"memory options are {'refused' if refused else 'ignored'}")
    return found


def _preemption(profile: Profile, cited: _Cited) -> list[str]:
    how = profile.when_preempted
    if how is None:
        return []
    parts = [f"not in the first {how.exempt}"] if how.exempt else []
    parts += [f"{how.grace} from TERM to KILL"] if how.grace else []
    parts += [f"requeued: {how.requeue}"] if how.requeue else []
    parts += [f"{how.max_restarts} times at most"] if how.max_restarts else []
    return [cited(_with_why("; ".join(parts), how.why), how.source)]


def _suggested(profile: Profile, cited: _Cited) -> list[str]:
    suggested = profile.suggests
    if suggested is None:
        return []
    text = f"module load {' '.join(suggested.modules)}"
    return [cited(_with_why(text, suggested.note), suggested.source)]


def _recognised(profile: Profile, cited: _Cited) -> list[str]:
    detection = profile.detect
    if detection is None:
        return []
    parts = [f"{name}={' or '.join(values)}" for name, values in detection.env.items()]
    parts += [f"a host called {pattern}" for pattern in detection.hosts]
    return [cited(", ".join(parts), detection.source)]


def _with_why(text: str, why: str) -> str:
    return f"{text}; {why}" if why and text else text or why
