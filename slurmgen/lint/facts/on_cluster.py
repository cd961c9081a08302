"""What the profile of a cluster has against a request: the checks of a job file, asked anew.

`slurmgen.cluster.limits` speaks of a job file's keys; here they become options.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from slurmgen.cluster import limits
from slurmgen.cluster.ask import Ask
from slurmgen.errors import Refusal
from slurmgen.jobfile import keys, readers
from slurmgen.jobfile.job import JobSpec
from slurmgen.launchers import Layout
from slurmgen.slurm.options import catalog

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from slurmgen.cluster.profile import Profile
    from slurmgen.cluster.profile.limits import Selectable
    from slurmgen.jobfile.readers import Reader
    from slurmgen.slurm.directives import Directive
    from slurmgen.slurm.request import Request

_Place = TypeVar("_Place", bound="Selectable")

# The options whose key says the same, and how their values are read.
_READERS: dict[str, Reader] = {
    keys.OPTIONS[name]: key.kind.read
    for name, key in keys.KEYS.items()
    if key.becomes == keys.COPIED or name in keys.MEMORY
}
# Those that a job file has under `sbatch:`.
_OTHERS: dict[str, Reader] = {
    "mincpus": readers.memory_text,
    "prefer": readers.constraint,
    "resources": readers.licenses,
    "threads-per-core": readers.memory_text,
    "tmp": readers.memory_text,
}
_GPU_OPTIONS = ("gpus-per-node", "gres", "gpus", "gpus-per-task")
_KEY = re.compile(r"\b(write|add|remove) (?:sbatch\.)?([a-z][a-z_-]{2,})(?::\s*([^ ,]+)|:$)?")


class Mismatch(NamedTuple):
    """directive: None where nothing in the script says so."""

    directive: Directive | None
    what: str
    why: str
    fix: str


class Asked(NamedTuple):
    """A request in the words of a job file, as far as the checks look at it."""

    spec: JobSpec
    ask: Ask
    directives: list[keys.Directive]


def mismatches(
    request: Request, profile: Profile, sound: Collection[int], *, complete: bool = False
) -> Iterator[Mismatch]:
    """Everything the profile knows to be impossible.

    sound: where the directives start whose values can be judged. complete: nothing is added on
    the command line, so that what must be given is missing, and a default is what counts.
    """
    problems: list[Refusal] = []
    spec, ask, written = asked(request, profile, sound, problems)
    # A release is another rule's.
    known = profile.model_copy(update={"slurm": None})
    if not complete:
        known = known.model_copy(
            update={
                "required": {},
                "partitions": tuple(map(_named_only, profile.partitions)),
                "qos": tuple(map(_named_only, profile.qos)),
            }
        )
    if ask.gpu_type is None and not ask.gpus:
        known = known.model_copy(update={"gpus": known.gpus.model_copy(update={"counts": ()})})
    limits.check(spec, known, ask, written, problems)
    for problem in problems:
        yield translated(problem, request)


def asked(
    request: Request, profile: Profile, sound: Collection[int], problems: list[Refusal]
) -> Asked:
    """The request on the nodes that it would get there; adds a Refusal where there are none."""
    spec = _spec(request, sound)
    gpu_type, gpus = request.gpu_type, request.node_gpus or 0
    if gpu_type is not None and not gpus:
        gpus = request.gpus_per_node or request.gpus_per_task or 1
    node_type = limits.choose_node_type(spec, profile, gpu_type, gpus, problems)
    each = request.tasks_per_node or 1
    cpus = request.cpus_per_task or (request.cpus_per_gpu or 0) * gpus // each or 1
    ask = Ask(node_type, Layout(request.total_tasks or each, each, 1), gpu_type, gpus, cpus)
    written = [
        keys.Directive(directive.option, directive.value, (directive.option.replace("-", "_"),))
        for directive in request.directives
        if directive.start in sound
    ]
    return Asked(spec, ask, written)


def _named_only(place: _Place) -> _Place:
    """A script that names no partition may be given one on the command line."""
    return place.model_copy(update={"default": False}) if place.default else place


def _spec(request: Request, sound: Collection[int]) -> JobSpec:
    """As much of a job file as the checks look at; nothing of it is validated."""
    values: dict[str, Any] = {"nodes": request.total_nodes or 1, "command": "true"}
    if request.nodes is not None and request.total_nodes is None:
        values["nodes"] = request.nodes[0]
    others: dict[str, str | None] = {}
    for directive in request.directives:
        option = directive.option
        if directive.start not in sound:
            continue
        if option in _READERS and directive.value is not None:
            try:
                values[option.replace("-", "_")] = _READERS[option](directive.value)
            except Refusal:
                continue
        elif option == "gres":
            others_than_gpus = [
                item
                for item in (directive.value or "").split(",")
                if item and not re.match(r"(gres[/:])?gpus?\b", item, re.IGNORECASE)
            ]
            values["gres"] = ",".join(others_than_gpus) or None
        elif option in _OTHERS and directive.value is not None:
            try:
                others[option] = _OTHERS[option](directive.value)
            except Refusal:
                continue
        elif option == "exclusive":
            values["exclusive"] = directive.value or "true"
    values["cpus_per_task"] = request.cpus_per_task
    values["cpus_per_gpu"] = request.cpus_per_gpu
    values["ntasks_per_node"] = request.ntasks_per_node
    return JobSpec.model_construct(sbatch=others, **values)


def translated(problem: Refusal, request: Request) -> Mismatch:
    """A Refusal of keys as one of directives."""
    key = problem.key if isinstance(problem.key, str) else str((*problem.key, "")[-2])
    directive = directive_of(key, request)
    fix = _KEY.sub(_option, problem.fix)
    if directive is not None and directive.option == "gres":
        kind = f"{request.gpu_type}:" if request.gpu_type else ""
        fix = re.sub(r"--gpus-per-node=(?=\d)", f"--gres=gpu:{kind}", fix)
        fix = fix.replace("--gpus-per-node", "--gres")
    return Mismatch(directive, _of_options(problem.what), _of_options(problem.why), fix)


def directive_of(key: str, request: Request) -> Directive | None:
    """The directive that says what a job file has under `key`."""
    option = key.replace("_", "-")
    if option == "gpus-per-node":
        return next((d for d in map(request.directive, _GPU_OPTIONS) if d is not None), None)
    for name in (option, "ntasks-per-node", "ntasks"):
        found = request.directive(name)
        if found is not None and (name == option or option in ("ntasks-per-node", "cpus-per-gpu")):
            return found
    return None


def _of_options(text: str) -> str:
    """`time 5:00:00 is over …` as a directive says it."""
    return re.sub(r"^(time|nodes|mem) (?=\d|UNLIMITED)", r"--\1=", text)


def _option(found: re.Match[str]) -> str:
    option = found[2].replace("_", "-")
    if catalog.find(option) is None:
        return found[0]
    return f"{found[1]} --{option}" + (f"={found[3]}" if found[3] else "")
