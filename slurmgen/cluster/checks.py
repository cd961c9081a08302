"""What the keys of a profile mean together, and words that would undo what a script decides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.errors import Refusal
from slurmgen.spec import catalog
from slurmgen.spec.checks import Conflict, refused_variable
from slurmgen.spec.hints import OWN_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from slurmgen.cluster.profile import Profile
    from slurmgen.source import KeyPath

# Options of srun that the script writes from the job's own keys, or that change what they mean.
_DECIDED = catalog.DECIDED_BY_THE_PLAN | {"kill-on-bad-exit", "wait", "export", "multi-prog"}
_DECIDED_LETTERS = frozenset("NncKWGmO")
# Letters without an argument: another one may follow in the same word (srun(1)).
_FLAGS = frozenset("EHOQVXZhklsuv")
# srun's own options that take the next word where they have no `=`.
_VALUED = frozenset(
    """
    accel-bind bcast-exclude cpu-bind cpu_bind epilog het-group jobid mpi msg-timeout
    pack-group prolog relative slurmd-debug task-epilog task-prolog threads treewidth
    """.split()
)


def option_names(reasons: Mapping[str, str], key: str) -> dict[str, str]:
    """Reasons by the long names of sbatch's options; raises Refusal for what is none."""
    found = {}
    for name, reason in reasons.items():
        option = catalog.find(name)
        if option is None:
            raise _unknown(name, key, catalog.suggest(name))
        found[option.name] = reason
    return found


def job_keys(reasons: Mapping[str, str], key: str) -> dict[str, str]:
    """Reasons by keys of the job file; raises Refusal for what is none."""
    from difflib import get_close_matches

    found = {}
    for name, reason in reasons.items():
        plain = name.replace("-", "_")
        if plain not in OWN_KEYS:
            close = get_close_matches(plain.lower(), sorted(OWN_KEYS), n=1)
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


def check_profile(profile: Profile) -> Iterator[Conflict]:
    """Every conflict within a profile."""
    for name in profile.env:
        refusal = refused_variable(name)
        if refusal is not None:
            yield Conflict(("env", name), ("env",), refusal)
    for index, word in enumerate(profile.srun):
        refusal = refused_word(word)
        if refusal is not None:
            yield Conflict(("srun", index), ("srun",), refusal)
    yield from _check_names(profile)


def _check_names(profile: Profile) -> Iterator[Conflict]:
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


def _conflict(key: KeyPath, what: str, known: str) -> Conflict:
    refusal = Refusal(
        what,
        why="node types and partitions find each other by their names",
        fix=f"known: {known}" if known else "give it a name of its own",
    )
    return Conflict(key, (str(key[0]),), refusal)


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
        return not _DECIDED_LETTERS.isdisjoint(_letters(word))
    name = word[2:].partition("=")[0]
    if catalog.find(name) is not None or catalog.is_srun_only(name):
        return name in _DECIDED
    # getopt takes any beginning of a name for the whole.
    return any(option.startswith(name) for option in _DECIDED)


def _takes_the_next_word(word: str) -> bool:
    options = catalog.options()
    if word.startswith("--"):
        option = options.get(word[2:])
        return word[2:] in _VALUED or (option is not None and option.argument == "required")
    letters = _letters(word)
    valued = {o.short for o in options.values() if o.argument == "required"} | set("rT")
    return len(letters) == len(word) - 1 and letters[-1] in valued


def _letters(word: str) -> str:
    """The options of `-lu` or `-pgpu`: as far as they have no argument, and the first that may."""
    letters = ""
    for letter in word[1:]:
        letters += letter
        if letter not in _FLAGS:
            break
    return letters
