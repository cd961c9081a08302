"""What can be known wrong before torch is imported, said within seconds. No torch here."""

from __future__ import annotations

import errno
import importlib.util
import ipaddress
import os
import re
import socket
import time
from typing import TYPE_CHECKING

from slurmgen.ddp.failure import LaunchError
from slurmgen.ddp.launch.identity import AGENT, FORKS
from slurmgen.ddp.watch.secret import secret_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.ddp.launch.identity import Identity

DEFAULT_TIMEOUT_S = 300.0
"""How long ranks wait for each other at the start.

As long as torch's own store does. A cold import of torch from a shared file system takes minutes
on hundreds of nodes, and giving up on a healthy job costs its place in the queue, whereas what is
wrong with a launch has been said by these checks already.
"""

DEFAULT_LOST_S = 15.0
"""How long a rank may be silent. Its supervisor does nothing else than to say that it is there."""

_FUNCTION = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")


def check(identity: Identity, env: Mapping[str, str]) -> None:
    """Raise LaunchError for the first thing that would make the ranks hang or meet wrongly."""
    check_world(identity, env)
    rendezvous_timeout(env)
    wants_checks(env)
    lost_after(env)
    hang_after(env)
    secret_of(env)
    if identity.world_size > 1:
        host, port = master(env)
        addresses = resolve(host, port)
        check_loopback(identity, env, host, addresses)
        hosts_store = identity.source in {"slurm", FORKS} and identity.rank == 0
        if hosts_store:
            check_owned(host, addresses)


def check_world(identity: Identity, env: Mapping[str, str]) -> None:
    """The ranks that run are those the script was rendered for, and each knows its place."""
    rendered = env.get("SLURMGEN_WORLD_SIZE", "").strip()
    if rendered and rendered != str(identity.world_size):
        raise LaunchError(
            f"the world size is {identity.world_size}, but the script was rendered for {rendered}",
            why="ranks would wait for others that don't exist, or train on the wrong share of"
            " each batch",
            fix="render the script again after changing nodes or tasks; don't override --nodes,"
            " --ntasks or --ntasks-per-node on the command line of sbatch or srun",
        )
    for name, place, size in (
        ("RANK", identity.rank, identity.world_size),
        ("LOCAL_RANK", identity.local_rank, identity.local_world_size),
    ):
        if not 0 <= place < size:
            raise LaunchError(
                f"{name} {place} is outside 0..{size - 1}",
                why="no group of that size has such a rank",
                fix="leave RANK, LOCAL_RANK and their sizes to the launcher",
            )


def rendezvous_timeout(env: Mapping[str, str]) -> float:
    """Seconds that ranks wait for each other: SLURMGEN_RDZV_TIMEOUT, or DEFAULT_TIMEOUT_S.

    Raises LaunchError where the variable isn't a positive number.
    """
    return _seconds(
        env,
        "SLURMGEN_RDZV_TIMEOUT",
        DEFAULT_TIMEOUT_S,
        why="ranks that never arrive would be waited for without a bound",
    )


def lost_after(env: Mapping[str, str]) -> float:
    """Seconds of silence after which a rank is lost: SLURMGEN_LOST_S, or DEFAULT_LOST_S.

    Raises LaunchError where the variable isn't a positive number.
    """
    return _seconds(
        env,
        "SLURMGEN_LOST_S",
        DEFAULT_LOST_S,
        why="a node that died would be waited for without a bound",
    )


def hang_after(env: Mapping[str, str]) -> float:
    """Seconds without progress that are a hang: SLURMGEN_HANG_S; 0, the default, for no bound.

    Raises LaunchError where the variable isn't a number of seconds.
    """
    if env.get("SLURMGEN_HANG_S", "").strip() in {"", "0"}:
        return 0.0
    return _seconds(env, "SLURMGEN_HANG_S", 0.0, why="a hang would not be noticed")


def _seconds(env: Mapping[str, str], name: str, default: float, *, why: str) -> float:
    text = env.get(name, "")
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    # Above a day nothing is bounded any more; it also shuts out inf and nan.
    if not 0 < seconds <= 86400:
        raise LaunchError(
            f"{name}={text!r} is not a number of seconds",
            why=why,
            fix=f"export {name}=300, or leave it unset",
        )
    return seconds


def wants_checks(env: Mapping[str, str]) -> bool:
    """Whether to look for mistakes while training: unless SLURMGEN_CHECKS is "off".

    Raises LaunchError where it is neither "on" nor "off".
    """
    text = env.get("SLURMGEN_CHECKS", "")
    if text not in {"", "on", "off"}:
        raise LaunchError(
            f"SLURMGEN_CHECKS={text!r} is neither on nor off",
            why="it isn't clear whether to look for mistakes while training",
            fix="export SLURMGEN_CHECKS=off, or leave it unset",
        )
    return text != "off"


