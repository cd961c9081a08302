"""The last command of a script as a launcher and the command it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.importer.container import literal_words, of_step, peel
from slurmgen.importer.started import (
    COUNTS,
    GIVEN,
    TASK_VARIABLES,
    Shape,
    Started,
    names_in,
    substitutes,
)
from slurmgen.importer.torchrun import torchrun
from slurmgen.shell.options import parse_options
from slurmgen.shell.srun import SRUN
from slurmgen.shell.starters import TORCHRUN, read_launcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurmgen.importer.container import Container
    from slurmgen.request import Request
    from slurmgen.script import BatchScript
    from slurmgen.shell.words import Word

# The one task of a job has them otherwise than its batch shell, or has them alone.
_STEP_VARIABLES = frozenset(
    name
    for name in TASK_VARIABLES
    if "STEP" in name or "SRUN" in name or "LAUNCH" in name or "DISTRIBUTION" in name
) | {
    "SLURM_TASK_PID",
    "SLURM_CPU_BIND",
    "SLURM_UMASK",
    "OMP_NUM_THREADS",
    "SHLVL",
    "BASHPID",
    "PPID",
}
# A program that the batch shell starts and that may start steps itself must not become a
# step: these are taken not to.
_ALONE = ("python", "Rscript", "julia")
_NOT_PROGRAMS = frozenset(
    """
    exec eval source . exit return wait trap cd echo printf date true false : export unset set
    read test [ [[ sleep mkdir cp mv rm cat ls time command builtin nohup env timeout module
    conda deactivate srun sbatch salloc scontrol scancel mpirun mpiexec mpiexec.hydra orterun
    prterun ssh pdsh deepspeed horovodrun ray jupyter jupyter-lab jupyter-notebook parallel
    nextflow snakemake
    """.split()
)


def started(
    script: BatchScript, start: int, end: int, kind: str, *, in_container: bool
) -> Started | None:
    """How the statement at [start, end) would be started by a launcher of ours; None: not so.

    kind: of its node. in_container: whether a container may be taken off the command.
    """
    shape = _shape(script.requests[0])
    # Those of a `$(…)` in its words come before it.
    command = next((c for c in script.shell.commands if c.start == start), None)
    if shape is None or command is None or script.shell.truncated:
        return None
    words = command.words
    if not words or command.assignments:
        return None
    # What a variable has brought in stands elsewhere.
    if not all(start <= word.start and word.end <= end for word in words):
        return None
    if not _is_certain(script, start, end):
        return None
    is_plain_command = kind == "command"
    has_srun = words[0].text == "srun"
    container: Container | None = None
    if has_srun:
        given = parse_options(words[1:], SRUN)
        options = dict(given.options)
        if any(name.startswith("container-") for name in options):
            container = of_step(options)
            if not in_container or container is None or literal_words(given.rest) is None:
                return None
            options = {n: w for n, w in options.items() if not n.startswith("container-")}
        if given.opaque or not given.rest or not _step_is_whole(options, shape, script):
            return None
        words = given.rest
    inside = None
    if in_container and container is None and is_plain_command:
        inside = peel(words, shape.gpus)
    if inside is not None and inside.rest and literal_words(inside.rest) is not None:
        container, words = inside
    found = _started(script, words, shape, (start, end), kind, has_srun=has_srun)
    if found is None or container is None:
        return found
    literal = literal_words(words)
    if literal is None or found.launcher == "torchrun":
        # Only what is started with the same words is taken into a container.
        return None
    return found._replace(
        container=container, words=literal, variables=(*found.variables, *container.names)
    )


def _is_certain(script: BatchScript, start: int, end: int) -> bool:
    """Whether no variable in the statement has one value here and another there."""
    used = set(names_in(script.text[start:end]))
    places: dict[str, int] = {}
    for assignment in script.shell.assignments:
        if assignment.name in used:
            first = places.setdefault(assignment.name, assignment.start)
            if assignment.conditional or first != assignment.start:
                return False
    return True


def _started(
    script: BatchScript,
    words: Sequence[Word],
    shape: Shape,
    span: tuple[int, int],
    kind: str,
    *,
    has_srun: bool,
) -> Started | None:
    """The program that `words` start, srun and a container taken off."""
    end = span[1]
    is_plain_command = kind == "command"
    program = words[0].literal
    if (
        not program
        or program.startswith("-")
        or words[0].name in _NOT_PROGRAMS
        or words[0].name in script.shell.functions
    ):
        return None
    torch = read_launcher(words)
    if torch is not None:
        if torch.launcher.kind != TORCHRUN or not is_plain_command or shape.per_node != 1:
            return None
        if not has_srun and shape.nodes > 1:
            return None
        return torchrun(script.text, torch, shape, end)
    text = script.text[words[0].start : end]
    names = tuple(names_in(text))
    single = shape.nodes == shape.tasks == 1
    if single:
        name = words[0].name
        if not has_srun and not name.startswith(_ALONE):
            return None
        if has_srun and not is_plain_command:
            return None
        if set(names) & _STEP_VARIABLES:
            return None
        needs = () if is_plain_command else _needs(kind)
        if needs is None:
            return None
        return Started("plain", text, variables=names, name=program, needs=needs)
    if not has_srun or not is_plain_command:
        return None
    if (set(names) & TASK_VARIABLES) - GIVEN or substitutes(text):
        return None
    if shape.gpus and shape.per_node != shape.gpus:
        return None
    return Started("srun", text, variables=names, name=program)


def _shape(request: Request) -> Shape | None:
    nodes, tasks = request.total_nodes, request.total_tasks
    per_node, gpus, cpus = request.tasks_per_node, request.node_gpus, request.cpus_per_task
    if nodes is None or tasks is None or per_node is None or gpus is None or cpus is None:
        return None
    # Each of these counts tasks or GPUs in a way that no key does.
    if request.gives(
        "gpus", "gpus-per-task", "gpus-per-socket", "ntasks-per-gpu", "tres-per-task", "overcommit",
        "cpus-per-gpu", "ntasks-per-core", "ntasks-per-socket", "wrap", "gpu-bind", "tres-bind",
    ):  # fmt: skip
        return None
    # Under another export than ALL a step of its own would see less than one of ours.
    if tasks < nodes or not (request.export or "ALL").upper().startswith("ALL"):
        return None
    return Shape(nodes, tasks, per_node, gpus, cpus)


def _step_is_whole(options: Mapping[str, Word], shape: Shape, script: BatchScript) -> bool:
    """Whether srun's options say what the launch block says anyway."""
    expected = {
        "ntasks": shape.tasks,
        "nodes": shape.nodes,
        "ntasks-per-node": shape.per_node,
        "tasks-per-node": shape.per_node,
        "cpus-per-task": shape.cpus,
    }
    for name, word in options.items():
        text = word.text
        if name in expected:
            if text != str(expected[name]) and text not in COUNTS.get(name, ()):
                return False
        elif (name, text) not in _SAID_ANYWAY:
            return False
    request = script.requests[0]
    # Without a count srun takes as many tasks as fit on the CPUs of a whole node.
    counted = "ntasks" in options or request.gives("ntasks", "ntasks-per-node")
    return counted or not (request.exclusive and "cpus-per-task" in options)


_SAID_ANYWAY = {
    ("kill-on-bad-exit", ""),
    ("kill-on-bad-exit", "1"),
    ("wait", "0"),
    ("export", "ALL"),
    ("jobid", "$SLURM_JOB_ID"),
    ("jobid", "${SLURM_JOB_ID}"),
}


def _needs(kind: str) -> tuple[str, ...] | None:
    """For a command with redirections or a pipe, which a task's shell runs with pipefail."""
    return {"redirected_statement": (), "pipeline": ("pipefail",)}.get(kind)
