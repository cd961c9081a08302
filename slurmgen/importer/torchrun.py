"""torchrun's command line as `launcher: torchrun`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.importer.started_program import (
    COUNTS,
    GIVEN,
    TASK_VARIABLES,
    Started,
    names_in,
    substitutes,
)
from slurmgen.launchers import standing_for
from slurmgen.reading.shell.starters import TORCHRUN

if TYPE_CHECKING:
    from slurmgen.importer.started_program import Shape
    from slurmgen.reading.shell.starters import Started as Launched


_LOCAL = re.compile(r"localhost|127\.0\.0\.")
# A task of its own on each node: the number of either is the node's.
_NODE = ("$SLURM_NODEID", "${SLURM_NODEID}", "$SLURM_PROCID", "${SLURM_PROCID}")
_WITH_PORT = ("rdzv_endpoint", "master_port")
_OF_RENDEZVOUS = ("standalone", "rdzv_id", "rdzv_endpoint", "master_addr", "master_port")


def torchrun(
    text: str, torch: Launched, shape: Shape, end: int, *, in_task: bool = False
) -> Started | None:
    """What `launcher: torchrun` would start in its place, None where it would be otherwise.

    text: the script's. end: of the command in it. in_task: whether a task's own shell reads it.
    """
    launcher, rest = torch.launcher, torch.rest
    options = launcher.options
    if launcher.opaque or not rest:
        return None
    expected = {"nnodes": ("nodes", shape.nodes)}
    nproc: int | None = None
    rdzv = "static"
    for name, word in options.items():
        given = word.text
        if name == "node_rank":
            if not (given in _NODE if in_task else given == "0" and shape.nodes == 1):
                return None
            continue
        if set(names_in(given)) & (TASK_VARIABLES - GIVEN):
            return None
        # Nor would a port that another job of the node may have be the same fault.
        port = re.search(r"(?:^|:)(\d+)$", given) if name in _WITH_PORT else None
        if port is not None and not 0 <= int(port[1][:9]) <= (32_767 if shape.nodes > 1 else 0):
            return None
        # A first node of another name than the job's is a fault that stays.
        if shape.nodes > 1 and _LOCAL.search(given) and name in _OF_RENDEZVOUS:
            return None
        if name in expected:
            known, number = expected[name]
            if given != str(number) and given not in COUNTS[known]:
                return None
        elif name == "nproc_per_node":
            if given in COUNTS["gpus"] and shape.gpus:
                continue
            if not given.isdecimal() or len(given) > 4 or (shape.gpus and int(given) != shape.gpus):
                return None
            nproc = None if shape.gpus else int(given)
        elif name == "rdzv_backend":
            if given not in ("c10d", "static"):
                return None
            rdzv = given if shape.nodes > 1 else "static"
        elif (name, given) != ("max_restarts", "0") and name not in (
            *_OF_RENDEZVOUS, "module", "m", "no_python"
        ):  # fmt: skip
            return None
    if "nproc_per_node" not in options and (shape.gpus != 1 or nproc is not None):
        return None
    if "nnodes" not in options and shape.nodes > 1:
        return None
    command = text[rest[0].start : end]
    names = tuple(names_in(command))
    # Each rank evaluates it, which torchrun was given evaluated.
    if (set(names) & TASK_VARIABLES) - GIVEN or substitutes(command):
        return None
    before: tuple[str, ...] = ()
    if "no_python" not in options:
        # As torchrun starts it.
        before = ("python", "-u", *(["-m"] if {"m", "module"} & set(options) else []))
    return Started(
        standing_for(TORCHRUN),
        " ".join([*before, command]),
        rdzv,
        nproc,
        names,
        rest[0].text,
        before=before,
        start=rest[0].start,
    )