def master(env: Mapping[str, str]) -> tuple[str, int]:
    """MASTER_ADDR and MASTER_PORT. Raises LaunchError where they are missing or no address."""
    host = env.get("MASTER_ADDR", "").strip()
    if not host:
        raise LaunchError(
            "MASTER_ADDR is not set",
            why="the ranks have no address to meet at",
            fix="render the script with slurmgen, or export MASTER_ADDR inside each task as the"
            " first host of SLURM_STEP_NODELIST",
        )
    text = env.get("MASTER_PORT", "").strip()
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise LaunchError(
            f"MASTER_PORT={text!r} is not a port" if text else "MASTER_PORT is not set",
            why="rank 0 can't listen on it",
            fix="export a number between 1024 and 65535, another one for each job and step",
        )
    return host, int(text)


def has_agent_store(identity: Identity, env: Mapping[str, str]) -> bool:
    """Whether torchrun's own store is there for the ranks to meet in."""
    return identity.source == AGENT and env.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def resolve(host: str, port: int, *, tries: int = 3, pause_s: float = 0.5) -> list[str]:
    """The addresses `host` stands for. Raises LaunchError where it doesn't resolve.

    torch would retry a name that doesn't resolve until its timeout, silently: 30 minutes for
    gloo. A resolver that asks for another try gets it.
    """
    for remaining in reversed(range(tries)):
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError) as error:
            transient = isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
            if transient and remaining:
                time.sleep(pause_s)
                continue
            raise LaunchError(
                f"MASTER_ADDR={host} doesn't resolve on {socket.gethostname()}: {error}",
                why="this rank could never reach rank 0",
                fix="use the node name Slurm knows (first host of SLURM_STEP_NODELIST) or its"
                " address; inside a container, mount the host's /etc/hosts",
            ) from error
        # A link-local IPv6 address carries its interface after a percent sign.
        return sorted({str(entry[4][0]).partition("%")[0] for entry in found})
    raise AssertionError("unreachable: the last try returns or raises")


def check_loopback(
    identity: Identity, env: Mapping[str, str], host: str, addresses: list[str]
) -> None:
    """On several nodes the master must not be each node itself.

    Where Slurm itself reaches the launching node by loopback (SLURM_LAUNCH_NODE_IPADDR), all of
    its nodes are one machine and loopback is right. Rank 0's node may find its own name in
    /etc/hosts as 127.0.1.1, as Debian writes it; only a name that says loopback is wrong there.
    """
    if identity.nnodes < 2 or is_loopback(env.get("SLURM_LAUNCH_NODE_IPADDR", "")):
        return
    literal = is_loopback(host) or host.rstrip(".").lower().startswith("localhost")
    if literal or (identity.node_rank > 0 and all(map(is_loopback, addresses))):
        raise LaunchError(
            f"MASTER_ADDR={host} is this machine itself, but the ranks are on"
            f" {identity.nnodes} nodes",
            why="every node would look for rank 0 at home; all but the first would wait in vain",
            fix="use the name of the node that rank 0 runs on: the first host of"
            " SLURM_STEP_NODELIST",
        )


def check_owned(host: str, addresses: list[str]) -> None:
    """Rank 0 opens the store, so the master's address must be one of its own machine's."""
    for address in addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.bind((address, 0))
            return
        except OSError as error:
            if error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
                return
    raise LaunchError(
        f"MASTER_ADDR={host} ({', '.join(addresses)}) isn't an address of {socket.gethostname()},"
        " where rank 0 runs",
        why="the other ranks would knock at a machine on which rank 0 doesn't listen",
        fix="take the first host of the step (SLURM_STEP_NODELIST), not of the job: srun -w may"
        " have placed rank 0 elsewhere",
    )


def parse_target(target: str) -> tuple[str, str] | None:
    """``package.module:function`` as its two halves, None where `target` names a script.

    Raises LaunchError where the script, or the module's top-level package, doesn't exist.
    """
    match = _FUNCTION.fullmatch(target)
    if match is None:
        if not os.path.isfile(target):
            raise LaunchError(
                f"there is no script {target}",
                why=f"the working directory on this node is {os.getcwd()}",
                fix="give a path that exists on the compute nodes, or package.module:function",
            )
        return None
    module, function = match[1], match[2]
    # Only the top level: finding a submodule would already run its parents.
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        raise LaunchError(
            f"there is no module {module.partition('.')[0]} to import {target} from",
            why=f"it is neither in {os.getcwd()} nor installed in this Python",
            fix="start in the folder that holds it, or install it into the environment",
        )
    return module, function


def is_loopback(address: str) -> bool:
    """Whether no other machine can reach `address`; a name isn't looked up."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
