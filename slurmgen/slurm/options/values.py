"""Options under `sbatch:`, which have no key of their own: do they exist, is the value right.

What concerns the number of tasks, their GPUs, CPUs and memory has keys of its own, from
which the ranks follow; said twice it could only contradict them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import Refusal
from slurmgen.slurm.options import catalog
from slurmgen.slurm.quoting import check_directive

if TYPE_CHECKING:
    from collections.abc import Callable, Container

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

_SIGNED = re.compile(r"[+-]?\d{1,18}")


def check_option(name: str, value: str | None, version: str | None) -> str | None:
    """The value as it is rendered, None for a flag without one; raises Refusal.

    value: None or "true" where only the name is given. version: a release line; None,
    where it is not known, allows what any of them does.
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
    check_directive(given)
    if not given:
        raise Refusal(f"{name} is empty", why="it would say nothing", fix="remove it")
    if len(given.encode()) > 1024:
        raise Refusal(f"{name} is too long", why="Slurm takes 1024 bytes", fix="shorten it")
    grammar = GRAMMARS[option.grammar] if option.grammar is not None else None
    # A regular expression takes the digits of every script, Slurm those of ASCII.
    if grammar is not None and not (given.isascii() and grammar.takes(given, version)):
        raise Refusal(
            f'"{given}" is no value for {name}', why=grammar.words, fix=f"see sbatch(1), --{name}"
        )
    return given


def is_for_a_script(name: str) -> bool:
    """Whether an option of sbatch is a property of a job."""
    return name not in _NOT_FOR_A_SCRIPT


def decided_by(name: str, keys: Container[str]) -> str | None:
    """The job file's own key for an option, or the keys it follows from.

    keys: those that are called after an option.
    """
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


def _at_least(version: str | None, line: str) -> bool:
    """Whether the version is known to be that new: for what newer ones no longer take."""
    return version is not None and _is_newer(version, line)


def _words(*allowed: str) -> Callable[[str, str | None], bool]:
    return lambda value, _: all(word in allowed for word in value.lower().split(","))


def _number(least: int, most: int = 2**31) -> Callable[[str, str | None], bool]:
    def check(value: str, _: str | None) -> bool:
        if least >= 0 and not value.isdecimal():
            return False
        return bool(_SIGNED.fullmatch(value)) and least <= int(value) <= most

    return check


def _pattern(pattern: str) -> Callable[[str, str | None], bool]:
    return lambda value, _: bool(re.fullmatch(pattern, value, re.IGNORECASE))


def _gpu_bind(value: str, version: str | None) -> bool:
    body = value.lower().removeprefix("verbose,")
    numbers = r"\d+(\*\d+)?(,\d+(\*\d+)?)*"
    masks = numbers.replace(r"\d+(", r"(0x)?[\da-f]+(")
    if re.fullmatch(rf"closest|single:[1-9]\d*|map_gpu:{numbers}|mask_gpu:{masks}", body):
        return True
    return _is_newer(version, "21.08") and bool(re.fullmatch(r"none|per_task:\d+", body))


def _switches(value: str, _: str | None) -> bool:
    count, at, wait = value.partition("@")
    if not re.fullmatch(r"[1-9]\d{0,8}", count):
        return False
    return not at or bool(re.fullmatch(r"\d+(-\d+)?(:\d+){0,2}", wait))


def _propagate(value: str, _: str | None) -> bool:
    # ALL and NONE stand alone, and all are written in capitals (seen on 22.05).
    return value in ("ALL", "NONE") or all(word in _LIMITS for word in value.split(","))


def _cpu_freq(value: str, _: str | None) -> bool:
    order = ("low", "medium", "highm1", "high")
    span, colon, governor = value.lower().partition(":")
    if colon and ("-" not in span or governor not in _GOVERNORS):
        return False
    if not colon and span in _GOVERNORS:
        return True
    ends = span.split("-")
    if len(ends) > 2 or not all(end in order or end.isdecimal() for end in ends):
        return False
    if all(end in order for end in ends):
        return len(ends) == 1 or order.index(ends[0]) < order.index(ends[1])
    return not all(end.isdecimal() for end in ends) or int(ends[0]) <= int(ends[-1])


def _gres_flags(value: str, version: str | None) -> bool:
    allowed = {"enforce-binding", "disable-binding"}
    if _is_newer(version, "24.05"):
        allowed.add("multiple-tasks-per-sharing")
    return value.lower() in allowed


