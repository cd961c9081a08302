"""Where the supervisors of one run meet. No torch here."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurmgen.ddp.launch.identity import Identity
    from slurmgen.ddp.watch.secret import Token

COUNT = 16
"""How many ports are tried."""

# Below the kernel's ephemeral ports (32768 by default), where outgoing connections live.
_LOWEST, _HIGHEST = 12_000, 31_999
_BACKLOG = 4096
_NOT_HERE = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def candidates(token: Token, first: int, env: Mapping[str, str]) -> list[int]:
    """The ports at which rank 0 may listen, in the order in which all ranks try them.

    Those that Slurm reserved for the step (srun --resv-ports), where it did. Otherwise `first`,
    which is MASTER_PORT, and then such as depend on the run.
    """
    reserved = _reserved(env.get("SLURM_STEP_RESV_PORTS", ""))
    if reserved:
        return reserved[:COUNT]
    found = [first]
    turn = 0
    while len(found) < COUNT:
        number = int(token.digest(f"port {turn}")[:8], 16)
        port = _LOWEST + number % (_HIGHEST - _LOWEST + 1)
        if port not in found:
            found.append(port)
        turn += 1
    return found


def _reserved(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return []
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found


def listen(addresses: Sequence[str], port: int) -> list[socket.socket]:
    """Sockets that listen on `port` of `addresses`; with port 0 the kernel chooses one for all.

    Empty addresses stand for every interface. Raises OSError where one of them is taken.
    """
    found: list[socket.socket] = []
    try:
        for address in addresses or ("::", "0.0.0.0"):
            try:
                found.append(_listen(address, port))
            except OSError as error:
                # Also: no IPv6 here, or IPv4 is served by the socket for IPv6 already.
                if error.errno in _NOT_HERE or (not addresses and found):
                    continue
                raise
            port = found[0].getsockname()[1]
    except OSError:
        for one in found:
            one.close()
        raise
    if not found:
        raise OSError(errno.EADDRNOTAVAIL, "no address of this machine")
    return found


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address == "::":
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        one.bind((address, port))
        one.listen(_BACKLOG)
        one.setblocking(False)
    except OSError:
        one.close()
        raise
    return one


def loopback(identity: Identity) -> list[str]:
    """The address at which ranks on one node meet, out of reach for other machines.

    Empty where there are several nodes, or whoever has set RANK and WORLD_SIZE didn't say.
    """
    if identity.nnodes > 1 or identity.source == "env":
        return []
    try:
        _listen("127.0.0.1", 0).close()
    except OSError:
        return ["::1"]
    return ["127.0.0.1"]


def own_addresses(host: str, addresses: Sequence[str], nnodes: int) -> list[str]:
    """Where rank 0 listens: at MASTER_ADDR alone where that can't shut anybody out.

    The other nodes may find another address behind its name than rank 0's node does (Debian
    writes 127.0.1.1 for it into /etc/hosts), so that a name means every interface: an empty list.
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return list(addresses) if nnodes == 1 else []
    return list(addresses)
