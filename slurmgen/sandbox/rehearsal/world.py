"""Whether the ranks of a group can meet: numbers, world size, address and port. Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.sandbox.rehearsal.fault import Fault, counted, listing
from slurmgen.sandbox.rehearsal.shells import several_addresses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slurmgen.sandbox.rehearsal.groups import Group, Rank


def check(group: Group) -> Iterator[Fault]:
    """What keeps the ranks of `group` from meeting."""
    told = [rank for rank in group.ranks if rank.told]
    if told:
        yield from _numbers(group, told)
    if len(group.ranks) > 1:
        yield from _address(group)
        yield from _port(group)
        yield from _interface(group)


def _numbers(group: Group, told: list[Rank]) -> Iterator[Fault]:
    count = len(group.ranks)
    if len(told) < count:
        yield Fault(
            "rank-missing",
            f"RANK is set in {len(told)} of {count} processes",
            "the others take themselves for a training of their own",
            "set it in each task, from $SLURM_PROCID",
        )
        return
    for name in ("RANK", "WORLD_SIZE"):
        field = "rank" if name == "RANK" else "world"
        bad = [rank for rank in told if getattr(rank, field) is None]
        if bad:
            value = bad[0].program.env.get(name)
            what = f"{name} is not set" if value is None else f"{name} is {value!r}, not a number"
            yield Fault(
                "rank-missing",
                f"{what} in {counted(len(bad), 'process')}",
                "init_process_group() needs RANK and WORLD_SIZE of every process",
                "set it in each task: WORLD_SIZE from $SLURM_NTASKS, RANK from $SLURM_PROCID",
            )
            return
    repeated = {rank: times for rank, times in Counter(r.rank for r in told).items() if times > 1}
    if repeated:
        yield _repeated(told, repeated)
        return
    worlds = sorted({rank.world for rank in told if rank.world is not None})
    if len(worlds) > 1:
        yield Fault(
            "world-size-differs",
            f"the ranks do not agree on the world size: {listing(worlds)}",
            "they wait for different numbers of ranks, and never all meet",
            "set WORLD_SIZE once, from $SLURM_NTASKS",
        )
    elif worlds != [count]:
        more = worlds[0] > count
        yield Fault(
            "world-size-wrong",
            f"the world size is {worlds[0]}, but {counted(count, 'process')} were started",
            "each waits for ranks that never come, until the time limit"
            if more
            else "ranks beyond the world size fail, or meet as several trainings",
            "set WORLD_SIZE from $SLURM_NTASKS inside the task, or start as many tasks",
        )
    elif {rank.rank for rank in told} != set(range(count)):
        yield Fault(
            "rank-wrong",
            f"the ranks are {listing(sorted(r.rank for r in told if r.rank is not None))},"
            f" not 0 to {count - 1}",
            "a rank that nobody has is waited for until the time limit",
            "set RANK from $SLURM_PROCID inside the task",
        )


def _repeated(told: list[Rank], repeated: dict[int | None, int]) -> Fault:
    count = len(told)
    launches = {rank.program.launch for rank in told} - {""}
    per_node = Counter(node for node, _ in {(r.node, r.program.launch) for r in told})
    tasks = {rank.program.env.get("SLURM_PROCID") for rank in told}
    if launches and max(per_node.values()) > 1:
        most = max(per_node.values())
        return Fault(
            "double-launch",
            f"{most} launchers run on one node, and each starts all ranks of the node: "
            f"{count} processes in place of {count // most}",
            "a launcher is for one task per node; a task per GPU needs none",
            "srun --ntasks-per-node=1 with as many --ntasks as nodes, or drop the launcher",
        )
    if launches and all(rank.world == count // len(launches) for rank in told):
        return Fault(
            "world-split",
            f"{len(launches)} launchers start a training of {count // len(launches)} ranks each, "
            f"not one of {count}",
            "each launcher takes its node for the only one: the same training runs several times "
            "and overwrites its own files",
            "give it the number of nodes and a meeting point: --nnodes=$SLURM_NNODES "
            "--rdzv-backend=c10d --rdzv-endpoint=$first_node:$port",
        )
    if launches:
        nodes = sorted({str(rank.program.env.get("GROUP_RANK")) for rank in told})
        return Fault(
            "node-rank-same",
            f"{len(launches)} launchers all take themselves for node {listing(nodes)}",
            "the node's number was expanded in the batch shell, where it is 0, or is not given",
            "let the task expand it: srun bash -c '… --node-rank=$SLURM_NODEID …' in single quotes",
        )
    first = next(iter(repeated))
    early = len(tasks) == count and set(repeated) == {first}
    return Fault(
        "rank-twice",
        f"{repeated[first]} processes are rank {first}",
        "$SLURM_PROCID was expanded in the batch shell, where it is 0"
        if early and first == 0
        else "they collide, or wait for ranks that nobody is",
        "set it inside the task: srun bash -c 'RANK=$SLURM_PROCID … ' in single quotes",
    )


def _address(group: Group) -> Iterator[Fault]:
    given = {rank.program.env.get("MASTER_ADDR") for rank in group.ranks}
    if given == {None}:
        return
    if len(given) > 1:
        shown = listing(sorted(f"{address or 'none'}" for address in given))
        yield Fault(
            "address-differs",
            f"the ranks do not agree on MASTER_ADDR: {shown}",
            "each looks for rank 0 elsewhere, and waits there",
            "set it once in the batch shell, from the first name of the job's node list",
        )
        return
    address = next(iter(given)) or ""
    if not address or any(character.isspace() for character in address):
        yield several_addresses(address)
        return
    zero = next((rank.node for rank in group.ranks if rank.rank == 0), group.ranks[0].node)
    if is_local(address):
        if len(group.nodes) > 1:
            yield Fault(
                "address-local",
                f"MASTER_ADDR is {address}, but the ranks are on {listing(group.nodes)}",
                "on every other node that is the node itself, where nobody listens",
                'write $(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
            )
    elif address in _nodes_of_job(group) and address != zero:
        yield Fault(
            "address-not-rank-0",
            f"MASTER_ADDR is {address}, but rank 0 is on {zero}",
            "the ranks meet where rank 0 listens",
            "use the first name of the job's node list, and no --distribution that moves rank 0",
        )


def is_local(address: str) -> bool:
    """Whether every machine has that address."""
    try:
        return address == "localhost" or ipaddress.ip_address(address) in _OWN
    except ValueError:
        return False


# The sandbox's nodes are 127.X.1.1 and up; what a person writes is one of these.
_OWN = ipaddress.ip_network("127.0.0.0/16")


def _nodes_of_job(group: Group) -> set[str]:
    return {rank.node for rank in group.ranks}


def _port(group: Group) -> Iterator[Fault]:
    given = {rank.program.env.get("MASTER_PORT") for rank in group.ranks}
    if given == {None}:
        if all(rank.told and "MASTER_ADDR" in rank.program.env for rank in group.ranks):
            yield Fault(
                "port-missing",
                "the ranks have MASTER_ADDR, and no MASTER_PORT",
                "init_process_group() stops without it",
                "write export MASTER_PORT=$((12000 + SLURM_JOB_ID % 17000))",
            )
        return
    if len(given) > 1:
        yield Fault(
            "port-differs",
            f"the ranks have {len(given)} different MASTER_PORTs: "
            f"{listing(sorted(str(port) for port in given), 2)}",
            "each listens or calls at another port, and waits there",
            "compute it once, in the batch shell, from $SLURM_JOB_ID",
        )
        return
    port = next(iter(given)) or ""
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        yield Fault(
            "port-wrong",
            f"MASTER_PORT is {port!r}, which is no port",
            "ports go from 1 to 65535",
            "write $((12000 + SLURM_JOB_ID % 17000))",
        )
    elif int(port) in _GIVEN_OUT:
        yield Fault(
            "port-given-out",
            f"MASTER_PORT is {port}, one of those that Linux gives to any connection",
            "now and then it is taken when rank 0 comes to listen there",
            "write $((12000 + SLURM_JOB_ID % 17000))",
            severity=WARNING,
        )


def same_port(found: Iterable[Group]) -> Iterator[Fault]:
    """found: of several jobs, all of one script."""
    users: dict[str, set[str]] = {}
    for group in found:
        for rank in group.ranks:
            port = rank.program.env.get("MASTER_PORT", "")
            # A launcher's own one is no choice of the script's.
            if rank.told and not rank.program.launch and port.isdecimal():
                users.setdefault(port, set()).add(group.job)
    for port, jobs in users.items():
        if len(jobs) > 1:
            yield Fault(
                "port-fixed",
                f"MASTER_PORT is {port} in every job of this script",
                "two of them on one node: the second can't listen there, or joins the first",
                "write $((12000 + SLURM_JOB_ID % 17000))",
                severity=WARNING,
            )
            return


# net.ipv4.ip_local_port_range as Linux has it (ip(7)).
_GIVEN_OUT = range(32_768, 61_000)


def _interface(group: Group) -> Iterator[Fault]:
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        for value in {rank.program.env.get(name, "") for rank in group.ranks}:
            if _is_address(value):
                yield Fault(
                    "interface-wrong",
                    f"{name} is {value}, an address in place of an interface's name",
                    "no interface is called so, and the ranks find no network",
                    "write the name, such as ib0 or eth0, or leave it out",
                )
            elif value == "lo" and len(group.nodes) > 1:
                yield Fault(
                    "interface-local",
                    f"{name} is lo, but the ranks are on {listing(group.nodes)}",
                    "nothing of another node is reached through it",
                    "write an interface between the nodes, such as ib0, or leave it out",
                )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
