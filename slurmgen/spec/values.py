"""Options under `sbatch:`, which have no key of their own: do they exist, is the value right.

What concerns the number of tasks, their GPUs, CPUs and memory has keys of its own, from
which the ranks follow; said twice it could only contradict them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.errors import Refusal
from slurmgen.quoting import check_one_line
from slurmgen.spec import catalog

if TYPE_CHECKING:
    from collections.abc import Callable

# Options that are no property of a job, or would take it out of slurmgen's hands.
_NOT_FOR_A_SCRIPT = {
    "help": "it prints a help text",
    "usage": "it prints a help text",
    "version": "it prints a version",
    "autocomplete": "it is for shells",
    "verbose": "it is for the command line",
    "quiet": "it is for the command line",
    "parsable": "slurmgen submit prints the id",
    "test-only": "use slurmgen submit --test-only",
    "wait": "use slurmgen submit --wait",
    "wrap": "the script is rendered",
    "uid": "only root may use it, and a job file is no place for it",
    "gid": "only root may use it, and a job file is no place for it",
    "external": "such a job runs no script",
    "checkpoint": "Slurm has not had it since 20.02",
}

# Options that say what other keys decide: option -> what to write.
_DECIDED = {
    "gpus": "gpus_per_node",
    "gpus-per-task": "gpus_per_node",
    "gpus-per-socket": "gpus_per_node",
    "ntasks-per-gpu": "gpus_per_node",
    "ntasks-per-tres": "gpus_per_node",
    "ntasks-per-socket": "ntasks_per_node",
    "tres-per-task": "gpus_per_node and cpus_per_task",
    "tasks-per-node": "ntasks_per_node",
    "no-requeue": "requeue: false",
    "nodefile": "nodelist",
    "overcommit": "cpus_per_task",
}

_SIGNED = re.compile(r"[+-]?\d+")


def check_option(name: str, value: str | None, version: str | None) -> str | None:
    """The value as it is rendered, None for a flag without one; raises Refusal.

    value: None or "true" where only the name is given. version: a release line, or None
    where it is not known.
    """
    option = catalog.find(name)
    if option is None:
        raise _unknown(name)
    name = option.name
    if name in _NOT_FOR_A_SCRIPT:
        raise Refusal(f"{name} is not for a job file", why=_NOT_FOR_A_SCRIPT[name], fix="remove it")
    if not catalog.is_known_in(option, version):
        since = f"since {option.since}" if option.since else f"until {option.until}"
        raise Refusal(
            f"Slurm {version or ''} has no option {name}".replace("  ", " "),
            why=f"sbatch has it {since}",
            fix="remove it",
        )
    given = None if value is None or value == "true" else value
    if option.argument == "no":
        if given is not None:
            raise Refusal(
                f'{name} takes no value, and "{given}" is given',
                why="sbatch ends with: option doesn't allow an argument",
                fix=f"write {name}: true" if given != "false" else "remove it",
            )
        return None
    if given is None:
        if option.argument == "required":
            raise Refusal(f"{name} has no value", why="sbatch needs one", fix="give one")
        return None
    check_one_line(given)
    if not given:
        raise Refusal(f"{name} is empty", why="it would say nothing", fix="remove it")
    if len(given) > 1024:
        raise Refusal(f"{name} is too long", why="Slurm takes 1024 characters", fix="shorten it")
    check = _VALUES.get(name)
    if check is not None and not check(given, version):
        raise Refusal(
            f'"{given}" is no value for {name}', why=_GRAMMAR[name], fix=f"see sbatch(1), --{name}"
        )
    return given


def decided_by(name: str, keys: frozenset[str]) -> str | None:
    """The job file's own key for an option, or the keys it follows from."""
    squeezed = name.replace("-", "_")
    return squeezed if squeezed in keys else _DECIDED.get(name.replace("_", "-"))


def _unknown(name: str) -> Refusal:
    if catalog.is_srun_only(name):
        return Refusal(
            f"{name} is an option of srun",
            why="sbatch refuses it in a script",
            fix="remove it; the srun line is rendered",
        )
    close = catalog.suggest(name)
    return Refusal(
        f'sbatch has no option "{name}"',
        why="an unknown option ends sbatch with exit 255, and abbreviations are not for files",
        fix=f"write {close}"
        if close
        else f"for an option of a site's plugin write {name}: {{value: …, plugin: true}}",
    )


def _is_newer(version: str | None, line: str) -> bool:
    return version is None or ".".join(version.split(".")[:2]) >= line


