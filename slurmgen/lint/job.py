"""What a rule is given: a batch script, what it starts, and what is known of the cluster."""

from __future__ import annotations

from functools import cached_property, wraps
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar, cast

from slurmgen.cluster import generic
from slurmgen.diagnostics import Place
from slurmgen.lint.facts import extent, numbers
from slurmgen.lint.finding import Stop
from slurmgen.reading.budget import spend
from slurmgen.reading.script import BatchScript
from slurmgen.reading.shell.commands import WHY_STOPPED
from slurmgen.reading.shell.launch import MOST_LAUNCHES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from slurmgen.cluster.profile import Profile
    from slurmgen.lint.facts.extent import Extent
    from slurmgen.lint.origin import Origin
    from slurmgen.reading.programs import Program
    from slurmgen.reading.shell.commands import Command
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.variables import Assignment
    from slurmgen.reading.shell.words import Piece, Word
    from slurmgen.slurm.request import Request

Fact = TypeVar("Fact")

# Python programs that are read for one script.
_MOST_PROGRAMS = 20


def load(
    path: str,
    text: str,
    *,
    slurm: str | None = None,
    profile: Profile | None = None,
    folder: Path | None = None,
) -> Job:
    """The Job of a script's text.

    slurm: a release line such as 22.05, where it is known. folder: where the script lies,
    from which its programs are found; None for a script that lies nowhere (stdin).
    """
    return Job(path, text, slurm, profile, folder)


