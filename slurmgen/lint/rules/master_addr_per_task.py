"""Each task takes its own node for the master address.

## What it does

Finds a master address that is computed inside the tasks of a step on several nodes and comes
out differently on each: `$(hostname)`, `$SLURMD_NODENAME` or `$HOSTNAME` in `srun bash -c '…'`,
`socket.gethostname()` in a Python program.

## Why is this bad

Rank 0 listens on the first node, and the ranks of every other node wait for a rank 0 on their
own. In the batch shell the same words are right: it runs on the first node, once. HOSTNAME is a
case of its own: srun hands on the batch shell's (seen on 22.05.8), but a login shell, a
container or a step started from elsewhere has another.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    MASTER_ADDR=$(hostname) exec python train.py'
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(hostname)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python train.py'
```

## References

- https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.endpoints import HOST, endpoints, is_sure, own_host, places
from slurmgen.lint.facts.spread import spans_nodes
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs import alternatives
from slurmgen.reading.programs.roles import names_rank
from slurmgen.reading.shell.words import TASK, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.endpoints import Endpoint
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.words import Word

NAME = "master-addr-per-task"
CODE = "SG403"
SEVERITY = ERROR
HIDES = ("head-ip-lookup",)

_COMMANDS = re.compile(
    r"\b(hostname|uname\s+-n|hostid|ifconfig|ip\s+(-\w+\s+)*(a|addr|address|r|route)\b)"
)
_ALIKE = re.compile(r"scontrol|NODELIST|\bsrun\b|hostlist|nodeset")


def check(job: Job) -> Iterator[Finding]:
    found = [
        endpoint
        for endpoint in endpoints(job)
        if endpoint.kind == HOST
        and _own(endpoint)
        and spans_nodes(job, endpoint.launch)
        and is_sure(job, endpoint)
    ]
    if not found:
        return
    first, *others = places(found)
    text = _own(found[0])
    inherited = all(_own(endpoint) in ("$HOSTNAME", "${HOSTNAME}") for endpoint in found)
    yield Finding(
        first,
        f"every task computes its own master address: {text}",
        "where it is set anew (a login shell, a container), each node is its own master, and waits "
        "for the others"
        if inherited
        else "each node takes itself for the master: the ranks of all nodes but the first wait for "
        "a rank 0 that isn't there",
        "compute it once, in the batch shell above srun, and export it",
        WARNING if inherited else None,
        tuple(others),
    )


def _own(endpoint: Endpoint) -> str:
    """What of the address differs between nodes; empty: nothing does."""
    if endpoint.word is not None:
        return _own_word(endpoint.word)
    assert endpoint.value is not None
    assert endpoint.run is not None
    if any(names_rank(condition.test) for condition in endpoint.conditions):
        return ""
    for value in alternatives(endpoint.value, endpoint.run.present):
        if own_host(value):
            return value.name if value.kind in ("call", "env") else "the name of its own node"
    return ""


def _own_word(word: Word) -> str:
    for piece in word.expansions(TASK):
        if piece.kind == VARIABLE:
            if piece.name in ("SLURMD_NODENAME", "HOSTNAME", "HOST"):
                return piece.text
            if piece.value is not None and _own_word(piece.value):
                return _own_word(piece.value)
        elif _COMMANDS.search(piece.text) and not _ALIKE.search(piece.text):
            return piece.text
    return ""
