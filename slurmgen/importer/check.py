"""A job file that was made from a script, read back, rendered and held against the script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.cluster import generic
from slurmgen.errors import InvalidInput, Refusal, Refusals
from slurmgen.importer.keys import canonical
from slurmgen.jobfile.load import load_job
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from slurmgen.slurm.options.catalog import ALIASES

if TYPE_CHECKING:
    from slurmgen.reading.script import BatchScript
    from slurmgen.slurm.directives import DirectiveBlock

SOURCE = "job.yaml"


class RefusedError(Exception):
    """A job file that no script can be made of; the message says why."""


def rendered(text: str) -> str | None:
    """The script of a job file's text; None where it has none."""
    try:
        return script_of(text)
    except RefusedError:
        return None


def script_of(text: str) -> str:
    """The script of a job file's text; raises RefusedError where it has none."""
    try:
        spec = load_job(text, SOURCE).spec
        return render(resolve(spec, generic.PROFILE, source=SOURCE))
    except InvalidInput as error:
        raise RefusedError(error.diagnostics[0].message) from None
    except Refusals as error:
        raise RefusedError(error.problems[0].what) from None
    except Refusal as error:
        raise RefusedError(error.what) from None


def asks_the_same(before: BatchScript, after: BatchScript) -> bool:
    """Whether sbatch reads the same from both scripts, option by option."""
    first, second = before.block, after.block
    problems = [p.kind for p in first.problems if p.kind not in _BELOW]
    return (
        effective(first) == effective(second)
        and first.components == second.components
        and problems == [p.kind for p in second.problems if p.kind not in _BELOW]
    )


# Seen by lint only; for sbatch it is a comment or a command.
_BELOW = ("after-command", "not-recognised")


def effective(block: DirectiveBlock) -> dict[tuple[int, str], object]:
    """Each option of each component, and the value that counts."""
    found: dict[tuple[int, str], object] = {}
    mail: dict[int, set[str]] = {}
    for directive in block.directives:
        option = ALIASES.get(directive.option, directive.option)
        value = canonical(option, directive.value)
        if option == "mail-type" and isinstance(value, list):
            mail.setdefault(directive.component, set()).update(value)
            value = sorted(mail[directive.component])
        found.pop((directive.component, _OPPOSITE.get(option, option)), None)
        found[directive.component, option] = value
    return found


_OPPOSITE = {
    "requeue": "no-requeue",
    "no-requeue": "requeue",
    "exclusive": "oversubscribe",
    "oversubscribe": "exclusive",
}
