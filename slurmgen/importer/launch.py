"""The last command of a script as a launcher and the command it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.importer import task_code
from slurmgen.importer.container import literal_words, of_step, peel
from slurmgen.importer.started_program import (
    COUNTS,
    GIVEN,
    STEP_VARIABLES,
    TASK_VARIABLES,
    NotIdiomaticError,
    Shape,
    Started,
    names_in,
    substitutes,
)
from slurmgen.importer.torchrun import torchrun
from slurmgen.launchers import AGENT, ONE, TASKS, with_ranks
from slurmgen.reading.shell.options import parse_options
from slurmgen.reading.shell.srun import SRUN
from slurmgen.reading.shell.starters import TORCHRUN, read_launcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurmgen.importer.container import Container
    from slurmgen.reading.script import BatchScript
    from slurmgen.reading.shell.words import Word
    from slurmgen.slurm.request import Request

# A program that the batch shell starts and that may start steps itself must not become a
# step: these are taken not to.
ALONE = ("python", "Rscript", "julia", "accelerate")
_NOT_PROGRAMS = frozenset(
    """
    eval source . exit return wait trap cd echo printf date true false : export unset set
    read test [ [[ sleep mkdir cp mv rm cat ls time command builtin nohup env timeout module
    conda deactivate srun sbatch salloc scontrol scancel mpirun mpiexec mpiexec.hydra orterun
    prterun ssh pdsh horovodrun ray jupyter jupyter-lab jupyter-notebook parallel
    nextflow snakemake
    """.split()
)
_UNTOLD = "what the launch line starts is not certain"


def started(script: BatchScript, start: int, end: int, kind: str, *, in_container: bool) -> Started:
    """How the statement at [start, end) would be started by a launcher of ours.

    kind: of its node. in_container: whether a container may be taken off the command.
    Raises NotIdiomaticError where none of them starts the same.
    """
    shape = shape_of(script.requests[0])
    # Those of a `$(…)` in its words come before it.
    command = next((c for c in script.shell.commands if c.start == start), None)
    if command is None or script.shell.truncated:
        raise NotIdiomaticError(_UNTOLD)
    words = command.words
    if not words or command.assignments:
        raise NotIdiomaticError("a variable is set for the launch line alone")
    if not _is_certain(script, start, end):
        raise NotIdiomaticError("a variable in the launch line has several values")
    has_srun = words[0].text == "srun"
    # What a variable has brought in stands elsewhere.
    if not all(start <= word.start and word.end <= end for word in words):
        raise NotIdiomaticError(_UNTOLD)
    is_plain_command = kind == "command"
    container: Container | None = None
    exports: list[str] = []
    if has_srun:
        given = parse_options(words[1:], SRUN)
        options = dict(given.options)
        if any(name.startswith("container-") for name in options):
            container = of_step(options)
            if not in_container or container is None or literal_words(given.rest) is None:
                raise NotIdiomaticError("no key says all of pyxis' options")
            options = {n: w for n, w in options.items() if not n.startswith("container-")}
        heredoc = (
            task_code.heredoc(script.text[start:end]) if kind == "redirected_statement" else None
        )
        if given.opaque or not given.rest:
            raise NotIdiomaticError(_UNTOLD)
        exports = step_exports(options, shape, script)
        words = given.rest
        code = heredoc if heredoc is not None else task_code.bash_code(words, script.text)
        if code is not None and container is None and words[-1].end <= end:
            if heredoc is None and not is_plain_command:
                raise NotIdiomaticError("the output of bash -c goes on to another command")
            return task_code.started(code, shape)._replace(exports=tuple(exports))
    inside = None
    if in_container and container is None and is_plain_command:
        inside = peel(words, shape.gpus)
    if inside is not None and inside.rest and literal_words(inside.rest) is not None:
        container, words = inside
    found = _started(script, words, shape, (start, end), kind, has_srun=has_srun)
    found = found._replace(exports=tuple(exports))
    if container is None:
        return found
    literal = literal_words(words)
    if found.launcher.ranks == AGENT:
        rest = literal_words([word for word in words if word.start >= found.start])
        literal = None if rest is None else (*found.before, *rest)
    if literal is None:
        # Only what is started with the same words is taken into a container.
        raise NotIdiomaticError("the command in the container expands variables")
    return found._replace(
        container=container, words=literal, variables=(*found.variables, *container.names)
    )


def _is_certain(script: BatchScript, start: int, end: int) -> bool:
    """Whether no variable in the statement is set in a branch, where a launcher depends on it."""
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
) -> Started:
    """The program that `words` start, srun and a container taken off."""
    end = span[1]
    is_plain_command = kind == "command"
    if words[0].name == "exec" and not has_srun and is_plain_command and len(words) > 1:
        words = words[1:]
    program = words[0].literal
    if (
        not program
        or program.startswith("-")
        or words[0].name in _NOT_PROGRAMS
        or words[0].name in script.shell.functions
    ):
        raise NotIdiomaticError(f"no launcher starts {words[0].text[:40] or 'it'} the same way")
    torch = read_launcher(words)
    if torch is not None and torch.launcher.kind == TORCHRUN and shape.per_node == 1:
        if has_srun or shape.nodes == 1:
            found = torchrun(script.text, torch, shape, end) if is_plain_command else None
            if found is not None:
                return found
    text = script.text[words[0].start : end]
    names = tuple(names_in(text))
    if shape.is_single:
        if not has_srun and script.requests[0].gives("signal"):
            raise NotIdiomaticError("Slurm's signal would reach a step, and not the batch shell")
        if not has_srun and not words[0].name.startswith(ALONE) and torch is None:
            raise NotIdiomaticError(f"{program[:40]} may start steps itself")
        if torch is not None:
            # They start their ranks themselves: a block of commands leaves them alone.
            raise NotIdiomaticError("torchrun's options have no keys")
        needs = () if is_plain_command else _needs(kind)
        if set(names) & STEP_VARIABLES or needs is None:
            raise NotIdiomaticError("a task sees other values than the batch shell")
        return Started(with_ranks(ONE), text, variables=names, name=program, needs=needs)
    if not has_srun or not is_plain_command:
        raise NotIdiomaticError("the launch line is more than srun and a program")
    if torch is not None:
        raise NotIdiomaticError("torchrun's options have no keys")
    if (set(names) & TASK_VARIABLES) - GIVEN or substitutes(text):
        raise NotIdiomaticError("tasks would see other values than the batch shell")
    if shape.gpus and shape.per_node != shape.gpus:
        raise NotIdiomaticError("there are more or fewer tasks than GPUs on a node")
    return Started(with_ranks(TASKS), text, variables=names, name=program)


def shape_of(request: Request) -> Shape:
    nodes, tasks = request.total_nodes, request.total_tasks
    per_node, gpus, cpus = request.tasks_per_node, request.node_gpus, request.cpus_per_task
    if nodes is None or tasks is None or per_node is None or gpus is None:
        raise NotIdiomaticError("how many nodes, tasks and GPUs there are can't be told")
    if cpus is None and request.gives("cpus-per-task"):
        raise NotIdiomaticError("how many CPUs a task gets can't be told")
    # Each of these counts tasks or GPUs in a way that no key does.
    for option in (
        "gpus", "gpus-per-task", "gpus-per-socket", "ntasks-per-gpu", "tres-per-task", "overcommit",
        "cpus-per-gpu", "ntasks-per-core", "ntasks-per-socket", "wrap", "gpu-bind", "tres-bind",
    ):  # fmt: skip
        if request.gives(option):
            raise NotIdiomaticError(f"no key counts as --{option} does")
    # Under another export than ALL a step of its own would see less than one of ours.
    if tasks < nodes or not (request.export or "ALL").upper().startswith("ALL"):
        raise NotIdiomaticError("nodes are idle, or --export is not ALL")
    return Shape(nodes, tasks, per_node, gpus, cpus)


def step_exports(options: Mapping[str, Word], shape: Shape, script: BatchScript) -> list[str]:
    """Variables that tell our srun what its options don't say anyway, as Bash sets them."""
    request = script.requests[0]
    expected: dict[str, object] = {
        "ntasks": shape.tasks,
        "nodes": shape.nodes,
        "ntasks-per-node": shape.per_node,
        "tasks-per-node": shape.per_node,
        "cpus-per-task": shape.cpus,
        "gres": request.value("gres"),
        "gpus-per-node": request.value("gpus-per-node"),
    }
    found: list[str] = []
    for name, word in options.items():
        text = word.text
        if name in expected:
            if text != str(expected[name]) and text not in COUNTS.get(name, ()):
                raise NotIdiomaticError(f"srun's --{name} is not the job's")
        elif name in _BY_VARIABLE:
            found.append(f"{_BY_VARIABLE[name]}=1")
        elif (name, text) not in _SAID_ANYWAY:
            raise NotIdiomaticError(f"no key says srun's --{name}")
    # Without a count srun takes as many tasks as fit on the CPUs of a whole node.
    counted = "ntasks" in options or request.gives("ntasks", "ntasks-per-node")
    if not counted and request.exclusive and "cpus-per-task" in options:
        raise NotIdiomaticError("how many tasks srun starts can't be told")
    return found


_BY_VARIABLE = {"label": "SLURM_LABELIO", "unbuffered": "SLURM_UNBUFFEREDIO"}
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