_LIMITS = "AS CORE CPU DATA FSIZE MEMLOCK NOFILE NPROC RSS STACK".split()
_GOVERNORS = "conservative ondemand performance powersave schedutil userspace".split()
_FREQUENCY = r"(low|medium|highm1|high|\d+)"
_POSITION = r"([1-9]\d*|\*)"


class Grammar(NamedTuple):
    """Whether a value is one, for a release line (None: for any), and what it has to be."""

    takes: Callable[[str, str | None], bool]
    words: str


# By the names that the table of options has for them.
GRAMMARS = {
    "from-1": Grammar(_number(1), "it is a whole number from 1"),
    "from-0": Grammar(_number(0), "it is a whole number"),
    "0-or-1": Grammar(_number(0, 1), "it is 0 or 1"),
    "minutes": Grammar(_number(0), "it is a number of minutes"),
    "memory": Grammar(_pattern(r"\d+[kmgt]?b?"), "it is a whole number with K, M, G or T"),
    "distribution": Grammar(
        _pattern(r"(\*|block|cyclic)(:(\*|block|cyclic|fcyclic)){0,2}(,(no)?pack)?|(no)?pack"),
        "it is block or cyclic, with :block, :cyclic or :fcyclic; with plane and arbitrary the "
        "ranks would not sit as planned",
    ),
    "gpu-bind": Grammar(
        _gpu_bind,
        "it is closest, single:N, map_gpu:… or mask_gpu:…; none and per_task need 21.08",
    ),
    "gres-flags": Grammar(
        _gres_flags,
        "it is enforce-binding or disable-binding, or needs srun or a newer Slurm",
    ),
    "hint": Grammar(
        _words("compute_bound", "memory_bound", "multithread", "nomultithread"),
        "it is compute_bound, memory_bound, multithread or nomultithread",
    ),
    "switches": Grammar(_switches, "it is a number of at least 1, and a time behind @"),
    "nice": Grammar(_number(-2147483645, 2147483645), "it is a number of at most 2147483645"),
    "priority": Grammar(
        lambda value, _: value.lower() == "top" or _number(0, 4_294_967_292)(value, None),
        "it is TOP or a number under 4294967293, which is Slurm's mark for TOP",
    ),
    "kill-on-invalid-dep": Grammar(_words("yes", "no"), "it is yes or no"),
    "profile": Grammar(
        _words("all", "none", "energy", "task", "lustre", "network"),
        "it is all, none, energy, task, lustre or network",
    ),
    "propagate": Grammar(
        _propagate, f"it is ALL, NONE or a list of {', '.join(_LIMITS)}, in capitals"
    ),
    "cpu-freq": Grammar(
        _cpu_freq,
        "it is KHZ, low, medium, high or highm1, LOW-HIGH[:GOVERNOR], or a governor",
    ),
    "gpu-freq": Grammar(
        lambda value, _: bool(
            re.fullmatch(
                rf"({_FREQUENCY}|memory={_FREQUENCY}|verbose)(,(memory={_FREQUENCY}|verbose))*",
                value,
            )
        ),
        "it is low, medium, high, highm1 or MHz, and memory=… and verbose behind a comma",
    ),
    "mem-bind": Grammar(
        _pattern(
            r"((quiet|q|verbose|v|prefer|p|sort|nosort),)*"
            r"(none|no|rank|local|map_mem:\d+(,\d+)*|mask_mem:(0x)?[\da-f]+(,(0x)?[\da-f]+)*"
            r"|quiet|q|verbose|v|prefer|p|sort|nosort)"
        ),
        "it is none, rank, local, map_mem:… or mask_mem:…, after verbose or prefer",
    ),
    "acctg-freq": Grammar(
        _pattern(
            r"(\d+|(task|energy|network|filesystem)=\d+)"
            r"(,(task|energy|network|filesystem)=\d+)*"
        ),
        "it is seconds, or a list of task=, energy=, network= and filesystem=",
    ),
    "wckey": Grammar(
        lambda value, version: not value.startswith("*") or not _at_least(version, "26.05"),
        "from 26.05 on Slurm refuses a leading *, its own mark for a default",
    ),
    "no-kill": Grammar(_words("off"), "its only value is off"),
    "extra-node-info": Grammar(
        _pattern(rf"{_POSITION}(:{_POSITION}){{0,2}}"), "it is sockets[:cores[:threads]]"
    ),
}