def _words(*allowed: str) -> Callable[[str, str | None], bool]:
    return lambda value, _: all(word in allowed for word in value.lower().split(","))


def _number(least: int, most: int = 2**31) -> Callable[[str, str | None], bool]:
    return lambda value, _: bool(_SIGNED.fullmatch(value)) and least <= int(value) <= most


def _pattern(pattern: str) -> Callable[[str, str | None], bool]:
    return lambda value, _: bool(re.fullmatch(pattern, value, re.IGNORECASE))


def _gpu_bind(value: str, version: str | None) -> bool:
    body = re.sub(r"^(v|verbose)[,:]", "", value) if not value.startswith("v,n") else "?"
    if re.fullmatch(r"closest|single:[1-9]\d*|map_gpu:[\d,*x]+|mask_gpu:[\da-fx,*]+", body):
        return True
    newer = version is not None and _is_newer(version, "21.08")
    return newer and bool(re.fullmatch(r"none|per_task:\d+", body))


def _gres_flags(value: str, version: str | None) -> bool:
    allowed = {"enforce-binding", "disable-binding"}
    if version is not None and _is_newer(version, "24.05"):
        allowed.add("multiple-tasks-per-sharing")
    return value.lower() in allowed


_MEMORY_VALUE = _pattern(r"\d+[kmgt]?b?")
_LIMITS = "ALL NONE AS CORE CPU DATA FSIZE MEMLOCK NOFILE NPROC RSS STACK".lower().split()
_VALUES: dict[str, Callable[[str, str | None], bool]] = {
    "distribution": _pattern(
        r"(\*|block|cyclic)(:(\*|block|cyclic|fcyclic)){0,2}(,(no)?pack)?|,?(no)?pack"
    ),
    "gpu-bind": _gpu_bind,
    "gres-flags": _gres_flags,
    "hint": _words("compute_bound", "memory_bound", "multithread", "nomultithread"),
    "switches": _pattern(r"[1-9]\d*(@[\d:-]+)?"),
    "nice": _number(-2147483645, 2147483645),
    "priority": _pattern(r"top|\d+"),
    "kill-on-invalid-dep": _words("yes", "no"),
    "profile": _words("all", "none", "energy", "task", "lustre", "network"),
    "propagate": _words(*_LIMITS),
    "threads-per-core": _number(1),
    "cores-per-socket": _number(1),
    "sockets-per-node": _number(1),
    "mincpus": _number(1),
    "core-spec": _number(0),
    "thread-spec": _number(0),
    "wait-all-nodes": _number(0, 1),
    "ntasks-per-core": _number(1),
    "tmp": _MEMORY_VALUE,
    "requeue": lambda value, version: value == "expedite" and _is_newer(version, "25.11"),
    "segment": _number(1),
    "oom-kill-step": _number(0, 1),
    "delay-boot": _number(0),
    "no-kill": _words("off"),
    "extra-node-info": _pattern(r"(\d+|\*)(:(\d+|\*)){0,2}"),
}
_GRAMMAR = {
    "distribution": "it is block or cyclic, with :block, :cyclic or :fcyclic; with plane and "
    "arbitrary the ranks would not sit as planned",
    "gpu-bind": "it is closest, single:N, map_gpu:… or mask_gpu:…; none and per_task need 21.08",
    "gres-flags": "it is enforce-binding or disable-binding, or needs srun or a newer Slurm",
    "hint": "it is compute_bound, memory_bound, multithread or nomultithread",
    "switches": "it is a number of at least 1, and a time behind @",
    "nice": "it is a number of at most 2147483645",
    "priority": "it is TOP or a number",
    "kill-on-invalid-dep": "it is yes or no",
    "profile": "it is all, none, energy, task, lustre or network",
    "propagate": f"it is a list of {', '.join(_LIMITS).upper()}",
    "threads-per-core": "it is a whole number from 1",
    "cores-per-socket": "it is a whole number from 1",
    "sockets-per-node": "it is a whole number from 1",
    "mincpus": "it is a whole number from 1",
    "core-spec": "it is a whole number",
    "thread-spec": "it is a whole number",
    "wait-all-nodes": "it is 0 or 1",
    "ntasks-per-core": "it is a whole number from 1",
    "tmp": "it is a whole number with K, M, G or T",
    "requeue": "its only value is expedite, from 25.11",
    "segment": "it is a whole number from 1",
    "oom-kill-step": "it is 0 or 1",
    "delay-boot": "it is a number of minutes",
    "no-kill": "its only value is off",
    "extra-node-info": "it is sockets[:cores[:threads]]",
}
