"""Which of the recorded programs belong together, and what place each thinks it has. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurmgen.sandbox.rehearsal.records import Program


class Rank(NamedTuple):
    """One process of a group.

    told: whether RANK says which it is; else its number is Slurm's. rank, world, local: None
    where they are not known or no numbers. visible: the GPUs that it sees, None where nobody
    says. gpus: those of them that a program with a GPU for each rank uses, None for a local
    rank beyond them.
    """

    program: Program
    told: bool
    rank: int | None
    world: int | None
    local: int | None
    visible: tuple[str, ...] | None
    gpus: tuple[str, ...] | None

    @property
    def node(self) -> str:
        return self.program.node


class Group(NamedTuple):
    """What one step, or one launcher in the batch shell, has started in one run of a job."""

    job: str
    restart: int
    step: str
    ranks: tuple[Rank, ...]

    @property
    def in_step(self) -> bool:
        return self.step != "batch"

    @property
    def nodes(self) -> list[str]:
        return sorted({rank.node for rank in self.ranks}, key=_natural)

    @property
    def is_training(self) -> bool:
        """Whether it is a program of the user's own, as far as one can see."""
        return any(
            rank.told or rank.program.what != "other" or _is_own_script(rank.program.argv)
            for rank in self.ranks
        )


def _is_own_script(argv: tuple[str, ...]) -> bool:
    """Whether it is a shell script that isn't on this machine, with or without a program."""
    starts_python = any(word.rsplit("/", 1)[-1].startswith("python") for word in argv[1:3])
    return starts_python or argv[0].endswith(("sh", ".bash"))


def groups(programs: Iterable[Program]) -> list[Group]:
    """In the order in which they started."""
    found: dict[tuple[str, int, str, str], list[Program]] = {}
    for number, program in enumerate(programs):
        if program.what == "tool":
            continue
        within = "" if program.step != "batch" else program.launch or f"#{number}"
        key = (program.job, program.restart, program.step, within)
        found.setdefault(key, []).append(program)
    return [
        Group(job, restart, step, tuple(_rank(program, members) for program in members))
        for (job, restart, step, _), members in found.items()
    ]


def trainings(found: Iterable[Group]) -> list[Group]:
    """The groups that are the training; all, where none is of a known kind."""
    listed = list(found)
    return [group for group in listed if group.is_training] or listed


def _rank(program: Program, members: list[Program]) -> Rank:
    env = program.env
    told = "RANK" in env
    in_step = program.step != "batch"
    if told:
        rank, world = number(env.get("RANK")), number(env.get("WORLD_SIZE"))
        local = number(env.get("LOCAL_RANK", env.get("SLURM_LOCALID") if in_step else None))
    elif in_step:
        rank, world = number(env.get("SLURM_PROCID")), number(env.get("SLURM_STEP_NUM_TASKS"))
        local = number(env.get("SLURM_LOCALID"))
    else:
        rank, world, local = 0, 1, 0
    visible = _visible(env.get("CUDA_VISIBLE_DEVICES"))
    alone = sum(other.node == program.node for other in members) == 1
    gpus: tuple[str, ...] | None = visible or ()
    if visible and len(visible) > 1 and local is not None and (told or not alone):
        gpus = (visible[local],) if local < len(visible) else None
    return Rank(program, told, rank, world, local, visible, gpus)


def number(text: str | None) -> int | None:
    """The whole number that `text` is."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def _visible(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(gpu for gpu in text.split(",") if gpu and gpu != "NoDevFiles")


def _natural(node: str) -> tuple[int, str]:
    digits = "".join(character for character in node if character.isdigit())
    return int(digits or 0), node
