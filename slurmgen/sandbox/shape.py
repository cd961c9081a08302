"""Shape: what the pretend cluster looks like."""

from __future__ import annotations

import re
from dataclasses import dataclass

from slurmgen.errors import UsageError

# Node addresses and ports are laid out for this many; see addresses.py.
MAX_NODES = 1024

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

# What the sandbox itself lives on: another value would put a daemon on the network, into
# another user's hands or out of reach of `down`.
_OWN_SETTINGS = frozenset(
    {
        "authinfo",
        "authtype",
        "communicationparameters",
        "include",
        "slurmctldhost",
        "slurmctldlogfile",
        "slurmctldpidfile",
        "slurmctldport",
        "slurmdlogfile",
        "slurmdpidfile",
        "slurmdport",
        "slurmdspooldir",
        "slurmduser",
        "slurmuser",
        "statesavelocation",
        "taskprolog",
    }
)


@dataclass(frozen=True)
class Shape:
    """Nodes `n1` to `nN`, all alike. CPUs, memory and GPUs are pretended.

    The first partition is the default one; each holds every node. `extra_conf` lines end
    up at the end of slurm.conf, where they override the sandbox's own settings. A shape
    that Slurm couldn't start is a `UsageError` as early as it is built.
    """

    nodes: int = 2
    gpus_per_node: int = 4
    gpu_type: str = "a100"
    cpus_per_node: int = 64
    memory_mb: int = 262_144
    partitions: tuple[str, ...] = ("gpu",)
    extra_conf: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require_range("nodes", self.nodes, 1, MAX_NODES)
        _require_range("gpus per node", self.gpus_per_node, 0, 64)
        _require_range("CPUs per node", self.cpus_per_node, 1, 4096)
        _require_range("memory per node (MiB)", self.memory_mb, 1, 1 << 40)
        if self.gpu_type and not _WORD.fullmatch(self.gpu_type):
            raise UsageError(
                f"{self.gpu_type!r} is not a GPU type",
                fix='write one word of letters, digits, "_", "-" and ".", such as a100',
            )
        self._check_partitions()
        for line in self.extra_conf:
            _check_extra_line(line)

    @property
    def gres(self) -> str:
        """A node's GPUs as Slurm spells them (`gpu:a100:4`); empty where it has none."""
        if not self.gpus_per_node:
            return ""
        kind = f"gpu:{self.gpu_type}" if self.gpu_type else "gpu"
        return f"{kind}:{self.gpus_per_node}"

    def _check_partitions(self) -> None:
        if not self.partitions:
            raise UsageError("a sandbox needs a partition", fix="name one, such as gpu")
        for name in self.partitions:
            if not _WORD.fullmatch(name) or name.upper() in {"ALL", "DEFAULT"}:
                raise UsageError(
                    f"{name!r} is not a partition name",
                    fix="write one word, neither ALL nor DEFAULT (Slurm reserves them)",
                )
        if len(set(self.partitions)) != len(self.partitions):
            raise UsageError("a partition is named twice", fix="name each partition once")


def _require_range(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UsageError(
            f"{value} is out of range for {what}", fix=f"give a number from {low} to {high}"
        )


def _check_extra_line(line: str) -> None:
    if "\n" in line or "\r" in line:
        raise UsageError(
            f"{line!r} is more than one line of slurm.conf", fix="give each line separately"
        )
    key = re.split(r"[\s=]", line.strip(), maxsplit=1)[0].lower()
    if key in _OWN_SETTINGS:
        raise UsageError(
            f"{line.strip()!r} changes a setting that the sandbox depends on",
            fix="leave that line out",
        )
