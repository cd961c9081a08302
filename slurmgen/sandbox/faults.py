"""Faults: what befalls a cluster and its jobs, done to a sandbox that is up.

A link that is cut, a node that loses power, a slurmd that dies while its steps live on, and
the way back from each; a job that has to make room. They happen for real: Slurm and the jobs
find out in their own time.
"""

from __future__ import annotations

import os
import re
import time
from difflib import get_close_matches
from typing import TYPE_CHECKING

from slurmgen.errors import UnavailableError, UsageError
from slurmgen.sandbox import deadlines, network
from slurmgen.sandbox.configuration import CONTROLLER
from slurmgen.sandbox.deadlines import Deadline
from slurmgen.sandbox.network import Cuts, Namespaces
from slurmgen.sandbox.processes import end, find_processes, node_processes
from slurmgen.sandbox.programs import find_network_tools, find_programs
from slurmgen.sandbox.shape import PREEMPTOR
from slurmgen.sandbox.startup import start_node

if TYPE_CHECKING:
    from slurmgen.sandbox.network import Network
    from slurmgen.sandbox.processes import Process
    from slurmgen.sandbox.sandbox import Sandbox

_POLL_SECONDS = 0.05


def cut(sandbox: Sandbox, one: str, other: str | None = None) -> bool:
    """Cut the link of a member, or what passes between two; false where it was cut before.

    Members are the nodes and `ctl`, the controller. Packets vanish: whoever waits for one
    waits on. `UsageError` for a name that isn't one, or a sandbox without networks.
    """
    where = _network_of(sandbox)
    rules = _rules(sandbox, where, one, other)
    return _cuts(sandbox).change(add=rules)


def mend(sandbox: Sandbox, one: str, other: str | None = None) -> bool:
    """Undo `cut()`; false where nothing was cut. Of one member: every cut that it is part of.

    A node without power stays out of reach until `revive()`.
    """
    where = _network_of(sandbox)
    rules = _rules(sandbox, where, one, other)
    cuts = _cuts(sandbox)
    if other is None:
        rules += network.pairs_of(_address(sandbox, where, one), cuts.all())
    return cuts.change(remove=rules)


def kill(sandbox: Sandbox, node: str, *, slurmd_only: bool = False) -> None:
    """End all that runs on a node, as if its power had failed.

    Where it has a network of its own, its link goes first, so that no peer hears of it.
    slurmd_only: its steps live on, and so does the link.

    `UsageError` for a name that isn't a node's, or a node where nothing runs.
    """
    number = _node_number(sandbox, node)
    with sandbox.folder.locked():
        running = _processes(sandbox, node, slurmd_only=slurmd_only)
        if not running:
            what = "slurmd" if slurmd_only else "process"
            raise UsageError(
                f"node {node} has no {what} to kill", fix=f"slurmgen sandbox revive {node}"
            )
        if sandbox.reach.network and not slurmd_only:
            address = sandbox.reach.network.node(number)
            _cuts(sandbox).change(add=network.power(node, address))
        end(lambda: _processes(sandbox, node, slurmd_only=slurmd_only))


def revive(sandbox: Sandbox, node: str) -> None:
    """Start a node again whose slurmd is gone, and return once the controller knows.

    `UsageError` for a name that isn't a node's, or one that runs; `UnavailableError` where the
    controller doesn't take it back within a minute.
    """
    number = _node_number(sandbox, node)
    with sandbox.folder.locked():
        if _processes(sandbox, node, slurmd_only=True):
            raise UsageError(f"the slurmd of node {node} runs", fix=f"slurmgen sandbox kill {node}")
        if sandbox.reach.network:
            address = sandbox.reach.network.node(number)
            _cuts(sandbox).change(remove=network.power(node, address))
        before, _ = _slurmd_start(sandbox, node)
        # Slurm tells starts apart by the second.
        while time.strftime("%Y-%m-%dT%H:%M:%S") == before:
            time.sleep(_POLL_SECONDS)
        start_node(sandbox.folder, find_programs(sandbox.unpacked), number, sandbox.reach)
        deadline = Deadline(deadlines.FAULT, f"the controller to take {node} back")
        while True:
            started, state = _slurmd_start(sandbox, node)
            if started != before and "DOWN" not in state and "*" not in state:
                return
            if deadline.passed:
                raise UnavailableError(
                    f"node {node} runs, but the controller has it as {state}",
                    fix=f"slurmgen sandbox mend {node}; or look at {sandbox.folder.log / node}.log",
                )
            deadline.pause(_POLL_SECONDS)


