"""Network: an address block for a sandbox's nodes, and the links that make a network of it.

With it each node has a network namespace of its own, with one link into a switch that routes
(see keeper.py). A node's neighbour is the switch alone, so a link that is cut swallows packets
without a word to either side, as a dead cable or a dropped route between two racks does. One
more link leads from the switch to this machine, so that its shells reach the controller and
the nodes reach an srun that runs here.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import random
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple

from slurmgen.errors import UnavailableError
from slurmgen.sandbox import deadlines, keeper
from slurmgen.sandbox.addresses import claim
from slurmgen.sandbox.processes import find_processes, is_keeper
from slurmgen.sandbox.programs import find_network_tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from slurmgen.sandbox.folder import Folder

# Those for test networks first, which nobody routes; then carriers' and private ones.
_RANGES = ("198.18.0.0/15", "100.64.0.0/10", "10.0.0.0/8")
# 2,048 addresses: room for MAX_NODES and the few below.
_PREFIX = 21
_SWITCH, _MACHINE, _CONTROLLER = 1, 2, 3
_FIRST_NODE = 11
# Slurm's own: nobody else listens in these namespaces.
_CONTROLLER_PORT, _NODE_PORT, _ACCOUNTING_PORT = 6817, 6818, 6819


class Network(NamedTuple):
    """A /21 that no route of this machine leads into; see `addresses.Layout`."""

    block: ipaddress.IPv4Network

    @classmethod
    def of(cls, block: str) -> Network:
        """The one whose block is written so."""
        return cls(ipaddress.IPv4Network(block))

    @property
    def switch(self) -> str:
        return str(self.block[_SWITCH])

    @property
    def machine(self) -> str:
        return str(self.block[_MACHINE])

    @property
    def controller(self) -> str:
        return str(self.block[_CONTROLLER])

    @property
    def controller_port(self) -> int:
        return _CONTROLLER_PORT

    def node(self, number: int) -> str:
        """The address of node `number`, counting from 1."""
        return str(self.block[_FIRST_NODE + number - 1])

    def node_port(self, number: int) -> int:  # noqa: ARG002
        return _NODE_PORT

    @property
    def accounting_port(self) -> int:
        return _ACCOUNTING_PORT

    @property
    def first_job_id(self) -> int:
        return 1


def require_networks() -> None:
    """Raise `UnavailableError` where this user can't have them, or a program is missing."""
    if os.geteuid() != 0:
        raise UnavailableError(
            "--netns gives every node a network of its own, which takes root",
            fix="run it with sudo, or leave out --netns: nodes then share loopback",
        )
    find_network_tools()


@contextlib.contextmanager
def claimed_network(ip: str) -> Iterator[Network]:
    """A block that is free, kept from other sandboxes inside the `with`.

    Leave it only when the network is up: from then on this machine's route speaks for itself.
    """
    taken = _routed(ip)
    for wide in _RANGES:
        blocks = list(ipaddress.IPv4Network(wide).subnets(new_prefix=_PREFIX))
        random.shuffle(blocks)
        for block in blocks:
            if any(block.overlaps(route) for route in taken):
                continue
            with contextlib.ExitStack() as claims:
                # Asked again: a sandbox may have got its route, and left its claim, since.
                if claim(claims, f"network/{block[0]}") and not any(
                    block.overlaps(route) for route in _routed(ip)
                ):
                    yield Network(block)
                    return
    raise UnavailableError(
        f"this machine has routes into each part of {', '.join(_RANGES)}",
        fix="leave out --netns",
    )


def _routed(ip: str) -> list[ipaddress.IPv4Network]:
    answer = _call([ip, "-json", "-4", "route", "show", "table", "all"])
    destinations = (route["dst"] for route in json.loads(answer or "[]"))
    return [
        ipaddress.IPv4Network(destination, strict=False)
        for destination in destinations
        if destination != "default"
    ]


