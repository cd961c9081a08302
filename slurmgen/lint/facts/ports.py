"""What is wrong with a port, if anything: one fault for each, so that rules don't repeat."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.lint.facts.endpoints import PORT, Endpoint, endpoints
from slurmgen.lint.facts.ranges import Range, Ranges, expansion_at, of_value
from slurmgen.lint.facts.spread import has_tasks, is_one_of_many
from slurmgen.reading.programs import walk
from slurmgen.reading.programs.roles import names_rank, roles
from slurmgen.reading.shell.starters import TORCH_LAUNCH, TORCHRUN
from slurmgen.reading.shell.words import ARITHMETIC, COMMAND, TASK, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.variables import Assignment
    from slurmgen.reading.shell.words import Piece, Word

OCTAL = "octal"
DRAWN = "drawn"
OUT_OF_RANGE = "out-of-range"
FIXED = "fixed"
EPHEMERAL = "ephemeral"

# net.ipv4.ip_local_port_range as Linux has it by default (ip(7)).
EPHEMERAL_LOW, EPHEMERAL_HIGH = 32768, 60999
LOWEST, HIGHEST = 1024, 65535


class PortFault(NamedTuple):
    """A port and its first fault; ports: what it can be, where that is known."""

    kind: str
    endpoint: Endpoint
    ports: Range | None


def faults(job: Job) -> Iterator[PortFault]:
    """The ports of a job that are wrong."""
    for endpoint in endpoints(job):
        if endpoint.kind == PORT:
            fault = _fault(job, endpoint)
            if fault is not None:
                yield fault


def _fault(job: Job, endpoint: Endpoint) -> PortFault | None:
    launch = endpoint.launch
    ports = _range(job, endpoint)
    kind = None
    if endpoint.word is not None and octal(job, endpoint.word, launch.inner.variables):
        kind = OCTAL
    elif is_drawn(job, endpoint):
        kind = DRAWN
    elif ports is None or (ports.is_constant and ports.low == 0):
        # Port 0 is any free one.
        return None
    elif ports.high > HIGHEST or ports.low < LOWEST:
        kind = OUT_OF_RANGE
    elif ports.is_constant and shares_nodes(job, launch):
        kind = FIXED
    elif ports.low <= EPHEMERAL_HIGH and ports.high >= EPHEMERAL_LOW:
        kind = EPHEMERAL
    return None if kind is None else PortFault(kind, endpoint, ports)


def _range(job: Job, endpoint: Endpoint) -> Range | None:
    if endpoint.word is not None:
        ranges = Ranges(endpoint.launch.inner.variables, job.request_of(endpoint.launch))
        return ranges.of(endpoint.word)
    assert endpoint.value is not None
    return of_value(endpoint.value)


def shares_nodes(job: Job, launch: Launch) -> bool:
    """Whether another job may run on the nodes of a launch."""
    request = job.request_of(launch)
    if request.exclusive or request.mem == 0:
        return False
    profile = job.profile
    if profile is not None and profile.gpus.form == "none":
        return False
    kinds = [] if profile is None else [kind for kind in profile.node_types if kind.gpus_per_node]
    wanted = request.gpu_type
    named = [kind for kind in kinds if wanted is not None and wanted in (kind.name, kind.gpu)]
    # Hardly any node has more than eight.
    most = max((kind.gpus_per_node for kind in named or kinds), default=8)
    return (request.node_gpus or 0) < most


# --- drawn by each process -----------------------------------------------------------------

_RANDOM = re.compile(
    r"\bS?RANDOM\b|\$\$|\bBASHPID\b|\bshuf\b|\bjot\b|openssl\s+rand|/dev/u?random|\bsocket\b|"
    r"free_?port|get_?port|find_?port|getsockname|\bss\s+-|\bnetstat\b|\brandom\b|\bdate\b"
)
_PER_TASK = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_TASK_PID")
_DRAWING = re.compile(
    r"(random|numpy\.random|secrets|uuid)\..*|os\.getpid|time\.\w+|portpicker\..*|"
    r"(\w+\.)*\w*(free|unused|random|available|pick|open)_?\w*port\w*"
)


def is_drawn(job: Job, endpoint: Endpoint) -> bool:
    """Whether each of several processes that must agree on the port computes one of its own."""
    launch = endpoint.launch
    if not _must_agree(job, launch):
        return False
    if endpoint.word is not None:
        # A loop that starts a step on each node expands its words once for each.
        where = None if is_one_of_many(launch) else TASK
        return (where is None or has_tasks(job, launch)) and any(
            _varies(piece, launch.inner.variables) for piece in endpoint.word.expansions(where)
        )
    return _drawn_in_program(job, endpoint)


def _must_agree(job: Job, launch: Launch) -> bool:
    """Whether the tasks of a launch form one group: not where each has a torchrun of its own."""
    launcher = launch.launcher
    if launcher is not None and launcher.kind in (TORCHRUN, TORCH_LAUNCH):
        asked = launcher.option("nnodes")
        if asked is None or asked.literal == "1":
            return not has_tasks(job, launch)
    size = launch.environment.get("WORLD_SIZE")
    return size is None or size.value.literal != "1"


def _varies(piece: Piece, variables: Mapping[str, Assignment]) -> bool:
    """Whether what a task expands differs between tasks."""
    if piece.kind == VARIABLE:
        if piece.value is not None:
            return any(_varies(inner, variables) for inner in piece.value.expansions(piece.where))
        return piece.name in ("RANDOM", "SRANDOM", "$", "BASHPID", "EPOCHSECONDS", *_PER_TASK)
    text = piece.text
    if "RANDOM" in variables:
        # A seed makes the draws of all tasks alike.
        text = re.sub(r"\$?\bRANDOM\b", "", text)
    if piece.kind in (ARITHMETIC, COMMAND):
        return bool(_RANDOM.search(text)) or any(name in text for name in _PER_TASK)
    return False


def _drawn_in_program(job: Job, endpoint: Endpoint) -> bool:
    run = endpoint.run
    assert run is not None
    assert endpoint.value is not None
    processes = run.extent.processes
    several = processes > 1 if processes is not None else has_tasks(job, endpoint.launch)
    if not several or any(names_rank(condition.test) for condition in endpoint.conditions):
        return False
    if any(call.args for call in run.program.called("random.seed", "numpy.random.seed")):
        return False
    by_rank = {"rank", "local_rank", "node_rank"}
    for part in walk(endpoint.value):
        # str.__hash__ is salted anew in each process.
        if part.kind == "call" and part.name == "hash" and part.parts[:1]:
            return part.parts[0].kind in ("env", "format")
        if part.kind == "method" and part.name in ("bcast", "broadcast", "broadcast_object_list"):
            return False
        if part.kind == "call" and part.name == "random.Random":
            return False
    return any(
        (part.kind == "call" and _DRAWING.fullmatch(part.name))
        or (part.kind == "method" and part.name == "getsockname")
        or (part.kind == "env" and bool(roles(part) & by_rank))
        for part in walk(endpoint.value)
    )


# --- read as octal ---------------------------------------------------------------------------

_SLICE = re.compile(r"\$\{\w+\s*:\s*(\(\s*)?(-\s*\d+|[1-9]\d*)\s*\)?(:[^}]*)?\}|\$\{\w+##?[^}]+\}")
# The last command of a pipeline, which leaves the end of a number, and of its first digits.
_CUTTING = re.compile(r"(tail\s+-c|cut\s+-c|rev$|grep\s+-\w*o|sed\b|awk\b.*\bsubstr\b)")
_DATE = re.compile(r"\bdate\b[^|]*\+[\"']?%[HMSmdjNyI]")


def octal(job: Job, word: Word, variables: Mapping[str, Assignment]) -> Piece | None:
    """The arithmetic in which the last digits of a number may start with a zero."""
    for piece in word.expansions():
        if piece.kind == VARIABLE and piece.value is not None:
            inner = octal(job, piece.value, variables)
            if inner is not None:
                return inner
        if piece.kind == ARITHMETIC and reads_octal(job, piece.text[3:-2], variables):
            return piece
    return None


def reads_octal(job: Job, expression: str, variables: Mapping[str, Assignment]) -> bool:
    """Whether an operand of Bash arithmetic may start with a zero."""
    return job.script.interpreter != "zsh" and any(
        _may_start_with_zero(operand, variables) for operand in _operands(expression)
    )


def _operands(expression: str) -> Iterator[str]:
    """The expansions and names in an expression that `10#` doesn't make decimal."""
    at = 0
    while at < len(expression):
        end, source = expansion_at(expression, at)
        name = re.compile(r"[A-Za-z_]\w*").match(expression, at)
        if end is None and name is None:
            at += 1
            continue
        stop = end if end is not None else (name.end() if name else at + 1)
        if not expression[:at].rstrip().endswith("#"):
            yield source if end is not None else expression[at:stop]
        at = stop


def _may_start_with_zero(operand: str, variables: Mapping[str, Assignment]) -> bool:
    if operand.startswith("$(("):
        return False
    if operand.startswith(("$(", "`")):
        last = operand.strip("$()`").rpartition("|")[2].strip()
        return bool(_CUTTING.match(last) or _DATE.search(operand))
    if _SLICE.fullmatch(operand):
        return True
    assigned = variables.get(operand.strip("${}"))
    if assigned is None or len(assigned.value.pieces) != 1:
        return False
    piece = assigned.value.pieces[0]
    if piece.kind == VARIABLE and piece.operator:
        return bool(_SLICE.fullmatch(f"${{{piece.name}{piece.operator}}}"))
    return piece.kind == COMMAND and _may_start_with_zero(piece.text, {})
