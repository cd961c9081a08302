"""One directive -> the keys of a job file that say the same, where there are such keys.

A value goes into a key only where the key's own grammar takes it and Slurm takes it too:
`--time=90m` is a time in a job file and an error for sbatch, and an import mends nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.jobfile.keys import KEYS, OPTIONS
from slurmgen.jobfile.without_pydantic import quick_job
from slurmgen.slurm.options import catalog

if TYPE_CHECKING:
    from slurmgen.slurm.directives import Directive

# A script must be there for the rest to be read.
_ANY = {"script": "true\n"}


class Key(NamedTuple):
    """Where a value goes (`("sbatch", "hint")`), and the value in the job file's spelling."""

    path: tuple[str, ...]
    value: str


def keys_of(directive: Directive) -> list[Key] | None:
    """The keys that say what the directive says; None where no keys do."""
    option, value = directive.option, directive.value
    key = catalog.ALIASES.get(option, option).replace("-", "_")
    if value is not None and (value != value.strip() or not value):
        return None
    if option == "gres":
        return _gres(value)
    if option == "gpus-per-node":
        found = _own("gpus_per_node", value)
        # A type alone is one GPU, which Slurm is then told so.
        if found is None or found[0].value != value:
            return None
        return [*found, Key(("gpu_form",), "gpus-per-node")]
    if option in ("requeue", "no-requeue"):
        return (
            [Key(("requeue",), "true" if option == "requeue" else "false")] if not value else None
        )
    if option == "exclusive":
        return _own("exclusive", value or "true") if value not in ("true", "false") else None
    if key in OPTIONS:
        return _own(key, value)
    if catalog.find(option) is None:
        return _plugin(option, value)
    return _other(option, value)


def _own(key: str, value: str | None) -> list[Key] | None:
    if value is None or _is_ours_alone(key, value):
        return None
    spec = quick_job({**_ANY, key: value})
    found = None if spec is None else str(getattr(spec, key))
    if found is None or (found != value and not KEYS[key].kind.is_parsed):
        return None
    return [Key((key,), found)]


def _is_ours_alone(key: str, value: str) -> bool:
    """Whether only a job file takes the spelling (`90m`), and sbatch refuses it."""
    if key in ("time", "time_min"):
        return value[-1].isalpha() and value.lower() not in ("unlimited", "infinite")
    if key == "exclusive":
        return value.lower() in ("yes", "no")
    return False


def _gres(value: str | None) -> list[Key] | None:
    """`gpu:a100:4,nvme:1` as GPUs and the rest, as it will be written again."""
    first, _, rest = (value or "").partition(",")
    if not first.startswith("gpu:"):
        return _own("gres", value)
    gpus = _own("gpus_per_node", first.removeprefix("gpu:"))
    if gpus is None or f"gpu:{gpus[0].value}" != first:
        return None
    others = _own("gres", rest) if rest else []
    if others is None or (others and others[0].value != rest):
        return None
    return [*gpus, *others]


def _other(option: str, value: str | None) -> list[Key] | None:
    """An option under `sbatch:`."""
    if value == "true":
        return None
    given = "true" if value is None else value
    spec = quick_job({**_ANY, "sbatch": {option: given}})
    if spec is None or spec.sbatch.get(option) != value:
        return None
    return [Key(("sbatch", option), given)]


def _plugin(option: str, value: str | None) -> list[Key] | None:
    """An option that only a site's own plugin can know."""
    given = {"plugin": "true"} | ({} if value is None else {"value": value})
    spec = quick_job({**_ANY, "sbatch": {option: given}})
    if spec is None or value == "true" or option not in spec.sbatch:
        return None
    found = [] if value is None else [Key(("sbatch", option, "value"), value)]
    return [*found, Key(("sbatch", option, "plugin"), "true")]


def canonical(option: str, value: str | None) -> object:
    """What Slurm makes of a value, for comparing two spellings of it."""
    key = catalog.ALIASES.get(option, option).replace("-", "_")
    if value is not None and key in OPTIONS and not _is_ours_alone(key, value or "-"):
        spec = quick_job({**_ANY, key: value})
        if spec is not None:
            found = getattr(spec, key)
            return sorted(found.split(",")) if key == "mail_type" else found
    return value
