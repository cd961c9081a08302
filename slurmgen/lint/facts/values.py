"""Is the value of a directive one that sbatch takes, and takes as it was meant?

The grammars are those of `slurmgen/slurm/grammars`; where a job file may be more generous
than sbatch (`90m`) or must be stricter (`--ntasks=…` ranges), it is said here.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.errors import Refusal
from slurmgen.jobfile import kinds, readers
from slurmgen.jobfile.keys import KEYS, OPTIONS
from slurmgen.slurm.grammars.array import parse_array
from slurmgen.slurm.grammars.constraint import canonical_constraint
from slurmgen.slurm.grammars.dependency import canonical_dependency
from slurmgen.slurm.grammars.mail import TYPES
from slurmgen.slurm.grammars.memory import parse_memory
from slurmgen.slurm.grammars.nodes import expand_hostlist
from slurmgen.slurm.grammars.signal import canonical_signal
from slurmgen.slurm.grammars.time import format_time, parse_time
from slurmgen.slurm.options import catalog
from slurmgen.slurm.options.values import check_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from slurmgen.jobfile.kinds import Kind

    Check = Callable[[str, str | None], "Fault | None"]


class Fault(NamedTuple):
    """What is wrong with a value; meant: the value to write, where that is no guess."""

    what: str
    why: str
    fix: str
    severity: str = ERROR
    meant: str | None = None


def fault(option: str, value: str, slurm: str | None) -> Fault | None:
    """What sbatch of a release line (None: any) has against a value; None: nothing."""
    if option in _TEXTS and len(value.encode("utf-8", "replace")) > _MOST_BYTES:
        return Fault(
            f"the value of --{option} is longer than {_MOST_BYTES} bytes",
            "Slurm complains of the pathname of a file, directory or other parameter",
            "shorten it",
        )
    check = _CHECKS.get(option)
    if check is not None:
        return check(value, slurm)
    known = catalog.find(option)
    if known is not None and known.grammar is not None:
        try:
            # A job file's `true` is a flag's.
            check_option(option, "True" if value == "true" else value, slurm)
        except Refusal as refusal:
            return _of(refusal)
    return None


def _of(refusal: Refusal, severity: str = ERROR, meant: str | None = None) -> Fault:
    return Fault(refusal.what, refusal.why, refusal.fix, severity, meant)


def _number(value: str, _: str | None) -> Fault | None:
    if value.isascii() and value.isdigit() and value.strip("0"):
        return None
    digits = re.match(r"\d+", value)
    return Fault(
        f'"{value}" is not a whole number from 1',
        "sbatch says: Invalid numeric value",
        f"write {digits[0]}" if digits and digits[0].strip("0") else "write a whole number from 1",
    )


def _nodes(value: str, slurm: str | None) -> Fault | None:
    found = re.fullmatch(r"(\d+)[km]?(?:-(\d+)[km]?)?", value, re.IGNORECASE | re.ASCII)
    if found is not None:
        if found[2] and int(found[2][:9]) < int(found[1][:9]) and value[-1].isdigit():
            why = "sbatch says: invalid number of nodes"
            return Fault(f'"{value}" counts down', why, f"write {found[2]}-{found[1]}")
        return None
    if re.fullmatch(r"\d+([-,:]\d+)+", value, re.ASCII):
        if slurm is None or slurm >= "23.02":
            return None
        return Fault(f'"{value}" is a list of counts', "Slurm reads one from 23.02 on", "name one")
    return Fault(f'"{value}" is not a number of nodes', "it is N or MIN-MAX", "write, say, 2")


def _time(value: str, _: str | None) -> Fault | None:
    if re.fullmatch(r"\d{1,5}-", value, re.ASCII):
        return None
    why = "sbatch takes minutes, M:S, H:M:S, D-H, D-H:M and D-H:M:S, without units"
    try:
        seconds = parse_time(value)
    except Refusal as refusal:
        parts = value.split(":")
        if len(parts) == 4 and all(part.isdigit() for part in parts):
            return Fault(refusal.what, why, f"write {parts[0]}-{':'.join(parts[1:])}")
        fix = "write, say, 4:00:00 or 2-12:00:00" if "90m" in refusal.fix else refusal.fix
        return Fault(refusal.what, why, fix)
    if value[-1:].lower() in "dhms" and value[-1:].isalpha() and value[0].isdigit():
        meant = format_time(seconds)
        return Fault(f'"{value}" is not a time for sbatch', why, f"write {meant}", meant=meant)
    return None


def _memory(value: str, _: str | None) -> Fault | None:
    try:
        parse_memory(value)
    except Refusal as refusal:
        is_clear = re.fullmatch(r"\d+(\.\d+)?[kmgt]i?b?", value, re.IGNORECASE)
        meant = refusal.fix.removeprefix("write ") if is_clear else None
        return _of(refusal, meant=meant)
    return None


def _begin(value: str, _: str | None) -> Fault | None:
    from slurmgen.slurm.grammars.begin import canonical_begin

    try:
        canonical_begin(value)
    except Refusal as refusal:
        is_clear = re.fullmatch(r"\d{1,2}[ap]m|now\+\d+[a-z]+", value, re.IGNORECASE)
        meant = refusal.fix.removeprefix("write ") if is_clear else None
        return _of(refusal, meant=meant if meant and "," not in meant else None)
    return None


def _dependency(value: str, slurm: str | None) -> Fault | None:
    try:
        canonical_dependency(value)
    except Refusal as refusal:
        is_mixed = "mixes" in refusal.what and (slurm is None or slurm < "26.05")
        fault = _of(refusal, WARNING if is_mixed else ERROR)
        return fault._replace(fix=f"write {value.replace('=', ':')}") if "=" in value else fault
    return None


# What people call the events.
_MAIL_WORDS = {
    "ABORT": "FAIL",
    "COMPLETE": "END",
    "COMPLETED": "END",
    "DONE": "END",
    "ERROR": "FAIL",
    "FAILED": "FAIL",
    "FINISH": "END",
    "FINISHED": "END",
    "START": "BEGIN",
    "STARTED": "BEGIN",
}


def _mail_type(value: str, _: str | None) -> Fault | None:
    words = [word.strip() for word in value.split(",") if word.strip()]
    unknown = [word for word in words if word.upper() not in TYPES]
    if not unknown:
        return None
    word = unknown[0].upper()
    close = [_MAIL_WORDS[word]] if word in _MAIL_WORDS else get_close_matches(word, TYPES, n=1)
    fix = f"write {close[0]}" if close else f"known are {', '.join(TYPES)}"
    if unknown == words:
        return Fault(f'"{unknown[0]}" is no mail type', "sbatch says: Invalid --mail-type", fix)
    why = "Slurm drops it without a word, and the mail never comes"
    return Fault(f'"{unknown[0]}" is no mail type', why, fix, WARNING)


def _array(value: str, _: str | None) -> Fault | None:
    try:
        parse_array(value)
    except Refusal as refusal:
        # These sbatch takes, and does not as one would think.
        is_taken = re.search("named twice|%0 for no limit|one counts", refusal.why)
        return _of(refusal, WARNING if is_taken and not value.endswith("%") else ERROR)
    return None


def _signal(value: str, _: str | None) -> Fault | None:
    try:
        canonical_signal(value)
    except Refusal as refusal:
        swapped = re.fullmatch(r"((?:SIG)?[A-Za-z][A-Za-z0-9]+):(\d+)", value)
        if swapped is not None:
            return _of(refusal)._replace(fix=f"write {swapped[1]}@{swapped[2]}")
        return _of(refusal)
    return None


def _open_mode(value: str, _: str | None) -> Fault | None:
    if value.lower() in ("append", "truncate", "a", "t"):
        return None
    meant = {"a": "append", "t": "truncate"}.get(value[:1].lower())
    if meant is None:
        why = "it is append or truncate, and sbatch refuses another"
        return Fault(f'"{value}" is no open mode', why, "write append or truncate")
    why = "Slurm looks at the first letter only, and takes it for " + meant
    return Fault(f'"{value}" is no open mode', why, f"write {meant}", WARNING, meant)


def _exclusive(value: str, slurm: str | None) -> Fault | None:
    known = {"user": "", "mcs": "", "topo": "24.05"}
    since = known.get(value.lower())
    if since is None:
        why = "it is user, mcs, or from 24.05 topo; sbatch refuses another"
        return Fault(f'"{value}" is no value for --exclusive', why, "write --exclusive")
    if slurm is not None and slurm < since:
        return Fault(f'"{value}" needs Slurm {since}', "sbatch refuses it", "write --exclusive")
    return None


def _hosts(value: str, slurm: str | None) -> Fault | None:
    has_suffix = re.search(r"\][^\[\],]", value) is not None
    if "/" in value or (has_suffix and (slurm is None or slurm >= "23.11")):
        return None
    try:
        expand_hostlist(value)
    except Refusal as refusal:
        return _of(refusal)
    return None


def _by(reader: Callable[[str], object]) -> Check:
    def check(value: str, _: str | None) -> Fault | None:
        try:
            reader(value)
        except Refusal as refusal:
            return _of(refusal)
        return None

    return check


_TOKEN = re.compile(r"%(\d*)(.?)", re.DOTALL)
_NEWER_TOKENS = {"b": "24.11", "r": "25.11", "S": "25.11"}


def _log(value: str, slurm: str | None) -> Fault | None:
    if value.endswith("/"):
        why = "Slurm cannot open a folder, and the job ends at its start"
        return Fault(f'"{value}" is a folder', why, f"write {value}%j.out")
    if "\\" in value and "%" in value:
        why = "a backslash anywhere turns off all % patterns"
        return Fault(f'"{value}" holds a backslash', why, "remove it", WARNING)
    for found in _TOKEN.finditer(value):
        token = found[2]
        since = _NEWER_TOKENS.get(token)
        if since is not None and slurm is not None and slurm < since:
            why = f"Slurm knows it from {since} on, and leaves it as it stands"
            return Fault(f'"{found[0]}" is no pattern', why, "write %j or %A_%a", WARNING)
        if since is None and token not in "AajJnNstux%":
            why = "it stays in the file's name as it stands"
            fix = "write %j for the job's id, %x for its name, %A_%a in an array"
            return Fault(f'"{found[0]}" is no pattern', why, fix, WARNING)
    return None


def _distribution(value: str, _: str | None) -> Fault | None:
    if _DISTRIBUTION.fullmatch(value):
        return None
    why = "it is block, cyclic, arbitrary or plane=N, with :block, :cyclic or :fcyclic"
    close = get_close_matches(value, ("block", "cyclic", "arbitrary", "block:cyclic"), n=1)
    return Fault(f'"{value}" is no distribution', why, f"write {(close or ['block'])[0]}")


_DISTRIBUTION = re.compile(
    r"(\*|block|cyclic|arbitrary|plane=\d+)(:(\*|block|cyclic|fcyclic)){0,2}(,(no)?pack)?"
    r"|(no)?pack",
    re.IGNORECASE,
)
# By the kind of the key of the job file that is called after the option.
_OF_KIND: dict[Kind, Check] = {
    kinds.NODES: _nodes,
    kinds.COUNT: _number,
    kinds.TASKS: _number,
    kinds.CPUS: _number,
    kinds.TIME: _time,
    kinds.MEMORY: _memory,
    kinds.BEGIN: _begin,
    kinds.DEPENDENCY: _dependency,
    kinds.MAIL_TYPE: _mail_type,
    kinds.ARRAY: _array,
    kinds.SIGNAL: _signal,
    kinds.OPEN_MODE: _open_mode,
    kinds.EXCLUSIVE: _exclusive,
    kinds.CONSTRAINT: _by(canonical_constraint),
    kinds.LICENSES: _by(readers.licenses),
    kinds.HOSTS: _hosts,
    kinds.LOG: _log,
}
_CHECKS: dict[str, Check] = {
    **{
        option: _OF_KIND[KEYS[key].kind]
        for key, option in OPTIONS.items()
        if KEYS[key].kind in _OF_KIND
    },
    **dict.fromkeys(("tasks-per-node", "ntasks-per-socket", "ntasks-per-gpu"), _number),
    "distribution": _distribution,
}
# Free text, of which Slurm takes so much.
_TEXT = (kinds.NAME, kinds.IDENTIFIER, kinds.NAME_LIST, kinds.CONSTRAINT, kinds.LICENSES)
_TEXTS = frozenset(option for key, option in OPTIONS.items() if KEYS[key].kind in _TEXT)
_MOST_BYTES = 1024
