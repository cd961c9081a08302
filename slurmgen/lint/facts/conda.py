"""Where a script activates conda environments, and what makes conda usable before."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.reading.shell.launch import SHELLS
from slurmgen.reading.shell.words import BATCH, TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch

PROGRAMS = ("conda", "mamba", "micromamba")
CONDA = re.compile(r"conda|mamba|forge", re.IGNORECASE)
_MODULES = re.compile(r"conda|mamba|forge|python|torch|jupyter|\bai\b|tensorflow", re.IGNORECASE)
# Sourced files that have nothing to do with conda.
_OTHERS = re.compile(r"modules?(\.sh)?$|lmod|spack|setup-env|/modules?/|intel|cuda|gcc|mpi")


def activations(job: Job) -> Iterator[Launch]:
    """`conda activate`, `mamba activate`, `micromamba activate`."""
    for launch in job.launches:
        if launch.program in PROGRAMS and launch.where in (BATCH, TASK):
            if len(launch.words) > 1 and launch.words[1].text == "activate":
                yield launch


def is_source(launch: Launch) -> bool:
    """Whether a file is sourced."""
    return launch.program in ("source", ".") and len(launch.words) > 1


def sources_conda(launch: Launch) -> bool:
    """`source activate NAME`, or a path of conda's own `activate`; not that of a venv."""
    if not is_source(launch) or launch.words[1].text.rsplit("/", 1)[-1] != "activate":
        return False
    path = launch.words[1].text
    return "/" not in path or len(launch.words) > 2 or bool(CONDA.search(path))


def loads_conda(launch: Launch) -> bool:
    """Whether a module is loaded that may bring conda."""
    if launch.program not in ("module", "ml", "spack"):
        return False
    words = [word.text for word in launch.words[1:]]
    if words[:1] in (["load"], ["add"], ["swap"], ["switch"], ["restore"], ["use"]):
        return words[0] in ("restore", "use") or any(_MODULES.search(word) for word in words[1:])
    return launch.program == "ml" and any(_MODULES.search(word) for word in words)


def same_shell(job: Job, launch: Launch) -> list[Launch]:
    """What the shell that runs `launch` has run before it."""
    nested = launch.inner is not launch.command
    return [
        other
        for other in job.launches
        if other.inner.start < launch.inner.start
        and other.where == launch.where
        and (other.command is launch.command if nested else other.inner is other.command)
        and not other.inner.context.substitution
        and not other.inner.context.subshell
    ]


def is_initialised(job: Job, launch: Launch) -> bool:
    """Whether anything may have defined the `conda` function in the shell of `launch`."""
    if _is_login(job, launch) or "BASH_ENV" in launch.inner.variables:
        return True
    before = same_shell(job, launch)
    if any(_defines(other) for other in before):
        return True
    # Who calls `conda init` has found that the module alone doesn't do it.
    calls_init = any(
        other.program in PROGRAMS and [word.text for word in other.words[1:2]] == ["init"]
        for other in before
    )
    return not calls_init and any(loads_conda(other) for other in before)


def _defines(launch: Launch) -> bool:
    if launch.program == "eval":
        return any(CONDA.search(word.text) or "$" in word.text for word in launch.words[1:])
    if not is_source(launch):
        return False
    path = launch.words[1].text
    is_venv = path.endswith("bin/activate") and not sources_conda(launch)
    return not is_venv and not _OTHERS.search(path)


def _is_login(job: Job, launch: Launch) -> bool:
    """Whether the shell reads the files in which `conda init` has left its lines."""
    if launch.inner is launch.command:
        options = list(job.script.shebang_options)
    else:
        words = [word.text for word in launch.command.words]
        at = next((n for n, w in enumerate(words) if w.rsplit("/", 1)[-1] in SHELLS), len(words))
        options = []
        for word in words[at + 1 :]:
            if not word.startswith("-"):
                break
            options.append(word)
    return any(
        option in ("--login", "--rcfile", "--init-file")
        or (option.startswith("-") and not option.startswith("--") and set(option) & set("li"))
        for option in options
    )
