"""Options that exclude each other (sbatch(1), and what 20.11 to 26.05 really answer)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Two options that cannot stand together, and what Slurm does with them.
_EXCLUSIVE = (
    ("exclusive", "oversubscribe", "up to 22.05 the last one wins, from 23.02 it is fatal"),
    ("core-spec", "thread-spec", "Slurm: they are mutually exclusive (from 22.05)"),
    ("hint", "threads-per-core", "the hint is ignored beside it"),
    ("hint", "ntasks-per-core", "the hint is ignored beside it"),
    ("gpu-bind", "tres-bind", "both are the binding of the GPUs"),
    ("spread-segments", "consolidate-segments", "they say opposite things"),
)
_NEEDS = (
    ("gpu-bind", "gpus_per_node", "there is no GPU to bind"),
    ("gpu-freq", "gpus_per_node", "there is no GPU to set"),
    ("gres-flags", "gpus_per_node", "there is no resource to bind"),
    ("resv-ports", "stepmgr", "Slurm reserves ports through the job's own step manager only"),
    ("batch", "constraint", "it must name features of the constraint"),
    ("kill-on-invalid-dep", "dependency", "there is no dependency that could be invalid"),
)


def check_conflicts(given: Mapping[str, object]) -> Iterator[Refusal]:
    """Conflicts between options under `sbatch:` and with the job file's own keys."""
    for first, second, why in _EXCLUSIVE:
        if first in given and second in given:
            what = f"{first} and {second} are both given"
            involved = (second, first)
            yield Refusal(what, why=why, fix="keep one", key=second, involved=involved)
    for option, key, why in _NEEDS:
        if option in given and key not in given:
            fix = f"add {key}, or remove {option}"
            what = f"{option} without {key}"
            yield Refusal(what, why=why, fix=fix, key=option, involved=(option, key))
