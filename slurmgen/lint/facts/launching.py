"""How a script starts its programs: on which nodes, from where, and where it says so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.lint.facts.presence import environment
from slurmgen.lint.facts.python import Run, directive_place
from slurmgen.lint.facts.tools import is_tool
from slurmgen.lint.job import once
from slurmgen.reading.shell.starters import ACCELERATE, DEEPSPEED, TORCH_LAUNCH, TORCHRUN
from slurmgen.reading.shell.words import BATCH, TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Word
    from slurmgen.slurm.request import Request

# They build, fetch and submit; some with programs of their own, which are not this job's.
_ASIDE = frozenset("docker git make numactl pdsh salloc sbatch ssh xz".split())
_LOOKS = re.compile(r"print\(|assert |__version__")
# Started once, these reach the other nodes themselves.
_REMOTE = frozenset("ssh pdsh clush parallel-ssh pssh mpirun mpiexec dsh prun ray flux".split())


def is_helper(launch: Launch) -> bool:
    """Whether it only looks around, copies or steers: no use of a task, a node or a GPU."""
    if launch.is_training:
        return False
    if is_tool(launch) or launch.program in _ASIDE:
        return True
    if not launch.is_python:
        return False
    # `python -m pip`, `python -c 'import torch; print(torch.__version__)'`
    return launch.module is not None or any(
        _LOOKS.search(word.text) or word.text in ("-V", "--version") for word in launch.words
    )


def programs(job: Job) -> Iterator[Launch]:
    """The launches that are no helpers, in this job."""
    functions = job.script.shell.functions
    for launch in job.launches:
        if launch.where in (BATCH, TASK) and not is_helper(launch):
            if launch.program and launch.program not in functions:
                yield launch


def has_gpus(request: Request) -> bool:
    """Whether a component asks for GPUs, however many."""
    return request.node_gpus is None or request.node_gpus > 0


def run_of(job: Job, launch: Launch) -> Run | None:
    """The program of a launch beside it, None where it can't be read."""
    program = job.program(launch)
    if program is None:
        return None
    return Run(job, launch, program, job.extent(launch), environment(job, launch, program))


def nodes_asked(job: Job, launch: Launch) -> int | None:
    """How many nodes a launcher is told that it runs on; None where that isn't known.

    torch/distributed/run.py, accelerate/commands/launch.py, deepspeed/launcher/runner.py:
    one, where nothing says otherwise.
    """
    launcher = launch.launcher
    if launcher is None:
        return None
    if launcher.kind in (TORCHRUN, TORCH_LAUNCH):
        if "standalone" in launcher.options:
            return 1
        word = launcher.option("nnodes")
        if word is None and "PET_NNODES" in launch.environment:
            word = launch.environment["PET_NNODES"].value
        if word is not None:
            return _largest(job, launch, word)
    elif launcher.kind == ACCELERATE:
        word = launcher.option("num_machines")
        if word is not None:
            return job.number(word, launch.inner.variables)
        if "deepspeed_hostfile" in launcher.options:
            return None
    elif launcher.kind == DEEPSPEED:
        if {"hostfile", "no_ssh"} & set(launcher.options):
            return None
        word = launcher.option("num_nodes")
        if word is not None:
            return job.number(word, launch.inner.variables)
    else:
        return None
    return None if launcher.opaque else 1


def _largest(job: Job, launch: Launch, word: Word) -> int | None:
    """`2`, or the more of `1:2`."""
    literal = word.literal
    if literal is not None and ":" in literal:
        most = literal.rpartition(":")[2]
        return int(most) if most.isascii() and most.isdigit() else None
    return job.number(word, launch.inner.variables)


@once
def reaches_nodes(job: Job) -> bool:
    """Whether the script has another way to the other nodes than srun: ssh, mpirun, ray."""
    for command in job.script.shell.commands:
        texts = [word.text for word in command.words]
        if command.name in _REMOTE or any(_REMOTE & set(text.split()) for text in texts):
            return True
    return False


@once
def spread(job: Job) -> list[Launch]:
    """The programs that run in several tasks, or in steps side by side: those use the job."""
    return [
        launch
        for launch in programs(job)
        if launch.where == TASK
        and (launch.command.background or launch.command.loop or job.extent(launch).tasks != 1)
    ]


def processes_on_node(job: Job, launch: Launch) -> int | None:
    """Processes of a training on the fullest node, those of mp.spawn included."""
    run = run_of(job, launch)
    if run is not None and launch.launcher is None:
        return run.local_processes
    return job.extent(launch).processes_per_node


def is_bound(request: Request, launch: Launch) -> bool:
    """Whether a step's tasks are given GPUs of their own, so that they don't see each other's."""
    step = launch.step
    if step is None:
        return False
    binding = step.option("gpu-bind")
    text = binding.text if binding is not None else request.gpu_bind
    if text is not None and text.removeprefix("verbose,") == "none":
        return False
    return (
        text is not None
        or step.option("gpus-per-task", "ntasks-per-gpu", "tres-per-task") is not None
        or request.gives("gpus-per-task", "ntasks-per-gpu", "tres-per-task")
    )


def launcher_place(job: Job, launch: Launch) -> Place:
    """Where the launcher's name is written, be it in a variable."""
    launcher = launch.launcher
    assert launcher is not None
    for word in launch.inner.words:
        if word.start == launcher.start and word.name in (launcher.kind, "deepspeed", "accelerate"):
            return job.place(word.pieces[0].start, word.pieces[-1].end)
    return job.place(launcher.start, launcher.end)


def is_called(job: Job, launch: Launch) -> bool:
    """Whether the function in which a launch stands, if any, is called by name."""
    function = launch.command.function
    return function is None or bool(job.commands(function))


def option_place(job: Job, launch: Launch, *names: str) -> Place | None:
    """Where srun, or else the job, is given the first of some options."""
    if launch.step is not None:
        for name in names:
            word = launch.step.option(name)
            if word is not None:
                return job.place_of(word)
    return request_place(job.request_of(launch), *names)


def request_place(request: Request, *names: str) -> Place | None:
    """The directive that gives the first of some options."""
    for name in names:
        directive = request.directive(name)
        if directive is not None:
            return directive_place(directive)
    return None


def start_place(job: Job, launch: Launch) -> Place:
    """The line on which a launch is made: its srun, or the program's command."""
    step = launch.step
    if step is not None:
        outermost = step
        while outermost.outer is not None:
            outermost = outermost.outer
        return job.place(outermost.start, outermost.end)
    word = launch.inner.words[0]
    return job.place(word.start, word.end)


GPU_OPTIONS = ("gpus-per-node", "gres", "gpus", "gpus-per-task", "gpus-per-socket")
TASK_OPTIONS = ("ntasks-per-node", "ntasks", "ntasks-per-gpu", "ntasks-per-socket")
