"""Whether the ranks of a group can meet: numbers, world size, address and port. Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import TYPE_CHECKING

from slurmgen.rehearsal.fault import Fault, counted, listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.rehearsal.groups import Group, Rank


def check(group: Group) -> Iterator[Fault]:
    """What keeps the ranks of `group` from meeting."""
    told = [rank for rank in group.ranks if rank.told]
    if told:
        yield from _numbers(group, told)
    if len(group.ranks) > 1:
        yield from _address(group)
        yield from _port(group)


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
        yield Fault(
            "address-wrong",
            f"MASTER_ADDR is {address!r}, which is no address",
            "`hostname -I` prints every address of the machine, with blanks between them",
            'write $(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        )
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
