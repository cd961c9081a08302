"""What of the submitting shell's environment a job gets (sbatch(1), --export)."""

from __future__ import annotations

from slurmgen.errors import Refusal
from slurmgen.slurm.quoting import check_directive, is_variable_name


def canonical_export(text: str) -> str:
    """ALL, NONE, NIL or a list of NAME and NAME=VALUE; raises Refusal.

    A value with a comma is refused: Slurm keeps commas only inside quotes, and then the
    quotes too (seen on 20.11 to 26.05). `env:` takes any value.
    """
    check_directive(text)
    if text.upper() in ("ALL", "NONE", "NIL"):
        return text.upper()
    for item in text.split(","):
        name, equals, value = item.partition("=")
        if name.upper() == "ALL" and not equals:
            continue
        if not equals and name.upper() in ("NONE", "NIL"):
            raise Refusal(
                f'"{item}" in "{text}" is one of several words',
                why=f"Slurm would look for a variable called {name}",
                fix=f"write {name.upper()} alone, or remove it",
            )
        if not is_variable_name(name) or any(quote in value for quote in "\"'"):
            raise Refusal(
                f'"{item}" in "{text}" is not NAME or NAME=VALUE',
                why="Slurm splits at every comma, and keeps quotes as part of the value",
                fix="put variables with values under env:",
            )
    return text


def given_values(text: str) -> list[str]:
    """The names that a canonical list gives a value to: `ALL,A=1,B` has A."""
    items = (item.partition("=") for item in text.split(","))
    return [name for name, equals, _ in items if equals]
