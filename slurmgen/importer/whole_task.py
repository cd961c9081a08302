"""All that the one task of a job runs, as one `command` of several lines.

A step with one task sees what the batch shell sees, so commands that start no steps and
no other jobs run there as they ran in the batch shell.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.importer.launch import ALONE, step_exports
from slurmgen.importer.nodes import (
    arguments_in,
    exported_names,
    is_positional,
    names_used,
    parents,
    source,
    variables,
    walk,
)
from slurmgen.importer.started_program import STEP_VARIABLES, NotIdiomaticError, Started
from slurmgen.launchers import ONE, with_ranks
from slurmgen.reading.shell.options import parse_options
from slurmgen.reading.shell.srun import SRUN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

    from slurmgen.reading.script import BatchScript
    from slurmgen.reading.shell.options import Given

# What starts the work of a job; before it, a script sets things up.
WORK = ("srun", "torchrun", "deepspeed", "apptainer", "singularity", "uv", *ALONE)
# These start neither steps nor jobs.
_KNOWN = frozenset(
    """
    . : [ [[ alias awk basename bg break cat cd chmod command conda continue cp curl cut date
    deactivate deepspeed df diff dirname du echo egrep envsubst exit export false fg fgrep file
    find free getopts grep gunzip gzip head hostname jq jupyter-lab jupyter-notebook kill let ln
    ls lscpu mamba mapfile md5sum micromamba mkdir mktemp ml module mv nvidia-smi paste pip pip3
    pkill popd printf pushd pwd read readarray realpath return rm rmdir rocm-smi rsync sed seq set
    sha256sum shift shopt sleep sort source split stat tail tar tee tensorboard test time torchrun
    touch tr trap true type ulimit umask uname uniq unset unzip uptime virtualenv vllm wait wc
    wget which whoami xargs zcat
    """.split()
)
_FOR_FILES = frozenset(
    "chmod cp df du hostname ls mkdir mv nvidia-smi rm rmdir rsync tar unzip".split()
)
# Of a container, of an environment: the program stands behind their options.
_AROUND = {"apptainer": "exec", "singularity": "exec", "conda": "run", "uv": "run"}
_NEVER = re.compile(r"\b(BASH_SOURCE|LINENO|FUNCNAME|hostfile|SLURM_JOB_ID\}?\.\d)")
_SELF_STARTING = re.compile(r"\b(torchrun|torch\.distributed|accelerate|deepspeed)\b")
_EXITS = re.compile(r"\btrap\b(?!.*\bEXIT[ \t]*(?:[;\n#]|$))", re.MULTILINE)


def is_work(node: Node, code: str) -> bool:
    """Whether set-up ends before the statement."""
    if node.type == "function_definition":
        return False
    for inner in walk(node):
        if inner.type == "command" and _program(inner, code).startswith((*WORK, "trap", "exec")):
            return True
    return False


def is_for_files(step: Given) -> bool:
    """Whether what srun starts reads no variable of a rank."""
    return bool(step.rest) and not step.opaque and step.rest[0].name in _FOR_FILES


def _program(command: Node, code: str) -> str:
    """The name of a command's program; empty where the shell finds it out."""
    name = next((c for c in command.children if c.type == "command_name"), None)
    text = "" if name is None else source(name, code)
    return "" if set("$`*?") & set(text) else text.strip("\"'").rsplit("/", 1)[-1]


def block(script: BatchScript, nodes: Iterable[Node], span: tuple[int, int], at: int) -> Started:
    """The statements as a command; raises NotIdiomaticError where a step would change them.

    span: of the statements in the script. at: where the text that the nodes count in begins.
    """
    start, end = span
    text = script.text[start:end]
    code = script.text[at:]
    found = list(nodes)
    if script.requests[0].gives("signal"):
        raise NotIdiomaticError("Slurm's signal would reach a step, and not the batch shell")
    if script.shell.truncated or _NEVER.search(text) or "$0" in text or "${0" in text:
        raise NotIdiomaticError("what the script starts must not stand in a step")
    if _EXITS.search(text):
        raise NotIdiomaticError("a trap would catch other signals in a step")
    functions = set(script.shell.functions)
    cuts: list[tuple[int, int]] = []
    names: list[str] = []
    for statement in found:
        names += [n for n in variables(statement, code) if not is_positional(n)]
        names += [*names_used(statement, code), *arguments_in(statement, code)]
        for node in walk(statement):
            if node.type != "command":
                continue
            name = _program(node, code)
            if name == "srun":
                if any(parent.type == "while_statement" for parent in parents(node)):
                    raise NotIdiomaticError("srun takes the input of a loop")
                cuts.append(_step(script, at + node.start_byte, end))
            elif name == "exec" and statement is not found[-1]:
                raise NotIdiomaticError("exec changes what the script runs in")
            elif name == "eval":
                if not re.fullmatch(r'eval "\$\((conda|mamba|micromamba) shell[^$`]*\)"',
                                    source(node, code)):  # fmt: skip
                    raise NotIdiomaticError("eval may run anything")
            elif not _is_known(node, name, code, functions):
                raise NotIdiomaticError(f"{name[:40] or 'what it runs'} may start steps itself")
    if set(names) & STEP_VARIABLES:
        raise NotIdiomaticError("a task sees other values than the batch shell")
    for first, last in sorted(cuts, reverse=True):
        text = text[: first - start] + text[last - start :]
    if any("OMP_NUM_THREADS" in exported_names(statement, code) for statement in found):
        names = [name for name in names if name != "OMP_NUM_THREADS"]
    return Started(with_ranks(ONE), text, variables=tuple(names))


def _is_known(node: Node, name: str, code: str, functions: set[str]) -> bool:
    if name in functions or (name.startswith(ALONE) and name):
        return True
    if name in _AROUND:
        words = [source(n, code) for n in node.named_children[1:]]
        if _AROUND[name] not in words[:1]:
            return name in _KNOWN or name == "uv"
        rest = words[1:]
        inside = [w.rsplit("/", 1)[-1] for w in rest]
        return any(w.startswith(ALONE) or w in _KNOWN for w in inside if not w.startswith("-"))
    return name == "exec" or name in _KNOWN


def _step(script: BatchScript, start: int, end: int) -> tuple[int, int]:
    """Where `srun` and its options stand, which say no more than that there is one task."""
    from slurmgen.importer.launch import shape_of

    command = next((c for c in script.shell.commands if c.start == start), None)
    if command is None or not command.words or command.words[0].text != "srun":
        raise NotIdiomaticError("what srun starts is not certain")
    given = parse_options(command.words[1:], SRUN)
    inside = given.rest and start < given.rest[0].start < end
    if given.opaque or not inside or command.background or command.context.fed:
        raise NotIdiomaticError("what srun starts is not certain")
    if step_exports(given.options, shape_of(script.requests[0]), script):
        raise NotIdiomaticError("srun's options stand within other commands")
    return start, given.rest[0].start


def with_options(text: str, options: frozenset[str], *, traced: bool) -> str:
    """The text under the shell options that are in force where it stands."""
    if "allexport" in options:
        raise NotIdiomaticError("set -a exports every variable")
    lines = []
    if "pipefail" not in options and re.search(r"(?<!\|)\|(?!\|)", text):
        lines.append("set +o pipefail" if "errexit" in options else "set +eo pipefail")
    elif "errexit" not in options:
        lines.append("set +e")
    if "nounset" in options:
        lines.append("set -u")
    if traced:
        lines.append("set -x")
    return "".join(f"{line}\n" for line in lines) + text


def leaves_threads_alone(text: str) -> bool:
    """Whether the number of threads is for what the text starts to choose."""
    return _SELF_STARTING.search(text) is not None
