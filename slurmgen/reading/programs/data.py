"""How a program reads its data and writes its checkpoints."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.programs.torch_names import DATA_LOADER, DISTRIBUTED_SAMPLER
from slurmgen.reading.programs.values import walk

if TYPE_CHECKING:
    from slurmgen.diagnostics import Place
    from slurmgen.reading.programs.facts import Call
    from slurmgen.reading.programs.program import Program
    from slurmgen.reading.programs.scopes import Loop
    from slurmgen.reading.programs.values import Value


class Loader(NamedTuple):
    """``torch.utils.data.DataLoader(...)``; None for what isn't passed."""

    call: Call
    dataset: Value | None
    shuffle: Value | None
    sampler: Value | None
    batch_sampler: Value | None
    workers: Value | None


def loaders(program: Program) -> list[Loader]:
    """The data loaders of torch."""
    return [
        Loader(
            call,
            call.argument(0, "dataset"),
            call.argument(2, "shuffle"),
            call.argument(3, "sampler"),
            call.argument(4, "batch_sampler"),
            call.argument(5, "num_workers"),
        )
        for call in program.called(DATA_LOADER)
    ]


def samplers(program: Program) -> list[Call]:
    """The calls of DistributedSampler: (dataset, num_replicas, rank, shuffle, seed, drop_last)."""
    return list(program.called(DISTRIBUTED_SAMPLER))


def epoch_loop(program: Program) -> Place | None:
    """The loop whose every turn goes through the data: around a loop over a DataLoader."""
    units = {unit.name: unit for unit in program.units}
    named = None
    for unit in program.units:
        for loop, site in unit.table.loops:
            if loop.iterable is None:
                continue
            if named is None and loop.kind == "for" and _names_epochs(loop):
                named = unit.place(loop.node)
            value = program.value(loop.iterable, site)
            if not any(part.kind == "call" and part.name == DATA_LOADER for part in walk(value)):
                continue
            for outer_site in (site, *program.sites_of_callers(site.scope)):
                outer = [item for item in outer_site.loops if item.kind != "comprehension"]
                if outer:
                    return units[outer_site.scope.unit].place(outer[-1].node)
    return named


def _names_epochs(loop: Loop) -> bool:
    nodes = [loop.target, *ast.walk(loop.iterable)] if loop.iterable is not None else []
    names = [getattr(node, "id", getattr(node, "attr", "")) for node in nodes if node is not None]
    return any("epoch" in name.lower() for name in names)


_SAVES = ("torch.save", "safetensors.torch.save_file", "torch.jit.save")


def saves(program: Program) -> list[Call]:
    """Where a file is written that all ranks would write alike."""
    return list(program.called(*_SAVES))
