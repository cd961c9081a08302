"""What a job file says, against what its ranks saw. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen import launchers
from slurmgen.sandbox.rehearsal.fault import Fault, counted, listing
from slurmgen.script.placement import seats
from slurmgen.slurm.quoting import split_expansions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from slurmgen.sandbox.rehearsal.groups import Group
    from slurmgen.sandbox.rehearsal.records import Note
    from slurmgen.script.plan import JobPlan


def check(plan: JobPlan, group: Group, notes: Sequence[Note]) -> Iterator[Fault]:
    """group: the ranks of one run."""
    yield from _seats(plan, group)
    yield from _words(plan, group)
    yield from _environment(plan, group)
    yield from _setup(plan, notes)


def _seats(plan: JobPlan, group: Group) -> Iterator[Fault]:
    count = len(group.ranks)
    if count != plan.world_size:
        yield Fault(
            "world-size-wrong",
            f"{counted(count, 'process')} were started, but the plan has "
            f"{counted(plan.world_size, 'rank')}",
            "the command may start its program several times, or not in every task",
            "start the program once in the command",
            key=_program_key(plan),
        )
        return
    if plan.rdzv not in launchers.find(plan.launcher).seated_under:
        return
    nodes = group.nodes
    for seat in seats(plan):
        found = next((rank for rank in group.ranks if rank.rank == seat.rank), None)
        if found is None:
            # Said of the world already.
            return
        node = nodes[seat.node] if seat.node < len(nodes) else "a node that has no rank"
        if (found.node, found.local) != (node, seat.local_rank):
            yield Fault(
                "seat-wrong",
                f"rank {seat.rank} is local rank {found.local} on {found.node}; the plan has it "
                f"as local rank {seat.local_rank} on {node}",
                "Slurm placed the tasks otherwise than they were counted on",
                "look at the options that place tasks: distribution, ntasks, sbatch",
                key=("nodes",),
            )
            return


def _program_key(plan: JobPlan) -> tuple[str]:
    return ("ddp",) if plan.entrypoint else ("command",)


def _words(plan: JobPlan, group: Group) -> Iterator[Fault]:
    if not plan.words or plan.container is not None:
        return
    for rank in group.ranks:
        argv = rank.program.argv
        # torchrun adds -u in front of a program that it runs by itself; ours it does not.
        if argv[1:] != plan.words[1:] or argv[0].rsplit("/", 1)[-1] != _name(plan.words[0]):
            yield Fault(
                "argv-wrong",
                f"rank {rank.rank} was called as {_shown(argv)}",
                f"the job file says {_shown(plan.words)}",
                "report it, unless the project has a template of its own",
                key=_program_key(plan),
            )
            return


def _name(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def _shown(words: Sequence[str]) -> str:
    return repr(" ".join(words))


def _environment(plan: JobPlan, group: Group) -> Iterator[Fault]:
    for name, value in plan.env:
        wrong = [rank for rank in group.ranks if not _holds(name, value, rank.program.env)]
        if wrong:
            rank = wrong[0]
            yield Fault(
                "env-wrong",
                f"{name} is {rank.program.env.get(name)!r} on rank {rank.rank}",
                f"the job file says {value!r}; what is set later in the job replaces it",
                "look at setup: and at the command, which may set it too",
                key=("env", name),
            )


def _holds(name: str, value: str, env: Mapping[str, str]) -> bool:
    found = env.get(name)
    if found is None:
        return False
    pattern = ""
    for literal, variable in split_expansions(value):
        pattern += re.escape(literal)
        if variable == name:
            # What it was before.
            pattern += ".*"
        elif variable:
            pattern += re.escape(env.get(variable, ""))
    return re.fullmatch(pattern, found, re.DOTALL) is not None


def _setup(plan: JobPlan, notes: Sequence[Note]) -> Iterator[Fault]:
    """Modules are recorded where this machine has none of its own."""
    done = [note for note in notes if note.kind == "module" and note.step == "batch"]
    if not done:
        return
    modules = plan.setup.modules
    wanted = ["purge"] if modules is not None and modules.purge else []
    wanted += [f"use {folder}" for folder in plan.module_use]
    wanted += [f"load {module}" for module in plan.modules]
    seen = [str(note.content["text"]) for note in done]
    if len(seen) < len(wanted) or any(
        want != got and "$" not in want for want, got in zip(wanted, seen, strict=False)
    ):
        yield Fault(
            "setup-wrong",
            f"the set-up did: {listing([f'module {text}' for text in seen])}",
            f"the job file says: {listing([f'module {text}' for text in wanted])}",
            "look at setup.modules, and at what the cluster's profile adds",
            key=("setup", "modules"),
        )
