"""The store through which the ranks of one run, and no others, meet."""

from __future__ import annotations

import errno
import json
import os
import random
import socket
import threading
import time
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from torch.distributed import DistError, PrefixStore, Store, TCPStore

from slurmgen.ddp import log
from slurmgen.ddp.failure import EXIT_LAUNCH, LaunchError, arrived_twice
from slurmgen.ddp.launch import preflight
from slurmgen.ddp.launch.devices import Seat, check_seats
from slurmgen.ddp.watch import ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slurmgen.ddp.launch.identity import Identity
    from slurmgen.ddp.watch.supervised import Desk

HANDSHAKE_S = 30.0
"""How long something that accepted a connection may take to answer as rank 0's store.

The store answers from threads of its own within milliseconds, whatever rank 0 is doing.
"""

_GOODBYE_S = 10.0
_JOB_KEY = "slurmgen/job"
_FINE = "ok"


class Rendezvous:
    """The meeting of the ranks: who is there, whether it may start, how it ended.

    Rank 0 hosts the store at host:port (0: a port that is free), unless torchrun's agent does
    already (agent). Everything is bounded by timeout_s and ends in LaunchError: a port in use,
    nobody there, something there that isn't a store, another job's store, a rank that is missing
    or there twice.
    """

    def __init__(
        self, identity: Identity, host: str, port: int, *, timeout_s: float, agent: bool
    ) -> None:
        self._identity = identity
        self._address = f"{host}:{port}"
        self._timeout = timedelta(seconds=timeout_s)
        self._hosts = identity.rank == 0 and not agent
        handshake_s = min(timeout_s, HANDSHAKE_S)
        if not self._hosts:
            _wait_for_listener(host, port, timeout_s)
        base = self._connect(host, port, handshake_s)
        self.port = int(base.port)
        """The store's; where 0 was asked for, the kernel has chosen it."""
        self._address = f"{host}:{self.port}"
        if identity.rank == 0:
            base.set(_JOB_KEY, identity.job)
        else:
            # A hosting rank 0 names its job at once; under an agent it may still be on its way.
            self._check_job(base, timeout_s if agent else handshake_s)
        self.prefix = f"slurmgen/{identity.job}/{identity.attempt}"
        """Of this run's own keys. torchrun's store outlives the ranks that it restarts."""
        self.store: Store = PrefixStore(self.prefix, base)

    def meet(self, seat: Seat) -> list[Seat]:
        """Tell the others where this rank sits, and wait until rank 0 has found all fit.

        Returns all seats on rank 0 and none elsewhere. Raises the same LaunchError on all ranks.
        """
        rank = self._identity.rank
        if self.store.add(f"arrived/{rank}", 1) > 1:
            raise arrived_twice(rank, self._address)
        self.store.set(f"seat/{rank}", seat.dump())
        if rank == 0:
            return self._judge()
        with self._peers_lost(f"rank 0 gave no answer at {self._address}"):
            self.store.wait(["verdict"], self._timeout)
            verdict = self.store.get("verdict").decode()
            self.store.add("heard", 1)
        if verdict != _FINE:
            what, why, fix = verdict.split("\n")
            raise LaunchError(what, why=why, fix=fix, said=True)
        return []

    def fail(self, text: str) -> str:
        """Note that this rank failed; returns the note of the rank that failed first."""
        return str(self.store.compare_set("outcome", "", text).decode())

    def finish(self) -> str | None:
        """Wait until every rank has ended its program.

        Through the store and not as a collective, so that a program whose ranks ended in the
        middle of one can't turn the wait into a mismatch. Returns None, or the note of the rank
        that failed. Raises torch's DistError where rank 0 is gone.
        """
        if self.store.add("finished", 1) == self._identity.world_size:
            self.store.compare_set("outcome", "", _FINE)
        pause = 0.01
        # Not store.wait(): it would keep NCCL's own threads from the store for as long.
        while not self.store.check(["outcome"]):
            time.sleep(pause)
            pause = min(pause * 2, 1.0)
        outcome = str(self.store.get("outcome").decode())
        self.store.add("left", 1)
        if outcome != _FINE:
            return outcome
        self._host_until("left", self._identity.world_size)
        return None

    def _listener(self, host: str, port: int) -> int | None:
        """For the ranks of one node, the store's own socket: torch would listen everywhere."""
        if not self._hosts or not preflight.is_loopback(host):
            return None
        try:
            return ports.listen([host], port)[0].detach()
        except OSError as error:
            raise _no_store(port, self._address, error) from error

    def _connect(self, host: str, port: int, handshake_s: float) -> TCPStore:
        silent = LaunchError(
            f"what listens at {self._address} doesn't answer as rank 0's store",
            why=f"no answer within {handshake_s:g} s: another program holds the port, or rank 0"
            " has ended",
            fix="choose another MASTER_PORT for this job; the rendered script derives one from"
            " the job and step ids",
        )
        listener = self._listener(host, port)
        try:
            # The constructor waits past its timeout for a listener that never speaks.
            with _deadline(handshake_s, silent):
                return TCPStore(
                    host,
                    port,
                    self._identity.world_size,
                    is_master=self._hosts,
                    timeout=self._timeout,
                    wait_for_workers=False,
                    master_listen_fd=listener,
                )
        except DistError as error:
            if self._hosts:
                raise _no_store(port, self._address, error) from error
            raise silent from error

    def _check_job(self, base: TCPStore, timeout_s: float) -> None:
        try:
            base.wait([_JOB_KEY], timedelta(seconds=timeout_s))
            other = base.get(_JOB_KEY).decode()
        except DistError as error:
            raise LaunchError(
                f"the store at {self._address} names no job",
                why="it belongs to another PyTorch program, or rank 0 died after opening it",
                fix="look for rank 0's own message; if there is none, choose another MASTER_PORT",
            ) from error
        if other != self._identity.job:
            raise LaunchError(
                f"the store at {self._address} belongs to another run: {other}",
                why=f"this is {self._identity.job}; the two would have trained as one",
                fix="choose another MASTER_PORT; the rendered script derives one from the job and"
                " step ids",
            )

    def _judge(self) -> list[Seat]:
        keys = [f"seat/{rank}" for rank in range(self._identity.world_size)]
        try:
            seats = self._gather(keys)
            check_seats(seats)
        except LaunchError as error:
            present = sum(self.store.check([key]) for key in keys)
            self.store.set("verdict", f"{error.what}\n{error.why}\n{error.fix}")
            self._host_until("heard", present - 1)
            raise
        self.store.set("verdict", _FINE)
        return seats

    def _gather(self, keys: Sequence[str]) -> list[Seat]:
        try:
            self.store.wait(list(keys), self._timeout)
        except DistError as error:
            missing = [str(rank) for rank, key in enumerate(keys) if not self.store.check([key])]
            shown = ", ".join(missing[:20]) + (", ..." if len(missing) > 20 else "")
            raise LaunchError(
                f"rank(s) {shown} didn't arrive at {self._address} within"
                f" {self._timeout.total_seconds():g} s",
                why="the group can't form without them",
                fix="look for an earlier message of those ranks; if they are only slow to start,"
                " export SLURMGEN_RDZV_TIMEOUT with more seconds",
            ) from error
        return [Seat.parse(self.store.get(key)) for key in keys]

    def _host_until(self, key: str, count: int) -> None:
        """Keep the store that this process hosts alive until `count` ranks have read from it."""
        end = time.monotonic() + _GOODBYE_S
        while self._hosts and self.store.add(key, 0) < count and time.monotonic() < end:
            time.sleep(0.02)

    @contextmanager
    def _peers_lost(self, what: str) -> Iterator[None]:
        try:
            yield
        except DistError as error:
            raise LaunchError(
                what,
                why="it ended, or it still waits for ranks that are missing",
                fix="look for an earlier message of rank 0 and of the other ranks",
            ) from error


