"""The head node's address is looked up in a way that gives several, or none that serves.

## What it does

Finds `hostname -I`, `getent hosts`, `nslookup` and the like as a master address without one
field being picked, and lookups by an `srun` that several tasks answer.

## Why is this bad

`hostname -I` prints every address of the node, on one line: the endpoint is then
`10.0.0.1 192.168.1.1 fd00::2:29500`, to which nothing connects. A node of a cluster has several
nearly always: Ethernet, InfiniBand, the management network, IPv6. An `srun` without `-N1 -n1`
prints a line for each task.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
head=$(hostname -I)
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

- hostname(1), --all-ip-addresses
- scontrol(1), show hostnames
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.endpoints import HOST, endpoints
from slurmgen.lint.facts.settings import settings
from slurmgen.lint.facts.spread import has_tasks
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs import walk
from slurmgen.reading.programs.processes import processes
from slurmgen.reading.shell.words import COMMAND, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Piece, Word

NAME = "head-ip-lookup"
CODE = "SG404"
SEVERITY = WARNING

# Lookups that are looked at; nobody writes more.
_MOST = 50

_ALL = re.compile(r"-\w*I|--all-ip-addresses")
_VARIABLES = re.compile(
    r"(?i)(master|head|main|rdzv|leader|ray|dist)\w*(addr|ip|host|node)|ip_head"
)
# Whose output is more than one name or address.
_VERBOSE = frozenset({"getent", "nslookup", "host", "ifconfig", "ip"})
_LOOKUP = re.compile(r"\b(hostname|getent|nslookup|host|ifconfig|ip)\b")
_PICKERS = frozenset("awk gawk cut sed grep egrep perl python python3 tail jq".split())


def check(job: Job) -> Iterator[Finding]:
    found: dict[Place, tuple[str, str, bool]] = {}
    pieces = {piece.start: piece for word in _addresses(job) for piece in _commands(word)}
    for piece in islice(pieces.values(), _MOST):
        fault = _fault(job, piece)
        if fault is not None:
            found.setdefault(job.place_of(piece), fault)
    for place, fault in _of_programs(job):
        found.setdefault(place, fault)
    if not found:
        return
    (first, (text, why, sure)), *others = found.items()
    yield Finding(
        first,
        f"{text} gives more than one address",
        why,
        "take the first node's name, "
        '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1), or pick one address',
        ERROR if sure else None,
        tuple(place for place, _ in others),
    )


def _addresses(job: Job) -> Iterator[Word]:
    """The words that name a host at which others connect."""
    for endpoint in endpoints(job):
        if endpoint.kind == HOST and endpoint.word is not None:
            yield endpoint.word
    for setting in settings(job):
        if setting.word is not None and _VARIABLES.search(setting.name):
            yield setting.word
    for launch in job.launches:
        # Ray's, Dask's and vLLM's own.
        for before, word in zip(launch.words, launch.words[1:], strict=False):
            if before.text in (
                "--address",
                "--node-ip-address",
                "--host",
                "--head-node",
            ) or word.text.startswith(("--address=", "--node-ip-address=", "--host=")):
                yield word


def _commands(word: Word) -> Iterator[Piece]:
    for piece in word.expansions():
        if piece.kind == COMMAND:
            yield piece
        elif piece.kind == VARIABLE and piece.value is not None:
            # `${IP%% *}` picks the first.
            if not re.match(r"%%|#|\[|/", piece.operator):
                yield from _commands(piece.value)


def _fault(job: Job, piece: Piece) -> tuple[str, str, bool] | None:
    """What is wrong with the output of a `$(…)`, why, and whether it fails for sure."""
    if not _LOOKUP.search(piece.text):
        return None
    inside = [launch for launch in job.launches if piece.start < launch.inner.start < piece.end]
    for launch in inside:
        if _is_picked(launch, inside):
            continue
        name = launch.program
        words = [word.text for word in launch.words[1:]]
        step = launch.step
        asks_all = step is not None and piece.start < step.start and has_tasks(job, launch)
        if asks_all and name in ("hostname", "ip"):
            return (
                f"srun {name}",
                "srun starts all tasks of the job, and each prints its own line",
                True,
            )
        if name == "hostname" and any(_ALL.fullmatch(word) for word in words):
            return (
                "hostname -I",
                "it prints all addresses of the node on one line: the endpoint has blanks in it",
                False,
            )
        if name in _VERBOSE:
            return name, "it prints names and several fields, and the endpoint holds them all", True
    return None


def _is_picked(launch: Launch, inside: list[Launch]) -> bool:
    """Whether a command behind it in the pipeline takes one field."""
    if not launch.inner.context.piped and not launch.command.context.piped:
        return False
    behind = [other for other in inside if other.inner.start > launch.inner.start]
    if any(other.program in _PICKERS for other in behind):
        return True
    # Lines are picked by head; hostname -I prints one.
    is_line = launch.step is not None and launch.program == "hostname"
    splits = any(other.program == "tr" for other in behind)
    return (is_line or splits) and any(other.program == "head" for other in behind)


def _of_programs(job: Job) -> Iterator[tuple[Place, tuple[str, str, bool]]]:
    for program in job.programs:
        for process in processes(program):
            if not re.search(r"\bhostname\s+(-\w*I|--all-ip-addresses)\s*$", process.text):
                continue
            for endpoint in endpoints(job):
                value = endpoint.value
                if (
                    endpoint.kind == HOST
                    and value is not None
                    and process.call.value in walk(value)
                ):
                    if not any(part.kind == "item" for part in walk(value)):
                        yield (
                            endpoint.place,
                            ("hostname -I", "it prints all addresses of the node", False),
                        )
