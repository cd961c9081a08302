"""The Python programs of a job as its rules see them: each beside the launch that runs it."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import Place
from slurmgen.lint.facts.presence import environment
from slurmgen.lint.job import once
from slurmgen.reading.programs.distributed import spawns
from slurmgen.reading.programs.facts import whole
from slurmgen.reading.programs.roles import counts_gpus
from slurmgen.reading.programs.values import alternatives, constant, either, truth
from slurmgen.reading.shell.words import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.extent import Extent
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call, Program, Value
    from slurmgen.reading.programs.values import Present
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Word
    from slurmgen.slurm.directives import Directive


# A script that starts more programs starts the same ones again.
_MOST_RUNS = 200


class Run(NamedTuple):
    """A program and the launch that runs it; present: whether a variable is set there."""

    job: Job
    launch: Launch
    program: Program
    extent: Extent
    present: Present

    @property
    def place(self) -> Place:
        """Where the script starts it."""
        command = self.launch.command
        return self.job.place(command.start, command.end)

    @property
    def spawned(self) -> int | None:
        """Processes that the program itself starts in each of its own: 1 without mp.spawn."""
        found = [call for call in spawns(self.program) if self.reaches(call)]
        if not found:
            return 1
        for call in found:
            count = call.argument(2, "nprocs")
            value = None if count is None else self.settled(count)
            if value is not None and counts_gpus(value):
                return self.extent.gpus_per_task
            return whole(value) if value is not None else None
        return None

    @property
    def local_processes(self) -> int | None:
        """Processes of the training on the fullest node, those of mp.spawn included."""
        count, spawned = self.extent.processes_per_node, self.spawned
        return None if count is None or spawned is None else count * spawned

    @property
    def processes(self) -> int | None:
        """Processes of the training in all, those of mp.spawn included."""
        count, spawned = self.extent.processes, self.spawned
        return None if count is None or spawned is None else count * spawned

    def reaches(self, call: Call) -> bool:
        """Whether a call may run here."""
        return self.program.is_reached(call, self.present) and not any(
            self._holds(condition.test) is (not condition.holds) for condition in call.conditions
        )

    def surely_reaches(self, call: Call) -> bool:
        """Whether a call runs here, as far as its tests tell."""
        return self.reaches(call) and all(
            self._holds(condition.test) is condition.holds for condition in call.conditions
        )

    def _holds(self, test: Value) -> bool | None:
        return truth(self.settled(test), self.present)

    def settled(self, value: Value) -> Value:
        """A value with options as the command line gives them, and without the closed paths."""
        found = [self._given(item) for item in alternatives(value, self.present)]
        return either(found) if found else value

    def _given(self, value: Value) -> Value:
        if value.kind != "option":
            if not value.parts:
                return value
            parts = tuple(self._given(part) for part in value.parts)
            return value._replace(parts=parts)
        argument = self.program.argument(value.name)
        if argument is not None and argument.action in ("store_true", "store_false"):
            is_given = any(word.text in argument.flags for word in self.launch.words)
            if self._takes_more and not is_given:
                return value._replace(parts=())
            return constant(is_given == (argument.action == "store_true"))
        word = self.word_of(value.name)
        if word is None and self._takes_more:
            return value._replace(parts=())
        if word is None:
            return self.settled(value.parts[0]) if value.parts else value
        number = self.job.number(word, self.launch.inner.variables)
        if number is not None:
            return constant(number)
        return constant(word.literal) if word.literal is not None else value._replace(parts=())

    @property
    def _takes_more(self) -> bool:
        """Whether the command line ends in options nobody sees: ``"$@"``, ``$EXTRA_ARGS``."""
        words = self.launch.words
        return any(
            word.literal is None
            and word.text.startswith("$")
            and (not before.text.startswith("-") or "=" in before.text)
            for before, word in pairwise(words)
        )

    def word_of(self, dest: str) -> Word | None:
        """The word of the command line that gives an option of the program."""
        argument = self.program.argument(dest)
        flags = argument.flags if argument is not None else (f"--{dest}",)
        words = self.launch.words
        for at, word in enumerate(words):
            for flag in flags:
                if word.text == flag:
                    return words[at + 1] if at + 1 < len(words) else None
                if flag.startswith("--") and word.text.startswith(f"{flag}="):
                    return word.after(f"{flag}=")
        return None


@once
def runs(job: Job) -> tuple[Run, ...]:
    """Every Python program that the job starts and that can be read."""
    found = []
    for launch in job.trainings[:_MOST_RUNS]:
        program = job.program(launch)
        if program is not None:
            present = environment(job, launch, program)
            found.append(Run(job, launch, program, job.extent(launch), present))
    return tuple(found)


# Packages that set up neither ranks nor devices behind a program's back.
_PLAIN_PACKAGES = frozenset(sys.stdlib_module_names) | frozenset(
    """
    torch torchvision torchaudio torchtext numpy scipy pandas sklearn matplotlib PIL cv2 tqdm yaml
    transformers datasets tokenizers evaluate accelerate diffusers timm einops wandb mlflow
    tensorboardX tensorboard omegaconf rich loguru click typer fire tyro h5py zarr xarray seaborn
    webdataset torchmetrics albumentations monai safetensors huggingface_hub psutil requests
    pydantic jsonargparse nltk sentencepiece tiktoken torch_geometric dgl kornia skimage plotly
    """.split()
)
_SETS_UP = re.compile(
    r"(^|_)(init|setup|initiali[sz]e|configure|launch|distributed|dist|ddp|devices?|slurm|cuda|"
    r"gpus?|env|environment|ranks?|parallel|main|run|fit|wrap|bootstrap|prepare_model)(_|$)|"
    r"Trainer|Runner|Engine|Fabric|Accelerator|Distributed|Environment|Parallel|DDP|FSDP"
)


def sets_up_elsewhere(program: Program) -> bool:
    """Whether code that isn't read here may choose devices, set ranks or wrap models.

    It is called by a name that says so, from a module that is neither beside the program nor a
    package known to do nothing of the kind.
    """
    for unit in program.units:
        for star in unit.table.stars:
            name = unit.absolute(star)
            if name in program.missing and name.partition(".")[0] not in _PLAIN_PACKAGES:
                return True
    # `Net().cuda()` is torch's own method, of a class that isn't read here.
    return any(
        call.method != "cuda"
        and (_SETS_UP.search(call.method) or _SETS_UP.search(call.name.rpartition(".")[2]))
        for call in foreign_calls(program)
    )


def foreign_calls(program: Program) -> Iterator[Call]:
    """The calls of functions, and methods of objects, that aren't read here or well known."""
    for call in program.calls:
        receiver = call.receiver
        made = receiver.name if receiver is not None and receiver.kind == "call" else ""
        if _is_foreign(program, call.name) or _is_foreign(program, made):
            yield call


def _is_foreign(program: Program, name: str) -> bool:
    root, dot, _ = name.partition(".")
    if not dot or root in _PLAIN_PACKAGES:
        return False
    return program.scope_named(name) is None


def directive_place(directive: Directive) -> Place:
    """Where a directive stands."""
    return Place(directive.line, directive.column, directive.length)


def option_place(run: Run, *names: str) -> Place | None:
    """Where srun, or else the job, is given one of some options."""
    step = run.launch.step
    request = run.job.request_of(run.launch)
    for name in names:
        word = step.option(name) if step is not None else None
        if word is not None:
            return run.job.place_of(word)
    for name in names:
        directive = request.directive(name)
        if directive is not None:
            return directive_place(directive)
    return None


def others(*places: Place | None) -> tuple[Place, ...]:
    """Further places of a finding, without those that aren't there."""
    return tuple(dict.fromkeys(place for place in places if place is not None))


def is_batch(run: Run) -> bool:
    """Whether the batch shell itself starts the program."""
    return run.launch.where == BATCH
