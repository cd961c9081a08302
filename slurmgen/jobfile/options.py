"""`sbatch:` of a job file: options that have no key of their own."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from slurmgen.errors import Refusal, Refusals
from slurmgen.jobfile.readers import kind, text
from slurmgen.slurm.options import catalog
from slurmgen.slurm.options.values import check_option, decided_by
from slurmgen.slurm.quoting import check_directive


def read_options(value: Any, keys: Container[str]) -> dict[str, str | None]:
    """Every option with its value, None for a flag; raises Refusals with all that is wrong.

    keys: those of the job file that are called after an option, which don't go here.
    The option of a site's plugin is `{value: …, plugin: true}` and is taken as it is.
    """
    if not isinstance(value, dict):
        raise Refusal(
            f"{kind(value) if not isinstance(value, str) else 'a text'} in place of options",
            why="it is a mapping of sbatch's options to their values",
            fix="write, say, sbatch: {hint: nomultithread}",
        )
    read: dict[str, str | None] = {}
    wrong = []
    for name, given in value.items():
        option = str(name).replace("_", "-")
        try:
            if option in read:
                raise Refusal(
                    f"{option} is given twice",
                    why="Slurm takes the last one",
                    fix="keep one",
                )
            read[option] = _option(str(name), given, keys)
        except Refusal as refusal:
            wrong.append(refusal.about(("sbatch", str(name))))
    if wrong:
        raise Refusals(wrong)
    return read


def _option(name: str, value: Any, keys: Container[str]) -> str | None:
    if isinstance(value, dict):
        return _plugin_option(name, value)
    key = decided_by(name, keys)
    if key is not None:
        raise Refusal(
            f"{name} does not belong under sbatch",
            why="the number of ranks and what they get follow from the job file's own keys",
            fix=f"write {key} at the top of the job file",
        )
    return check_option(name, None if value is None else text(value), None)


def _plugin_option(name: str, value: dict[str, Any]) -> str | None:
    if text(value.get("plugin", "")).lower() != "true" or set(value) - {"plugin", "value"}:
        raise Refusal(
            f"{name} is a mapping",
            why="that is for the option of a site's plugin",
            fix=f"write {name}: {{value: …, plugin: true}}",
        )
    option = name.replace("_", "-")
    plain = option.replace("-", "")
    if not (plain.isascii() and plain.isalnum()) or len(plain) < 2:
        raise Refusal(
            f"{name} is no name of an option",
            why="it is letters, digits and dashes, at least two",
            fix="check it in the site's documentation",
        )
    known = next((o for o in catalog.options() if o.startswith(option)), None)
    if known is not None:
        raise Refusal(
            f"{name} is not a plugin's option",
            why=f"sbatch takes it for {known}: it understands beginnings of its options",
            fix=f"write {known}: VALUE, if that is meant",
        )
    given = value.get("value")
    if given is None or text(given) == "true":
        return None
    check_directive(text(given))
    return text(given)
