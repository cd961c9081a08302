"""Dependencies: `type:id[:id…]`, joined by `,` (all) or `?` (any) (sbatch(1))."""

from __future__ import annotations

from slurmgen.errors import Refusal
from slurmgen.slurm.grammars.blanks import without_blanks

_TYPES = ("after", "afterany", "afterok", "afternotok", "aftercorr", "afterburstbuffer")
_HELP = "write, say, afterok:1234 or afterany:1234:1235"


def canonical_dependency(text: str) -> str:
    """The dependency without blanks, a bare id as `afterany:ID`; raises Refusal."""
    squeezed = without_blanks(text, ",?:+").lower()
    if "," in squeezed and "?" in squeezed:
        raise Refusal(
            f'"{text}" mixes "," and "?"',
            why='Slurm up to 24.11 turns every "," into "?", and 26.05 refuses it',
            fix='use "," (all of them) or "?" (any of them)',
        )
    separator = "?" if "?" in squeezed else ","
    return separator.join(_one(item, text) for item in squeezed.split(separator))


def _one(item: str, text: str) -> str:
    if item == "singleton":
        return item
    kind, colon, rest = item.partition(":")
    if not colon and _is_job(kind):
        return f"afterany:{kind}"
    if kind not in _TYPES:
        close = [known for known in (*_TYPES, "singleton") if known.startswith(kind[:7])]
        known = f"{', '.join(_TYPES)} or singleton"
        why = "Slurm no longer supports it" if kind == "expand" else f"a dependency is {known}"
        fix = f"write {close[0]}" if close and not _is_job(kind) else _HELP
        raise Refusal(f'"{item}" is not a dependency', why=why, fix=fix)
    ids = rest.split(":")
    for job in ids:
        number, plus, minutes = job.partition("+")
        if not _is_job(number) or (
            plus and (kind != "after" or not (minutes.isascii() and minutes.isdigit()))
        ):
            raise Refusal(
                f'"{item}" in "{text}" names no job',
                why="behind the type stand job ids: 1234, 1234_5 for a task of an array, and "
                "1234+MINUTES for after",
                fix=_HELP,
            )
    return item


def _is_job(text: str) -> bool:
    job, underscore, task = text.partition("_")
    if underscore and not (task == "*" or (task.isascii() and task.isdigit())):
        return False
    return job.isascii() and job.isdigit() and job.strip("0") != ""
