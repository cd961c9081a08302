"""What the keys of a profile mean together, and words that would undo what a script decides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.errors import Refusal
from slurmgen.jobfile.keys import KEYS, OPTIONS
from slurmgen.jobfile.reserved import refused_variable
from slurmgen.slurm.options import catalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from slurmgen.cluster.profile.conditions import When
    from slurmgen.cluster.profile.facts import Facts
    from slurmgen.cluster.profile.options import Reason
    from slurmgen.diagnostics import KeyPath

# Options of srun that the script writes from the job's own keys, or that change what they mean.
_DECIDED = catalog.decided_by_the_plan() | {"kill-on-bad-exit", "wait", "export", "multi-prog"}


def option_names(reasons: Mapping[str, Reason], key: str) -> dict[str, Reason]:
    """Reasons by the long names of sbatch's options; raises Refusal for what is none."""
    found = {}
    for name, reason in reasons.items():
        option = catalog.find(name)
        if option is None:
            raise _unknown(name, key, catalog.suggest(name))
        found[option.name] = reason
    return found


def job_keys(reasons: Mapping[str, Reason], key: str) -> dict[str, Reason]:
    """Reasons by keys of the job file; raises Refusal for what is none."""
    from difflib import get_close_matches

    found = {}
    for name, reason in reasons.items():
        plain = name.replace("-", "_")
        if plain not in OPTIONS:
            close = get_close_matches(plain.lower(), sorted(OPTIONS), n=1)
            raise _unknown(name, key, close[0] if close else None)
        found[plain] = reason
    return found


def _unknown(name: str, key: str, close: str | None) -> Refusal:
    what = "an option of sbatch" if key == "forbidden" else "a key of the job file"
    return Refusal(
        f'"{name}" is not {what}',
        why=f"no job could ever have it, and the rule under {key} would never count",
        fix=f"write {close}" if close else "remove it",
    )


def check_profile(profile: Facts) -> Iterator[Refusal]:
    """Every conflict within a profile."""
    yield from _check_defaults(profile)
    yield from _check_environment(profile.env, ("env",))
    yield from _check_srun(profile.srun, ("srun",))
    for index, addition in enumerate(profile.add):
        yield from _check_environment(addition.env, ("add", index, "env"))
        yield from _check_environment(addition.task_env, ("add", index, "task_env"))
        yield from _check_srun(addition.srun, ("add", index, "srun"))
    if profile.binding is not None:
        yield from _check_srun(profile.binding.whole_nodes, ("binding", "whole_nodes"))
        yield from _check_srun(profile.binding.shared_nodes, ("binding", "shared_nodes"))
    yield from _check_names(profile)
    yield from _check_conditions(profile)
    yield from _check_sources(profile)
    yield from _check_ports(profile)


def _check_defaults(profile: Facts) -> Iterator[Refusal]:
    from difflib import get_close_matches

    takes = [name for name, key in KEYS.items() if key.in_profile]
    for name in profile.defaults:
        if name in takes:
            continue
        plain = name.replace("-", "_").lower()
        close = [] if name in KEYS else get_close_matches(plain, takes, n=1)
        refusal = Refusal(
            f'"{name}" has no default in a profile',
            why="it is what a job itself says, or takes more than one value"
            if name in KEYS
            else "it is no key of the job file, and every job would be refused",
            fix=f"write {close[0]}" if close else "remove it",
        )
        yield refusal.about(("defaults", name))


def _check_environment(env: Mapping[str, str], key: KeyPath) -> Iterator[Refusal]:
    for name in env:
        refusal = refused_variable(name)
        if refusal is not None:
            yield refusal.about((*key, name))


def _check_srun(words: Sequence[str], key: KeyPath) -> Iterator[Refusal]:
    for index, word in enumerate(words):
        refusal = refused_word(word)
        if refusal is not None:
            yield refusal.about((*key, index))


def _check_conditions(profile: Facts) -> Iterator[Refusal]:
    """What a condition or a QOS names is there."""
    kinds = [kind.name for kind in profile.node_types]
    known = {
        "node_type": kinds,
        "partition": [partition.name for partition in profile.partitions],
        "qos": [qos.name for qos in profile.qos],
    }
    for place, when in _conditions(profile):
        for key, names in known.items():
            for position, name in enumerate(getattr(when, key)):
                if name not in names:
                    what = f'there is no {key.replace("_", " ")} "{name}"'
                    yield _conflict((*place, "when", key, position), what, ", ".join(names))
    for index, qos in enumerate(profile.qos):
        for position, name in enumerate(qos.node_types):
            if name not in kinds:
                place = ("qos", index, "node_types", position)
                yield _conflict(place, f'there is no node type "{name}"', ", ".join(kinds))