def preempt(sandbox: Sandbox, job: str) -> int:
    """Have Slurm preempt a running job; the grace time (seconds) that it was given.

    A job of a higher partition asks for just its nodes, and gives them back at once. Returns
    when the job has been told.

    `UsageError` where it can't be: a sandbox without preemption, no such job that runs, or one
    that shares its nodes, where Slurm would choose among the jobs. `UnavailableError` where
    Slurm does not preempt it within a minute.
    """
    grace = sandbox.shape.grace_seconds
    if grace is None:
        raise UsageError(
            f"sandbox {sandbox.name!r} has no partition whose jobs preempt others",
            fix="start it with one: slurmgen sandbox up --grace SECONDS",
        )
    nodes = _nodes_alone(sandbox, job)
    before = _job(sandbox, job)
    request = ["--exclusive", "--mem=0", f"--nodes={before['NumNodes']}", f"--nodelist={nodes}"]
    about = ["--job-name=preempt", "--output=/dev/null", "--chdir=/", "--wrap=true"]
    submitted = sandbox.run(["sbatch", "--parsable", f"--partition={PREEMPTOR}", *request, *about])
    if submitted.returncode:
        raise UnavailableError(
            f"sbatch refused the job that preempts {job}: {submitted.stderr.strip()}",
            fix=f"look at {sandbox.folder.controller_log}",
        )
    deadline = Deadline(deadlines.FAULT, f"Slurm to preempt job {job}")
    while True:
        now = _job(sandbox, job)
        told = now.get("PreemptTime", "None") not in {"None", before.get("PreemptTime", "None")}
        if told or now.get("JobState") != "RUNNING":
            return grace
        if deadline.passed:
            sandbox.run(["scancel", submitted.stdout.strip()])
            raise UnavailableError(
                f"Slurm did not preempt job {job} within {deadlines.FAULT:.0f} s",
                fix=f"look at {sandbox.folder.controller_log}",
            )
        deadline.pause(_POLL_SECONDS)


def _nodes_alone(sandbox: Sandbox, job: str) -> str:
    """The nodes of a job that runs, and that runs alone there."""
    running = _running(sandbox, "--format=%i\t%A\t%N")
    rows = [line.split("\t") for line in running]
    found = [row for row in rows if job in row[:2]]
    if not found:
        names = ", ".join(row[0] for row in rows) or "none"
        raise UsageError(
            f"no job {job!r} runs in sandbox {sandbox.name!r}", fix=f"those that run: {names}"
        )
    name, _, nodes = found[0]
    others = set(_running(sandbox, f"--nodelist={nodes}", "--format=%i")) - {name}
    if others:
        raise UsageError(
            f"job {job} shares {nodes} with {', '.join(sorted(others))}: "
            "Slurm would choose among them",
            fix="run it alone there (sbatch --exclusive), or cancel the others",
        )
    return nodes


def _running(sandbox: Sandbox, *options: str) -> list[str]:
    words = ["squeue", "--noheader", "--all", "--states=RUNNING", *options]
    return sandbox.run(words).stdout.splitlines()


def _job(sandbox: Sandbox, job: str) -> dict[str, str]:
    shown = sandbox.run(["scontrol", "--oneliner", "show", "job", job]).stdout
    return dict(word.split("=", 1) for word in shown.split() if "=" in word)


def _network_of(sandbox: Sandbox) -> Network:
    if sandbox.reach.network is None:
        raise UsageError(
            f"the nodes of sandbox {sandbox.name!r} have no links to cut: they share loopback",
            fix="start it with networks: slurmgen sandbox up --netns (as root)",
        )
    return sandbox.reach.network


def _cuts(sandbox: Sandbox) -> Cuts:
    tools = find_network_tools()
    return Cuts(Namespaces(sandbox.folder), ip=tools.ip, nsenter=tools.nsenter)


def _rules(sandbox: Sandbox, where: Network, one: str, other: str | None) -> list[str]:
    address = _address(sandbox, where, one)
    if other is None:
        return network.link(one, address)
    if other == one:
        raise UsageError(f"{one} and {other} are the same", fix="name two nodes, or one")
    return network.pair(address, _address(sandbox, where, other))


def _address(sandbox: Sandbox, where: Network, member: str) -> str:
    if member == CONTROLLER:
        return where.controller
    return where.node(_node_number(sandbox, member, others=(CONTROLLER,)))


def _node_number(sandbox: Sandbox, name: str, *, others: tuple[str, ...] = ()) -> int:
    count = sandbox.shape.node_count
    match = re.fullmatch(r"n([1-9][0-9]*)", name)
    if match is not None and int(match[1]) <= count:
        return int(match[1])
    names = [f"n{i}" for i in range(1, count + 1)]
    close = get_close_matches(name.lower(), [*names, *others], n=1, cutoff=0.4)
    known = f"n1 to n{count}" if count > 1 else "n1"
    raise UsageError(
        f"sandbox {sandbox.name!r} has no node {name!r}",
        fix=(f"did you mean {close[0]}? " if close else "")
        + f"There is {' and '.join([known, *others])}",
    )


def _processes(sandbox: Sandbox, node: str, *, slurmd_only: bool) -> list[Process]:
    folder = sandbox.folder.path
    if slurmd_only:
        return [process for process in find_processes(folder) if process.node == node]
    if sandbox.reach.network:
        own = os.readlink(Namespaces(sandbox.folder).node(int(node[1:])))
        return node_processes(folder, node, kind="net", known=own)
    if sandbox.reach.named:
        return node_processes(folder, node, kind="uts")
    raise UnavailableError(
        "this machine allows no namespaces, so nothing tells which node a process is on",
        fix="run as root or allow user namespaces, or kill with --slurmd-only",
    )


def _slurmd_start(sandbox: Sandbox, node: str) -> tuple[str, str]:
    """When the node's slurmd started, as the controller has it, and the node's state."""
    shown = sandbox.run(["scontrol", "--oneliner", "show", "node", node]).stdout
    fields = dict(word.split("=", 1) for word in shown.split() if "=" in word)
    return fields.get("SlurmdStartTime", ""), fields.get("State", "unknown")
