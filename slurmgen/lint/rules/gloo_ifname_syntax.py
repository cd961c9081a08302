"""The value of a network interface's variable is no interface name.

## What it does

Finds IP addresses in GLOO_SOCKET_IFNAME, TP_SOCKET_IFNAME and NCCL_SOCKET_IFNAME, and in the
first two also what only NCCL understands: `^docker0`, `=eth0`, and beginnings of names such as
`eth`.

## Why is this bad

gloo looks for an interface of exactly that name: "Unable to find address for: 10.0.0.5"
(torch 2.13). NCCL compares the beginning of each interface's name, and an address begins none:
"no socket interface found".

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export GLOO_SOCKET_IFNAME=^docker0,lo
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python train.py'
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export GLOO_SOCKET_IFNAME=ib0
srun bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python train.py'
```

## References

- https://docs.pytorch.org/docs/stable/distributed.html#choosing-the-network-interface-to-use
- https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-socket-ifname
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.interfaces import GLOO, NAMES
from slurmgen.lint.facts.settings import settings
from slurmgen.lint.finding import Finding
from slurmgen.reading.programs import walk
from slurmgen.reading.programs.processes import processes
from slurmgen.reading.shell.words import COMMAND, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.facts.settings import Setting
    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.words import Word

NAME = "gloo-ifname-syntax"
CODE = "SG417"
SEVERITY = ERROR

_ADDRESS = re.compile(
    r"=?\[?(\d{1,3}(\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:]+)\]?(/\d+)?(:\d+)?", re.IGNORECASE
)
_PREFIX = re.compile(r"eth|ib|en|eno|ens|enp|hsn|bond|mlx|wl|br")
# Commands that print an address or a host, and those that print an interface.
_PRINTS_ADDRESS = re.compile(r"\bhostname\b|\bgetent\b|\bnslookup\b|\bdig\b|\bscontrol\b|\bhost\s")
_PRINTS_NAME = re.compile(
    r"\bip\s|\bifconfig\b|/sys/class/net|\broute\b|\bibdev2netdev\b|\bnmcli\b"
)
_PYTHON_ADDRESS = re.compile(r"socket\.(gethostbyname|gethostname|getfqdn)|.*\bget_?(host_?)?ip\w*")


def check(job: Job) -> Iterator[Finding]:
    found = []
    for setting in settings(job):
        if setting.name in NAMES:
            fault = _fault(job, setting)
            if fault is not None:
                found.append((setting, fault))
    if not found:
        return
    setting, (what, sure) = found[0]
    library = "NCCL" if setting.name.startswith("NCCL") else "gloo"
    yield Finding(
        setting.place,
        f"{setting.name} is {what}",
        f"{library} looks for a network interface of that name, and finds none",
        "give the name of an interface, such as ib0 or eth0 (`ip link` lists them)",
        None if sure else WARNING,
        tuple(other.place for other, _ in found[1:]),
    )


def _fault(job: Job, setting: Setting) -> tuple[str, bool] | None:
    literal = setting.literal
    if literal is not None:
        return _of_text(setting.name, literal.strip())
    if setting.word is not None:
        return ("an address, not an interface", True) if _is_address(setting.word) else None
    assert setting.value is not None
    assert setting.run is not None
    printed = [p for p in processes(setting.run.program) if _PRINTS_ADDRESS.search(p.text)]
    for part in walk(setting.value):
        is_lookup = part.kind == "call" and _PYTHON_ADDRESS.fullmatch(part.name)
        if is_lookup or any(process.call.value == part for process in printed):
            return "an address, not an interface", True
    return None


def _of_text(name: str, text: str) -> tuple[str, bool] | None:
    if any(_ADDRESS.fullmatch(item.lstrip("^=")) for item in text.split(",")):
        return f"{text}, an address and no interface", True
    if name not in GLOO:
        # NCCL takes beginnings, but no patterns.
        return (f"{text}, and takes no wildcards", True) if "*" in text else None
    if text[:1] in ("^", "="):
        return f"{text}, which only NCCL understands", True
    if "*" in text:
        return f"{text}, and takes no wildcards", True
    if any(_PREFIX.fullmatch(item) for item in text.split(",")):
        return f"{text}, the beginning of a name, which only NCCL understands", False
    return None


def _is_address(word: Word) -> bool:
    for piece in word.expansions():
        if piece.kind == COMMAND:
            if _PRINTS_ADDRESS.search(piece.text) and not _PRINTS_NAME.search(piece.text):
                return True
        elif piece.kind == VARIABLE:
            if re.search(r"(MASTER|HEAD|HOST|NODE)_?(ADDR|IP|NAME)|NODELIST|NODENAME", piece.name):
                return True
            if piece.value is not None and _is_address(piece.value):
                return True
    return False