def _conditions(profile: Facts) -> Iterator[tuple[KeyPath, When]]:
    for index, addition in enumerate(profile.add):
        yield ("add", index), addition.when
    for index, limit in enumerate(profile.limits):
        yield ("limits", index), limit.when
    for key in ("partitions", "qos"):
        for index, owner in enumerate(getattr(profile, key)):
            for position, limit in enumerate(owner.limits):
                yield (key, index, "limits", position), limit.when
    for key in ("required", "forbidden"):
        for name, reason in getattr(profile, key).items():
            yield (key, name), reason.when


def _check_sources(profile: Facts) -> Iterator[Refusal]:
    """Every block names documents of `sources`."""
    for place, names in cited(profile):
        for name in names:
            if name not in profile.sources:
                yield Refusal(
                    f'there is no source "{name}"',
                    why="whoever doubts the fact would not find where it is from",
                    fix=f"known: {', '.join(profile.sources)}"
                    if profile.sources
                    else "describe it under sources:",
                    key=place,
                )


def cited(model: object, place: KeyPath = ()) -> Iterator[tuple[KeyPath, tuple[str, ...]]]:
    """The place of every `source` in a profile, and what it names."""
    if isinstance(model, tuple):
        for index, item in enumerate(model):
            yield from cited(item, (*place, index))
    elif isinstance(model, dict):
        for key, item in model.items():
            yield from cited(item, (*place, key))
    elif hasattr(model, "model_fields_set"):
        for key, value in model.__dict__.items():
            if key in ("source", "status_source"):
                yield (*place, key), value
            else:
                yield from cited(value, (*place, key))


def _check_ports(profile: Facts) -> Iterator[Refusal]:
    port = profile.rendezvous.port
    if port is not None and port.first + port.count > 65_536:
        yield Refusal(
            f"ports {port.first} to {port.first + port.count - 1}",
            why="the last port there is is 65535",
            fix=f"write count: {65_536 - port.first}",
            key=("rendezvous", "port"),
        )


def _check_names(profile: Facts) -> Iterator[Refusal]:
    """Node types and partitions name each other."""
    kinds = [kind.name for kind in profile.node_types]
    named = [partition.name for partition in profile.partitions if partition.unnamed is None]
    for index, kind in enumerate(profile.node_types):
        place: KeyPath = ("node_types", index)
        if kind.name in kinds[:index]:
            yield _conflict((*place, "name"), f'two node types are called "{kind.name}"', "")
        chosen = kind.select.partition
        if profile.partitions and chosen is not None:
            for name in chosen.split(","):
                if name not in named:
                    what = f'"{name}" is no partition that a job may name'
                    yield _conflict((*place, "select", "partition"), what, ", ".join(named))
    for index, partition in enumerate(profile.partitions):
        for position, name in enumerate(partition.node_types):
            if name not in kinds:
                place = ("partitions", index, "node_types", position)
                yield _conflict(place, f'there is no node type "{name}"', ", ".join(kinds))


def _conflict(key: KeyPath, what: str, known: str) -> Refusal:
    return Refusal(
        what,
        why="node types and partitions find each other by their names",
        fix=f"known: {known}" if known else "give it a name of its own",
        key=key,
    )


def refused_word(word: str) -> Refusal | None:
    """Why a word cannot be added to every srun line, or None where it can."""
    if not re.fullmatch(r"-[A-Za-z].*|--[A-Za-z].*", word, re.DOTALL):
        return Refusal(
            f'"{word[:40]}" is not an option of srun',
            why="srun would take it for the program, or for the value of something else",
            fix="write --name=value in one word",
        )
    if _is_decided(word):
        return Refusal(
            f"{word[:40]} says what the script decides",
            why="it stands behind the script's own option, and srun takes the last one",
            fix="remove it: tasks and what they get follow from the job's keys, and a "
            "distribution goes under sbatch:",
        )
    if _takes_the_next_word(word):
        return Refusal(
            f"{word[:40]} has no value",
            why="srun would take the next word of its line for it",
            fix=f"write {word}=VALUE in one word" if word.startswith("--") else "add its value",
        )
    return None


def _is_decided(word: str) -> bool:
    if not word.startswith("--"):
        return any(option.name in _DECIDED for option in _of_letters(word))
    name = word[2:].partition("=")[0]
    if catalog.find(name) is not None or catalog.is_srun_only(name):
        return name.replace("_", "-") in _DECIDED
    # getopt takes any beginning of a name for the whole.
    return any(option.startswith(name) for option in _DECIDED)


def _takes_the_next_word(word: str) -> bool:
    if word.startswith("--"):
        option = catalog.srun_options().get(word[2:].replace("_", "-"))
        return option is not None and option.argument == "required"
    options = _of_letters(word)
    return len(options) == len(word) - 1 and options[-1].argument == "required"


def _of_letters(word: str) -> list[catalog.Option]:
    """The options of `-lu` or `-pgpu`: as far as they have no argument, and the first that may."""
    known = catalog.by_letter(catalog.srun_options())
    found: list[catalog.Option] = []
    for letter in word[1:]:
        if letter not in known:
            break
        found.append(known[letter])
        if known[letter].argument != "no":
            break
    return found
