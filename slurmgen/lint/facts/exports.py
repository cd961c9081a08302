"""What --export lets through, of sbatch and of srun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.launching import is_helper
from slurmgen.reading.shell.options import parse_options
from slurmgen.reading.shell.srun import SRUN

if TYPE_CHECKING:
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Word

# The variables of Slurm itself are set whatever the list says.
_OF_SLURM = ("SLURM_", "SRUN_", "SBATCH_")


def names(text: str) -> list[str]:
    """The names in a list of `NAME` and `NAME=value`; ALL, NONE and NIL in capitals."""
    found = [item.partition("=")[0].strip("\"' ") for item in text.split(",")]
    special = ("ALL", "NONE", "NIL")
    return [name.upper() if name.upper() in special else name for name in found if name]


def lacks_all(word: Word) -> bool:
    """Whether a list is known to be without ALL; an empty one is no list."""
    if not word.pieces or word.pieces[0].kind != "text":
        return False
    given = names(word.text)
    return bool(given) and "ALL" not in given


def harm(job: Job, launch: Launch, text: str) -> str | None:
    """How bad it is for a step that the environment is cut down to a list.

    ERROR: its program isn't found without PATH. WARNING: it is called by its full name, but
    misses what the script has set for it. None: the list looks meant as it is.
    """
    given = names(text)
    if "PATH" not in given and not _program(launch).startswith(("/", "./", "$", "~")):
        return ERROR
    if is_helper(launch):
        return None
    lost = {
        name
        for name in launch.command.environment
        if not name.startswith(_OF_SLURM) and name not in given
    }
    loaded = "PATH" not in given and any(
        command.start < launch.command.start
        for command in job.commands("module", "ml", "source", ".", "conda", "mamba", "spack")
    )
    # A script that starts Python looks for it along PATH.
    searched = "PATH" not in given and launch.script is not None
    return WARNING if loaded or (launch.is_training and (lost or searched)) else None


def _program(launch: Launch) -> str:
    """The word that srun executes, which PATH has to find: the first behind its options."""
    for command in (launch.inner, launch.command):
        for at, word in enumerate(command.words):
            if word.name == "srun":
                rest = parse_options(command.words[at + 1 :], SRUN).rest
                return rest[0].text if rest else ""
    return launch.words[0].text if launch.words else ""