class Job:
    """A batch script as the rules see it; everything is read when it is first asked for."""

    def __init__(
        self,
        path: str,
        text: str,
        slurm: str | None = None,
        profile: Profile | None = None,
        folder: Path | None = None,
    ) -> None:
        self.path = path
        self.text = text
        self.slurm = slurm or (profile.slurm if profile is not None else None)
        # The generic profile knows nothing that a rule could use.
        self.profile = None if profile is None or profile.name == generic.NAME else profile
        self.folder = folder
        # Where the programs may be that the script names without a folder.
        self.roots: tuple[Path, ...] = () if folder is None else (folder,)
        self.origin: Origin | None = None
        self.script = BatchScript(text)
        self._programs: dict[str, Program | None] = {}
        self._unread: list[Stop] = []
        self._known: dict[Callable[[Job], object], object] = {}
        # The offset of what a rule has asked about last.
        self._at = 0

    @property
    def here(self) -> Place:
        """What was asked about last."""
        return self.place(self._at, self._at + 1)

    def stops(self) -> list[Stop]:
        """Where what reads the script and its programs stopped before the end."""
        found = list(self._unread)
        shell = self.script.shell
        if shell.stopped is not None:
            place = self.place(shell.stopped, shell.stopped + 1)
            why = f"{WHY_STOPPED}, or takes too long to be parsed"
            found.insert(0, Stop("the reader of shell code", place, why))
        if len(self.script.launches) >= MOST_LAUNCHES:
            start = self.script.launches[-1].command.start
            why = f"more than {MOST_LAUNCHES:,} programs are started"
            found.append(Stop("the reader of launches", self.place(start, start + 1), why))
        return found

    @property
    def request(self) -> Request:
        """What the job (the first component of a heterogeneous one) asks for."""
        return self.script.requests[0]

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Every program that the script starts, in order."""
        spend(len(self.script.launches))
        return self.script.launches

    @property
    def trainings(self) -> tuple[Launch, ...]:
        """The launches of the user's own Python programs in this job."""
        spend(len(self._trainings))
        return self._trainings

    @cached_property
    def _trainings(self) -> tuple[Launch, ...]:
        return tuple(
            launch
            for launch in self.launches
            if launch.is_training and launch.where in ("batch", "task")
        )

    @cached_property
    def is_submitter(self) -> bool:
        """Whether the script is no job, but submits some: it has no directive and calls sbatch."""
        return not self.script.directives and any(
            command.name == "sbatch" for command in self.script.shell.commands
        )

    @cached_property
    def steps(self) -> tuple[Launch, ...]:
        """The launches under srun, the user's own programs or not."""
        return tuple(launch for launch in self.launches if launch.step is not None)

    def commands(self, *names: str) -> list[Command]:
        """The batch script's commands of these names."""
        found = [numbered for name in names for numbered in self._by_name.get(name, ())]
        spend(len(found))
        return [command for _, command in (sorted(found, key=itemgetter(0)))]

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[int, Command]]]:
        found: dict[str, list[tuple[int, Command]]] = {}
        for numbered in enumerate(self.script.shell.commands):
            found.setdefault(numbered[1].name, []).append(numbered)
        return found

    def place(self, start: int, end: int) -> Place:
        """Characters of the script as a Place, on its first line."""
        self._at = start
        line, column = self.script.position(start)
        lines = self.script.lines
        here = lines[line - 1] if line <= len(lines) else ""
        return Place(line, column, max(1, min(end - start, len(here) - column + 1)))

    def place_of(self, what: Piece | Word | Command | Assignment) -> Place:
        """Where a piece, word, command or assignment stands in the script."""
        return self.place(what.start, what.end)

    def request_of(self, launch: Launch) -> Request:
        """The component of the job in which a launch runs."""
        group = launch.step.option("het-group") if launch.step is not None else None
        literal = group.literal if group is not None else None
        requests = self.script.requests
        if literal is not None and literal.isdecimal() and int(literal) < len(requests):
            return requests[int(literal)]
        return requests[0]

    def extent(self, launch: Launch) -> Extent:
        """How many processes the launch starts, and what they see."""
        self._at = launch.command.start
        request = self.request_of(launch)

        def number(word: Word, variables: Mapping[str, Assignment]) -> int | None:
            return numbers.number(word, variables, request)

        return extent.measure(launch, request, self.slurm, number)

    def number(
        self, word: Word | None, variables: Mapping[str, Assignment] | None = None
    ) -> int | None:
        """The whole number that a word comes to in the batch shell; None where unknown."""
        return None if word is None else numbers.number(word, variables or {}, self.request)

    def program(self, launch: Launch) -> Program | None:
        """The Python program that a launch runs, where its file is there and can be read."""
        path = self._find(launch)
        if path is None:
            return None
        key = str(path)
        if key not in self._programs:
            start, end = launch.command.start, launch.command.end
            if len(self._programs) >= _MOST_PROGRAMS:
                if len(self._programs) == _MOST_PROGRAMS:
                    why = f"the script starts more than {_MOST_PROGRAMS} programs"
                    place = self.place(start, end)
                    self._unread.append(Stop("the reader of programs", place, why))
                self._programs[key] = None
                return None
            from slurmgen.reading.programs import read

            program = read(path)
            if program.is_too_much:
                why = f"{path.name} is {program.error}"
                place = self.place(start, end)
                self._unread.append(Stop("the reader of programs", place, why))
            self._programs[key] = program if program.readable else None
        return self._programs[key]

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The Python programs of the trainings, each once."""
        found: dict[str, Program] = {}
        for launch in self.trainings:
            program = self.program(launch)
            if program is not None:
                found.setdefault(str(program.path), program)
        return tuple(found.values())

    def _find(self, launch: Launch) -> Path | None:
        if not self.roots:
            return None
        names = []
        if launch.python:
            names = [_without_variables(launch.python)]
        elif launch.module:
            stem = launch.module.replace(".", "/")
            names = [f"{stem}.py", f"{stem}/__main__.py"]
        folders = [*self.roots, *self._entered(launch)]
        for name in names:
            for folder in folders:
                path = folder / name
                try:
                    if name and path.is_file():
                        return path
                except (OSError, ValueError):
                    continue
        return None

    @cached_property
    def _moves(self) -> list[Command]:
        return self.commands("cd", "pushd")

    def _entered(self, launch: Launch) -> list[Path]:
        """The folders into which the batch script has gone before the launch."""
        found = []
        for command in self._moves:
            if command.start < launch.command.start and len(command.words) > 1:
                target = _without_variables(command.words[-1].guess)
                if target:
                    found += [root / target for root in self.roots]
        return found

    def once(self, fact: Callable[[Job], Fact]) -> Fact:
        """What a function says of this job, which it is asked for once."""
        if fact not in self._known:
            self._known[fact] = fact(self)
        return cast("Fact", self._known[fact])


def once(fact: Callable[[Job], Fact]) -> Callable[[Job], Fact]:
    """A decorator: what the function says of a job is kept with that job."""

    @wraps(fact)
    def known(job: Job) -> Fact:
        return job.once(fact)

    return known


def _without_variables(path: str) -> str:
    """`$SLURM_SUBMIT_DIR/src/train.py` as src/train.py: the folder is taken to be the script's."""
    if path.startswith(("$", "`")):
        _, slash, rest = path.partition("/")
        return "" if "$" in rest or not slash else rest
    return "" if "$" in path or "`" in path else path
