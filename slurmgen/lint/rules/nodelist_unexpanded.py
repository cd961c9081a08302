"""A node is taken out of SLURM_NODELIST as if the list were written out.

## What it does

Finds SLURM_NODELIST, SLURM_JOB_NODELIST and SLURM_STEP_NODELIST of several nodes where they are
used as a host name, cut at commas (`cut -d, -f1`, `${X%%,*}`, `.split(",")`), or looped over.

## Why is this bad

Slurm writes `n[1-2]`, not `n1,n2` (seen on 20.11 to 26.05). The first field is then `n[1-2]` or
`gpu[01`, which no name server knows.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
head=$(echo "$SLURM_JOB_NODELIST" | cut -d, -f1)
port=$((20000 + SLURM_JOB_ID % 10000))
srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_id="$SLURM_JOB_ID" \\
    --rdzv_backend=c10d --rdzv_endpoint="$head:$port" train.py
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 10000))
srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_id="$SLURM_JOB_ID" \\
    --rdzv_backend=c10d --rdzv_endpoint="$head:$port" train.py
```

## References

- scontrol(1), show hostnames
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR
from slurmgen.lint.facts.endpoints import HOST, endpoints
from slurmgen.lint.facts.spread import has_nodes
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs import walk
from slurmgen.reading.shell.words import COMMAND, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call, Program, Value
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Piece, Word

NAME = "nodelist-unexpanded"
CODE = "SG405"
SEVERITY = ERROR

_LISTS = ("SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST")
_MENTIONS = re.compile(r"\$\{?(" + "|".join(_LISTS) + r")\b")
# What knows the grammar, or takes it apart by its brackets.
_EXPANDS = re.compile(r"scontrol|hostlist|nodeset|cluset|python|perl|\bsrun\b|expand|hostname|\[")
_PLAIN = frozenset({"env", "constant", "item", "method", "format", "tuple"})
_HOST_OPTIONS = frozenset({"host", "hosts", "H"})


def check(job: Job) -> Iterator[Finding]:
    if not has_nodes(job):
        return
    found = [*_addresses(job), *_loops(job), *_of_programs(job)]
    if not found:
        return
    (first, text), *others = dict(found).items()
    yield Finding(
        first,
        f"{text} is a node list in brackets, such as n[1-2], and no host name",
        "cut at a comma or used as it is, it names no host: nothing connects",
        'expand it: scontrol show hostnames "$SLURM_JOB_NODELIST" prints one name a line',
        also=tuple(place for place, _ in others),
    )


def _addresses(job: Job) -> Iterator[tuple[Place, str]]:
    for endpoint in endpoints(job):
        if endpoint.kind == HOST and endpoint.word is not None:
            piece = _raw(endpoint.word)
            if piece is not None:
                yield job.place_of(piece), piece.text
    for launch in job.launches:
        for word in _hosts(launch):
            piece = _raw(word)
            if piece is not None:
                yield job.place_of(piece), piece.text


def _hosts(launch: Launch) -> Iterator[Word]:
    """Where other programs are told on which hosts to run."""
    for starter in (launch.launcher, launch.mpirun):
        if starter is not None:
            yield from (starter.options[n] for n in _HOST_OPTIONS if n in starter.options)
    if launch.program in ("ssh", "scp") and len(launch.words) > 1:
        yield launch.words[1]


def _raw(word: Word) -> Piece | None:
    """The node list in a word that nothing has expanded."""
    for piece in word.expansions():
        if piece.kind == VARIABLE:
            if piece.name in _LISTS and "[" not in piece.operator:
                return piece
            inner = _raw(piece.value) if piece.value is not None else None
            if inner is not None:
                return inner
        elif piece.kind == COMMAND and _MENTIONS.search(piece.text):
            if not _EXPANDS.search(piece.text):
                return piece
    return None


def _loops(job: Job) -> Iterator[tuple[Place, str]]:
    """`for n in ${SLURM_NODELIST//,/ }`, and `read -a` of the list."""
    for match in _LOOP.finditer(job.text) if job.script.is_shell else ():
        group = "list" if match["list"] else "read"
        if not _EXPANDS.search(match[group]):
            yield job.place(*match.span(group)), match[group].strip()
    seen: set[int] = set()
    for assignment in job.script.shell.assignments:
        for word in assignment.words or ():
            # `A+=(x)` has the words of all that was there before.
            if id(word) in seen:
                continue
            seen.add(id(word))
            piece = _raw(word)
            if piece is not None:
                yield job.place_of(piece), piece.text


_LOOP = re.compile(
    r"^[ \t]*(?:for[ \t]+\w+[ \t]+in[ \t]+(?P<list>[^\n;#]*\$\{?SLURM_(?:\w+_)?NODELIST[^\n;#]*)|"
    r"IFS=[^\n#]*\bread\b[^\n#]*<<<[ \t]*(?P<read>[^\n;#]*SLURM_(?:\w+_)?NODELIST[^\n;#]*))",
    re.MULTILINE,
)


def _of_programs(job: Job) -> Iterator[tuple[Place, str]]:
    for program in job.programs:
        for call in program.methods("split"):
            if _splits_list(program, call):
                yield call.place, _name(call.receiver)
    for endpoint in endpoints(job):
        value = endpoint.value
        if endpoint.kind == HOST and value is not None:
            listed = [part.name for part in walk(value) if part.name in _LISTS]
            # No function takes the list apart, and nobody looks for its brackets.
            plain = all(part.kind in _PLAIN and part.literal != "[" for part in walk(value))
            if listed and plain:
                yield endpoint.place, listed[0]


def _splits_list(program: Program, call: Call) -> bool:
    if call.receiver is None or call.text(0, "sep") != ",":
        return False
    if not _name(call.receiver):
        return False
    # A test for the bracket says that somebody has thought of it.
    tests = [condition.test for condition in call.conditions]
    return not any(part.literal == "[" for test in tests for part in walk(test))


def _name(value: Value | None) -> str:
    """The list that a value is, be it stripped."""
    while value is not None and value.kind == "method" and value.name == "strip":
        value = value.parts[0]
    is_list = value is not None and value.kind == "env" and value.name in _LISTS
    return value.name if is_list and value is not None else ""
