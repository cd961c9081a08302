"""`slurmgen sandbox`: up, down, status, exec, and what can befall a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from slurmgen.cli import report
from slurmgen.errors import EXIT_OK, UsageError
from slurmgen.sandbox import DEFAULT_NAME, Sandbox, Shape, faults, release, remove, statuses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.sandbox.like import Like

_SHAPE = Shape()
# Enough for the two or four nodes of most jobs.
_OF_EACH_KIND = 4


def up(
    *,
    name: str = DEFAULT_NAME,
    directory: Path | None = None,
    like: str | None = None,
    nodes: int | None = None,
    gpus_per_node: int = _SHAPE.gpus_per_node,
    gpu_type: str = _SHAPE.gpu_type,
    cpus_per_node: int = _SHAPE.cpus_per_node,
    memory_mb: int = _SHAPE.memory_mb,
    partitions: Sequence[str] = (),
    extra_conf: Sequence[str] = _SHAPE.extra_conf,
    grace_seconds: int | None = None,
    netns: bool = False,
    accounting: bool = False,
    slurm: str = "",
) -> int:
    """Start a sandbox; print the line that makes a shell use it.

    like: the cluster profile after which it is made; nodes are then the most of each kind.
    slurm: the version; by default this machine's own.
    """
    given: dict[str, Any] = {
        "gpus_per_node": gpus_per_node,
        "gpu_type": gpu_type,
        "cpus_per_node": cpus_per_node,
        "memory_mb": memory_mb,
        "partitions": tuple(partitions) or _SHAPE.partitions,
        "grace_seconds": grace_seconds,
    }
    if like is None:
        shape = Shape(
            nodes=_SHAPE.nodes if nodes is None else nodes, extra_conf=tuple(extra_conf), **given
        )
        return _start(shape, name, directory, netns=netns, accounting=accounting, slurm=slurm)
    other = [key for key, value in given.items() if value != getattr(_SHAPE, key)]
    if other:
        options = " ".join(f"--{key.split('_')[0].removesuffix('s')}" for key in other)
        raise UsageError(
            f"--like says what nodes and partitions are, and so does {options}",
            fix="leave one of them out; --nodes is how many of each kind there are at most",
        )
    shape, told = _like(like, _OF_EACH_KIND if nodes is None else nodes, accounting=accounting)
    status = _start(shape, name, directory, netns=netns, accounting=accounting, slurm=slurm)
    for line in told:
        report.note(f"slurmgen: {line}")
    return status


def _like(cluster: str, nodes: int, *, accounting: bool) -> Like:
    from slurmgen.cluster.load import find_profile, read_profile
    from slurmgen.jobfile.project import project_root
    from slurmgen.sandbox.like import shape_like

    profile = read_profile(find_profile(cluster, project_root(Path("job.yaml"))))
    return shape_like(profile, nodes, accounting=accounting)


def _start(
    shape: Shape,
    name: str,
    directory: Path | None,
    *,
    netns: bool,
    accounting: bool,
    slurm: str,
) -> int:
    sandbox = Sandbox.up(
        name=name,
        shape=shape,
        directory=directory,
        netns=netns,
        accounting=accounting,
        slurm=slurm,
    )
    report.note(
        f"slurmgen: sandbox {name!r} is up: Slurm {sandbox.version}, "
        + ", ".join(f"{group.nodes} x {group.gres or 'no GPU'}" for group in shape.node_groups)
    )
    if sandbox.reach.network is not None:
        report.note(
            f"slurmgen: each node has a network of its own, in {sandbox.reach.network.block}, "
            "from which only this machine and the other nodes are reached"
        )
    elif not sandbox.loopback_only:
        report.note(
            "slurmgen: its ports are open on every interface of this machine: binding them to "
            "loopback takes root or user namespaces (munge still lets nobody else in)"
        )
    if not release.is_shown(sandbox.unpacked):
        report.note(
            "slurmgen: this shell's own commands are of another version: "
            "slurmgen sandbox exec runs those of this one (exec bash: a shell)"
        )
    report.out(f"export SLURM_CONF={sandbox.slurm_conf}\n")
    return EXIT_OK


def down(*, name: str = DEFAULT_NAME, directory: Path | None = None) -> int:
    """Stop a sandbox and delete its folder; nothing to stop is fine."""
    existed = remove(name, directory=directory)
    report.note(
        f"slurmgen: sandbox {name!r} is down"
        if existed
        else f"slurmgen: there was no sandbox {name!r}"
    )
    return EXIT_OK


def status(*, directory: Path | None = None) -> int:
    """Print a line for each sandbox: name, Slurm version, nodes, state, SLURM_CONF."""
    for one in statuses(directory=directory):
        cells = (one.name, one.version or "-", str(one.nodes), one.state, str(one.slurm_conf))
        report.out("\t".join(cells) + "\n")
    return EXIT_OK


def cut(
    one: str, other: str | None, *, name: str = DEFAULT_NAME, directory: Path | None = None
) -> int:
    """Cut a node's link, or what passes between two."""
    changed = faults.cut(Sandbox.find(name, directory=directory), one, other)
    what = f"{one} and {other} are cut off from each other" if other else f"{one} is cut off"
    report.note(f"slurmgen: {what}{'' if changed else ' already'}")
    return EXIT_OK


def mend(
    one: str, other: str | None, *, name: str = DEFAULT_NAME, directory: Path | None = None
) -> int:
    """Undo what `cut` did."""
    changed = faults.mend(Sandbox.find(name, directory=directory), one, other)
    what = f"between {one} and {other}" if other else f"of {one}"
    report.note(
        f"slurmgen: the link {what} is mended" if changed else f"slurmgen: no link {what} was cut"
    )
    return EXIT_OK


def kill(
    node: str,
    *,
    slurmd_only: bool = False,
    name: str = DEFAULT_NAME,
    directory: Path | None = None,
) -> int:
    """End all that runs on a node."""
    faults.kill(Sandbox.find(name, directory=directory), node, slurmd_only=slurmd_only)
    what = f"the slurmd of {node}" if slurmd_only else f"all that ran on {node}"
    report.note(f"slurmgen: {what} is killed")
    return EXIT_OK


def revive(node: str, *, name: str = DEFAULT_NAME, directory: Path | None = None) -> int:
    """Start the slurmd of a node that was killed."""
    faults.revive(Sandbox.find(name, directory=directory), node)
    report.note(f"slurmgen: {node} is back")
    return EXIT_OK


def preempt(job: str, *, name: str = DEFAULT_NAME, directory: Path | None = None) -> int:
    """Have Slurm preempt a job."""
    grace = faults.preempt(Sandbox.find(name, directory=directory), job)
    report.note(f"slurmgen: job {job} is preempted, and has {grace} s")
    return EXIT_OK


def execute(argv: Sequence[str], *, name: str = DEFAULT_NAME, directory: Path | None = None) -> int:
    """Run a command against a sandbox that is up, and end with its status."""
    if not argv:
        raise UsageError("no command to run", fix="name one: slurmgen sandbox exec sinfo")
    status = Sandbox.find(name, directory=directory).execute(argv)
    if status in {126, 127}:
        report.note(f"slurmgen: {argv[0]} ended with status {status}")
    return status