def keeper_plan(network: Network, members: Sequence[tuple[str, str]], ip: str) -> dict[str, Any]:
    """What keeper.py reads. members: name and address of the controller, then of each node."""
    inside, switch = [], []
    for name, address in members:
        inside.append(
            [
                "link set lo up",
                f"link add eth0 type veth peer name {name} netns {{switch}}",
                f"addr add {address}/32 dev eth0",
                "link set eth0 up",
                f"route add {network.switch} dev eth0",
                f"route add default via {network.switch}",
            ]
        )
        switch += [f"link set {name} up", f"route add {address} dev {name}"]
    return {
        "ip": ip,
        "members": inside,
        "switch": [
            "link set lo up",
            f"addr add {network.switch}/32 dev lo",
            # Whatever lies outside refuses at once, as if it were the switch itself: a look-up of a
            # name must not take seconds. The nodes' routes, and before them cuts, come first.
            "route add local default dev lo table local",
            "rule add pref 100 lookup main",
            "rule add pref 200 lookup local",
            "rule del pref 0",
            *switch,
            "link add machine type veth peer name slurmgen{pid} netns {machine}",
            "link set machine up",
            f"route add {network.machine} dev machine",
        ],
        "machine": [
            f"addr add {network.machine} peer {network.switch} dev slurmgen{{pid}}",
            "link set slurmgen{pid} up",
            f"route add {network.block} via {network.switch}",
        ],
    }


class Namespaces:
    """The namespaces of a sandbox that is up, by way of its keeper.

    `UnavailableError` where there is no keeper (any more).
    """

    def __init__(self, folder: Folder) -> None:
        for process in find_processes(folder.path):
            if is_keeper(process):
                self._pid = process.pid
                return
        raise UnavailableError(
            "the sandbox has lost its network", fix="slurmgen sandbox down, then up again"
        )

    @property
    def switch(self) -> str:
        return f"/proc/{self._pid}/fd/{keeper.SWITCH}"

    @property
    def controller(self) -> str:
        return f"/proc/{self._pid}/fd/{keeper.SWITCH + 1}"

    def node(self, number: int) -> str:
        """The file of node `number`, counting from 1."""
        return f"/proc/{self._pid}/fd/{keeper.SWITCH + 1 + number}"


class Cuts:
    """Which packets the switch swallows: rules in it, so that nothing else has to know."""

    def __init__(self, namespaces: Namespaces, *, ip: str, nsenter: str) -> None:
        self._ip = [nsenter, f"--net={namespaces.switch}", ip]

    def all(self) -> set[str]:
        """Every rule that is there, as `link()`, `pair()` and `power()` write it."""
        rules = json.loads(_call([*self._ip, "-json", "-4", "rule", "show"]))
        return {_as_written(rule) for rule in rules if rule.get("action") == "blackhole"}

    def change(self, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> bool:
        """Add rules that aren't there yet, remove those that are; false where nothing changes."""
        present = self.all()
        lines = [f"rule add {rule}\n" for rule in add if rule not in present]
        lines += [f"rule del {rule}\n" for rule in remove if rule in present]
        if lines:
            _call([*self._ip, "-batch", "-"], "".join(lines))
        return bool(lines)


_LINK, _POWER, _PAIR = 10, 20, 30


def link(name: str, address: str) -> list[str]:
    """The rules by which nothing comes from a member, and nothing gets there."""
    return _both_ways(_LINK, name, address)


def power(name: str, address: str) -> list[str]:
    """The same, for a member that is off: mending its link doesn't bring it back."""
    return _both_ways(_POWER, name, address)


def pair(one: str, other: str) -> list[str]:
    """The rules by which nothing passes between two addresses."""
    return [f"pref {_PAIR} from {a} to {b} blackhole" for a, b in ((one, other), (other, one))]


def pairs_of(address: str, rules: Iterable[str]) -> list[str]:
    """Of `rules`, those of `pair()` that an address is part of."""
    return [rule for rule in rules if rule.startswith(f"pref {_PAIR} ") and address in rule.split()]


def _both_ways(preference: int, name: str, address: str) -> list[str]:
    return [
        f"pref {preference} from all iif {name} blackhole",
        f"pref {preference} from all to {address} blackhole",
    ]


def _as_written(rule: dict[str, Any]) -> str:
    words = [f"pref {rule['priority']} from {rule['src']}"]
    words += [f"to {rule['dst']}"] if "dst" in rule else []
    words += [f"iif {rule['iif']}"] if "iif" in rule else []
    return " ".join([*words, "blackhole"])


def _call(argv: Sequence[str], given: str = "") -> str:
    try:
        done = subprocess.run(
            argv,
            input=given,
            capture_output=True,
            text=True,
            timeout=deadlines.NETWORK,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{argv[0]}: {error}", fix="apt-get install iproute2") from error
    if done.returncode:
        raise UnavailableError(
            f"{' '.join(argv)}: {done.stderr.strip()}", fix="slurmgen sandbox down, then up again"
        )
    return done.stdout
