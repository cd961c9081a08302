"""Addresses: a block of loopback addresses and ports that no other sandbox uses.

Linux answers on the whole of 127.0.0.0/8, so each sandbox takes a 127.X.0.0/16 of its
own: the controller is 127.X.0.1 and node i a 127.X.1.1 and up. Two sandboxes can then run
jobs that listen on the same port of "their" n1.
"""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from slurmgen.errors import UnavailableError
from slurmgen.sandbox import deadlines
from slurmgen.sandbox.deadlines import Deadline
from slurmgen.sandbox.shape import MAX_NODES

if TYPE_CHECKING:
    from collections.abc import Iterator

_PER_OCTET = 250
_BLOCKS = range(16, 250)
# The controller's, the nodes' and that of slurmdbd.
_PORTS_PER_BLOCK = MAX_NODES + 2
_FIRST_PORT = 17_000
# Job ids between the first ones of two sandboxes. The jobs' ports (12000 and up) stay below
# those of the daemons.
_JOB_IDS = 20


class Layout(Protocol):
    """Where the daemons of a sandbox listen; nodes count from 1."""

    @property
    def controller(self) -> str: ...

    @property
    def controller_port(self) -> int: ...

    def node(self, number: int) -> str: ...

    def node_port(self, number: int) -> int: ...

    @property
    def accounting_port(self) -> int: ...

    @property
    def first_job_id(self) -> int: ...


class Addresses(NamedTuple):
    """127.`block`.0.0/16, and ports from `port` on: the controller's, the nodes', slurmdbd's."""

    block: int
    port: int

    @property
    def controller(self) -> str:
        return f"127.{self.block}.0.1"

    @property
    def controller_port(self) -> int:
        return self.port

    def node(self, number: int) -> str:
        """The address of node `number`, counting from 1."""
        octet, rest = divmod(number - 1, _PER_OCTET)
        return f"127.{self.block}.{octet + 1}.{rest + 1}"

    def node_port(self, number: int) -> int:
        return self.port + number

    @property
    def accounting_port(self) -> int:
        return self.port + MAX_NODES + 1

    @property
    def first_job_id(self) -> int:
        # A job's port follows from its id, and torch listens on it on every address: jobs of
        # two sandboxes must not have the same ids.
        return 1 + _JOB_IDS * self.block


@contextlib.contextmanager
def claimed_addresses(nodes: int, *, loopback_only: bool) -> Iterator[Addresses]:
    """Addresses with nothing on them, kept from other sandboxes inside the `with`.

    Leave it only when every daemon listens: from then on its port speaks for itself.
    Without `loopback_only` the daemons listen on every address, so ports must be free
    on all of them.
    """
    deadline = Deadline(deadlines.ADDRESSES, "free ports")
    while True:
        candidate = Addresses(random.choice(_BLOCKS), random.choice(_port_blocks()))
        with contextlib.ExitStack() as claims:
            if (
                claim(claims, f"block/{candidate.block}")
                and claim(claims, f"port/{candidate.port}")
                and _all_free(candidate, nodes, loopback_only=loopback_only)
            ):
                yield candidate
                return
        if deadline.passed:
            raise UnavailableError(
                f"no {nodes + 1} free ports for a sandbox below {_ephemeral_floor()}",
                fix="stop a sandbox: slurmgen sandbox status, slurmgen sandbox down",
            )


def _port_blocks() -> range:
    """Where each block of ports starts, clear of those the kernel hands out by itself."""
    below = range(_FIRST_PORT, _ephemeral_floor() - _PORTS_PER_BLOCK, _PORTS_PER_BLOCK)
    return below or range(_FIRST_PORT, 60_000, _PORTS_PER_BLOCK)


def _ephemeral_floor() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768


def claim(claims: contextlib.ExitStack, name: str) -> bool:
    """Keep `name` from other sandboxes until `claims` are left; false where one has it."""
    # Abstract sockets live in the network namespace, as ports do; they are atomic across
    # users and vanish with the process that holds them.
    held = claims.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    try:
        held.bind(f"\0slurmgen-sandbox/{name}")
    except OSError:
        return False
    return True


def _all_free(addresses: Addresses, nodes: int, *, loopback_only: bool) -> bool:
    listeners = [(addresses.controller, addresses.port)]
    # slurmdbd listens on every address, whatever it is told.
    listeners += [("", addresses.accounting_port)]
    listeners += [(addresses.node(i), addresses.node_port(i)) for i in range(1, nodes + 1)]
    return all(_is_free(host if loopback_only else "", port) for host, port in listeners)


def _is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As Slurm does: a port in TIME_WAIT is free, one that is listened on is not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
