"""How the supervisors of a run find each other, and their ranks the store. No torch here."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slurmgen.ddp import log
from slurmgen.ddp.failure import LaunchError, arrived_twice
from slurmgen.ddp.launch import preflight
from slurmgen.ddp.watch import ports
from slurmgen.ddp.watch.handshake import hub_of
from slurmgen.ddp.watch.hub import Hub, Peer
from slurmgen.ddp.watch.secret import VARIABLE, Token
from slurmgen.ddp.watch.spoke import CONNECT_S, Spoke

if TYPE_CHECKING:
    import selectors
    from collections.abc import Callable, Mapping, Sequence

    from slurmgen.ddp.launch.identity import Identity
    from slurmgen.ddp.watch.wire import Message


@dataclass(frozen=True)
class Ears:
    """Who is called when another supervisor says something, or says nothing any more."""

    peer: Callable[[Peer, Message], None]
    peer_lost: Callable[[Peer, str], None]
    hub: Callable[[Message], None]
    hub_lost: Callable[[str], None]


class Company:
    """The other supervisors of the run, seen from one: rank 0's is the hub, the others' spokes.

    hub, spoke: None until it is known where they meet; both None for a run of one. answer: how
    the rank is told what it has asked for.
    """

    def __init__(
        self,
        identity: Identity,
        env: Mapping[str, str],
        selector: selectors.BaseSelector,
        ears: Ears,
        answer: Callable[[Message], None],
    ) -> None:
        self.hub: Hub | None = None
        self.spoke: Spoke | None = None
        self.lost_s = preflight.lost_after(env)
        self._identity, self._env, self._selector = identity, env, selector
        self._ears, self._answer_rank = ears, answer
        self._token = Token.of(identity, env)
        self._port: int | None = None
        self._refusal: tuple[str, str, str] | None = None
        self._asked: tuple[float, float] | None = None

    def gather(self) -> None:
        """Listen as the hub, or look for it. What keeps this one out is told to the rank."""
        try:
            self._gather()
        except LaunchError as error:
            self._refusal = _refusal(error)

    @property
    def refused(self) -> bool:
        """Whether the rank can't take part."""
        return self._refusal is not None

    @property
    def asked(self) -> bool:
        """Whether the rank waits for an answer."""
        return self._asked is not None

    @property
    def count(self) -> int:
        """How many are there, this one included."""
        return 1 + (len(self.hub.here()) if self.hub is not None else 0)

    @property
    def connected(self) -> bool:
        """Whether there is anybody to talk to."""
        if self.hub is not None:
            return bool(self.hub.here())
        return self.spoke is not None and self.spoke.connected

    def tick(self, now: float) -> None:
        """Keep contact, and answer the rank once that is possible."""
        if self.hub is not None:
            self.hub.tick()
        if self.spoke is not None:
            self.spoke.tick()
        self._answer_in_time(now)

    def close(self) -> None:
        """Say nothing any more."""
        if self.hub is not None:
            self.hub.close()
        if self.spoke is not None:
            self.spoke.close()

    # --- what the rank says and asks ----------------------------------------------------

    def join(self, targets: Sequence[Sequence[Any]]) -> None:
        """The rank knows, through torchrun's store, where the hub may be reached."""
        if self.spoke is None:
            self._seek([(str(address), int(port)) for address, port in targets])

    def announce(self, port: int) -> None:
        """The rank, 0, has opened the store at `port`."""
        if self.hub is not None:
            self.hub.announce(port)
        self._answer()

    def tell_targets(self) -> None:
        """The rank asks where this hub may be reached, for the others under torchrun.

        MASTER_ADDR may be another node there.
        """
        found: list[str] = []
        if self.hub is not None and (own := ports.loopback(self._identity)):
            found += own
        elif self.hub is not None:
            for host in (preflight.master(self._env)[0], socket.gethostname()):
                with suppress(LaunchError):
                    addresses = preflight.resolve(host, 0, tries=1)
                    found += addresses
                    found += filter(None, map(_toward, addresses))
        port = self.hub.port if self.hub is not None else 0
        self._answer(targets=[(address, port) for address in dict.fromkeys(found)])

    def ask_for_store(self, now: float, timeout_s: float) -> None:
        """The rank asks where the store is, and waits."""
        self._asked = now, timeout_s

    def hear_store(self, port: int) -> None:
        """The hub says where the store is."""
        self._port = port

    def _answer(self, **content: Any) -> None:
        self._asked = None
        refused = {} if self._refusal is None else {"refused": list(self._refusal)}
        self._answer_rank({**content, **refused})

    def _answer_in_time(self, now: float) -> None:
        if self._asked is None:
            return
        since, timeout_s = self._asked
        if self._port is not None:
            self._answer(port=self._port)
            return
        if self.spoke is not None and self.spoke.state == "refused":
            self._refusal = _refusal(arrived_twice(self._identity.rank, self.spoke.reason))
        elif now - since > timeout_s and self._refusal is None:
            self._refusal = self._too_late(timeout_s)
        if self._refusal is not None:
            self._answer()

    def _too_late(self, timeout_s: float) -> tuple[str, str, str]:
        address = self._env.get("MASTER_ADDR", "?")
        fix = (
            "look for an earlier message of rank 0; if it is only slow to start, export"
            " SLURMGEN_RDZV_TIMEOUT with more seconds"
        )
        if self.spoke is not None and self.spoke.state == "seeking":
            where = f"{address}:{self._env.get('MASTER_PORT', '?')}"
            return (
                f"rank 0 doesn't listen at {where} after {timeout_s:g} s ({self.spoke.reason})",
                "it didn't start, ended early, or a firewall lies between the nodes",
                fix,
            )
        return (
            f"rank 0 on {address} opened no store within {timeout_s:g} s",
            "it still imports torch, or waits for its GPU",
            fix,
        )

    # --- where they meet ------------------------------------------------------------------

    def _gather(self) -> None:
        identity = self._identity
        if identity.world_size == 1:
            return
        if identity.rank == 0 and not self._token.secret:
            log.note(
                f"no {VARIABLE}: other users who reach rank 0's node could join this run or end it;"
                " scripts rendered from now on have one"
            )
        if preflight.has_agent_store(identity, self._env):
            # The ranks find each other through torchrun's store, and tell.
            if identity.rank == 0:
                self._host_at(ports.listen(ports.loopback(identity), 0))
            return
        host, port = preflight.master(self._env)
        addresses = ports.loopback(identity) or preflight.resolve(host, port)
        found = ports.candidates(self._token, port, self._env)
        if identity.rank > 0:
            self._seek([(address, one) for one in found for address in addresses])
            return
        own = ports.own_addresses(host, addresses, identity.nnodes)
        for one in found:
            try:
                listeners = ports.listen(own, one)
            except OSError:
                for address in addresses:
                    if hub_of(self._token, address, one, seconds=CONNECT_S):
                        raise arrived_twice(0, f"{host}:{one}") from None
                continue
            self._host_at(listeners)
            return
        raise LaunchError(
            f"none of {len(found)} ports is free on {socket.gethostname()}:"
            f" {', '.join(map(str, found))}",
            why="the other ranks would have nothing to connect to",
            fix="choose another MASTER_PORT, between 1024 and 65535",
        )

    def _host_at(self, listeners: list[socket.socket]) -> None:
        self.hub = Hub(
            self._token,
            self._me(),
            listeners,
            self._selector,
            lost_s=self.lost_s,
            heard=self._ears.peer,
            lost=self._ears.peer_lost,
        )

    def _seek(self, targets: list[tuple[str, int]]) -> None:
        self.spoke = Spoke(
            self._token,
            self._me(),
            targets,
            self._selector,
            lost_s=self.lost_s,
            heard=self._ears.hub,
            lost=self._ears.hub_lost,
        )

    def _me(self) -> Message:
        one = self._identity
        return {
            "rank": one.rank,
            "node": one.node,
            "host": socket.gethostname(),
            "local_rank": one.local_rank,
        }


def _refusal(error: LaunchError) -> tuple[str, str, str]:
    return error.what, error.why, error.fix


def _toward(address: str) -> str:
    """This machine's own address on the way to `address`; no packet is sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return ""