def _no_store(port: int, address: str, error: Exception) -> LaunchError:
    taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    if taken or "EADDRINUSE" in str(error):
        return LaunchError(
            f"port {port} is in use on {socket.gethostname()}",
            why="rank 0 can't open its store on it; another job or program was first",
            fix="choose another MASTER_PORT for this job; the rendered script derives one"
            " from the job and step ids",
        )
    return LaunchError(
        f"rank 0 can't open its store at {address}: {str(error).splitlines()[0]}",
        why="the other ranks would have nothing to connect to",
        fix="choose a MASTER_PORT between 1024 and 65535 and a MASTER_ADDR of this node",
    )


def introduce(meeting: Rendezvous, desk: Desk, rank: int, timeout_s: float) -> None:
    """Under torchrun: let the ranks' supervisors find each other, through torchrun's store.

    Without an answer of rank 0's they go on each alone; that rank 0 is missing, `meet` says.
    """
    if rank == 0:
        meeting.store.set("link", json.dumps(desk.hub()))
        return
    with suppress(DistError):
        meeting.store.wait(["link"], timedelta(seconds=timeout_s))
        desk.join(json.loads(meeting.store.get("link")))


def _wait_for_listener(host: str, port: int, timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    pause = 0.05
    reason = "no answer"
    while (remaining := end - time.monotonic()) > 0:
        try:
            with socket.create_connection((host, port), timeout=min(5.0, remaining)) as probe:
                # Knocking at a free port of the ephemeral range, a socket may meet itself.
                if probe.getsockname() != probe.getpeername():
                    return
        except OSError as error:
            reason = str(error)
        # Spread out: hundreds of ranks wait for the same listener.
        time.sleep(min(pause * random.uniform(0.5, 1.0), max(end - time.monotonic(), 0.0)))
        pause = min(pause * 2, 1.0)
    raise LaunchError(
        f"rank 0 doesn't listen at {host}:{port} after {timeout_s:g} s ({reason})",
        why="it didn't start, ended early, or a firewall lies between the nodes",
        fix="look for an earlier message of rank 0; if it is only slow to start, export"
        " SLURMGEN_RDZV_TIMEOUT with more seconds",
    )


@contextmanager
def _deadline(seconds: float, error: LaunchError) -> Iterator[None]:
    """End the process with `error` if the body takes longer than `seconds`.

    For calls into torch that can't be interrupted. Only before any code of the user's runs:
    nothing is cleaned up.
    """

    def give_up() -> None:
        log.refuse(error)
        os._exit(EXIT_LAUNCH)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
