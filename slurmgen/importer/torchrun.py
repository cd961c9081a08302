"""torchrun's command line as `launcher: torchrun`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.importer.started import COUNTS, GIVEN, TASK_VARIABLES, Started, names_in, substitutes

if TYPE_CHECKING:
    from slurmgen.importer.started import Shape
    from slurmgen.shell.starters import Started as Launched


def torchrun(text: str, torch: Launched, shape: Shape, end: int) -> Started | None:
    """What `launcher: torchrun` would start in its place, None where it would be otherwise.

    text: the script's. end: of the command in it.
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
        if set(names_in(given)) & (TASK_VARIABLES - GIVEN):
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
        elif name not in ("standalone", "rdzv_id", "rdzv_endpoint", "master_addr", "master_port",
                          "module", "m", "no_python"):  # fmt: skip
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
    if "no_python" not in options:
        # As torchrun starts it.
        command = f"python -u {'-m ' if {'m', 'module'} & set(options) else ''}{command}"
    return Started("torchrun", command, rdzv, nproc, names, rest[0].text)
