"""The process above each rank: sees how it ends, and ends it when another one has.

`divide` forks before torch is imported. The child goes on as the rank. The parent supervises it:
it passes its stderr on, keeps contact with the supervisors of the other ranks (`link.py`), and
ends as the rank did. It costs a fork, a few MB beside the interpreter's shared pages, and
no CPU to speak of. No torch here.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from slurmgen.ddp import failures, launcher, log, ports, preflight, signals, supervised
from slurmgen.ddp.failure import EXIT_FAILED, LaunchError
from slurmgen.ddp.failures import Failure
from slurmgen.ddp.link import BEAT_S, Hub, Message, Peer, Spoke, Wire, hub_of
from slurmgen.ddp.relay import Relay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

    from slurmgen.ddp.identity import Identity

_PASSED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
_ORDERS = {signal.SIGTERM, signal.SIGINT}
"""What a job is cancelled with: a rank that dies of it has not failed."""

_ORDER_S = 0.5
"""How much later an order that ended the rank may reach its supervisor, on a busy machine."""

_PASS_ON_S = 1.0
"""Slurm sends a signal to every process of a step, a person or torchrun to one of them. What the
rank has not seen for so long, it is sent by its supervisor."""

_PEACE_S = 1.5
_GRACE_S = 3.0
"""Once another rank has failed, the rank may end by itself for _PEACE_S, then gets TERM, and KILL
after _GRACE_S more."""

_LINGER_S = 1.0
_PARTING_S = 2.0
_OTHERS_S = 5.0
_DUMP_S = 3.0
_STACKS_S = 5.0
_QUIET_S = 0.3
_STACK = 16_000
_PR_SET_PDEATHSIG = 1
_STDERR = 2


@dataclass(frozen=True)
class _Ending:
    """How a process ended: its exit status, or the number of the signal."""

    code: int
    signal: int | None = None

    @property
    def well(self) -> bool:
        return self.signal is None and self.code in {0, signals.EXIT_STOPPED}

    @property
    def status(self) -> int:
        return self.code if self.signal is None else 128 + self.signal


@dataclass
class _Ends:
    """What connects a supervisor with its rank: a socket, and the reading ends of pipes."""

    control: socket.socket
    progress: supervised.Progress
    stacks: int
    seen: int
    stderr: int | None


def divide(identity: Identity, env: Mapping[str, str]) -> None:
    """Fork; returns in the child, which is the rank. The parent ends when and as the rank does."""
    sys.stdout.flush()
    sys.stderr.flush()
    control, own_control = socket.socketpair()
    stacks, own_stacks = os.pipe()
    seen, own_seen = os.pipe()
    stderr = None if os.isatty(_STDERR) else os.pipe()
    progress = supervised.Progress()
    # Neither process may die of a signal before it has its handlers.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED, signal.SIGCHLD})
    supervisor = os.getpid()
    rank = os.fork()
    if rank == 0:
        _die_with(supervisor)
        for end in (stacks, seen):
            os.close(end)
        control.close()
        if stderr is not None:
            os.dup2(stderr[1], _STDERR)
            os.close(stderr[0])
            os.close(stderr[1])
        # Python notes each signal that it handles there, whoever has installed the handler.
        os.set_blocking(own_seen, False)
        signal.set_wakeup_fd(own_seen, warn_on_full_buffer=False)
        signals.inherit()
        supervised.sit(supervised.Desk(own_control, progress, own_stacks))
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return
    own_control.close()
    for end in (own_stacks, own_seen):
        os.close(end)
    if stderr is not None:
        os.close(stderr[1])
    ends = _Ends(control, progress, stacks, seen, stderr[0] if stderr else None)
    try:
        _Supervisor(identity, env, rank, ends, mask).run()
    except BaseException:
        # A bug of ours. Not into the caller, which would go on as a second rank.
        os.write(_STDERR, traceback.format_exc().encode())
        os._exit(EXIT_FAILED)


def _die_with(supervisor: int) -> None:
    """The kernel ends this process when the supervisor is gone, however it went."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return
    if os.getppid() != supervisor:
        os._exit(EXIT_FAILED)


class _Supervisor:
    def __init__(
        self,
        identity: Identity,
        env: Mapping[str, str],
        rank: int,
        ends: _Ends,
        mask: set[int | signal.Signals],
    ) -> None:
        self._identity, self._env, self._rank = identity, env, rank
        self._host = socket.gethostname()
        self._lost_s = preflight.lost_after(env)
        self._path = failures.path_of(env, identity)
        self._selector = selectors.DefaultSelector()
        # Signals.
        self._seen_pipe = ends.seen
        self._seen: dict[int, float] = {}
        self._got: dict[int, float] = {}
        self._to_pass: dict[int, float] = {}
        self._take_signals(mask)
        # The rank.
        self._ended: _Ending | None = None
        self._ended_at = 0.0
        self._classified = False
        self._told: Message = {}
        self._control = Wire(ends.control, self._selector, self._hear_rank)
        self._relay = None
        if ends.stderr is not None:
            self._relay = Relay(ends.stderr, _STDERR, self._selector)
            sys.stderr = _Through(self._relay)
        # Progress.
        self._progress = ends.progress
        self._hang_s = preflight.hang_after(env)
        self._count, self._moved = 0, time.monotonic()
        self._stacks_pipe = ends.stacks
        os.set_blocking(ends.stacks, False)
        self._dumping: tuple[float, float] | None = None
        self._dump = b""
        self._steps: dict[int, int] = {}
        self._stacks: dict[int, str] = {}
        self._hang: Failure | None = None
        self._hang_at = 0.0
        # The other ranks.
        self._token = ports.Token.of(identity)
        self._hub: Hub | None = None
        self._spoke: Spoke | None = None
        self._port: int | None = None
        self._refusal: Sequence[str] | None = None
        self._asked: tuple[float, float] | None = None
        self._unsent: Message | None = None
        # The failure.
        self._inquest = failures.Inquest() if identity.rank == 0 else None
        self._mine: Failure | None = None
        self._verdict: Failure | None = None
        self._verdict_at = self._judge_at = 0.0
        self._blows = 0
        self._last_tick = time.monotonic()

    def run(self) -> NoReturn:
        if self._identity.rank == 0:
            failures.forget(self._path)
        try:
            self._meet()
        except LaunchError as error:
            self._refusal = _refusal(error)
        while not self._finished():
            for key, events in self._selector.select(self._pause()):
                key.data(events)
            self._tick()
        self._end()

    # --- the others ------------------------------------------------------------------------

    def _meet(self) -> None:
        identity = self._identity
        if identity.world_size == 1:
            return
        agent = preflight.has_agent_store(identity, self._env)
        if agent:
            # The ranks find each other through torchrun's store, and tell.
            if identity.rank == 0:
                self._host_at(ports.listen([], 0))
            return
        host, port = preflight.master(self._env)
        addresses = preflight.resolve(host, port)
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
                    if hub_of(self._token, address, one):
                        raise _twice(0, f"{host}:{one}") from None
                continue
            self._host_at(listeners)
            return
        raise LaunchError(
            f"none of {len(found)} ports is free on {self._host}: {', '.join(map(str, found))}",
            why="the other ranks would have nothing to connect to",
            fix="choose another MASTER_PORT, between 1024 and 65535",
        )

    def _host_at(self, listeners: list[socket.socket]) -> None:
        self._hub = Hub(
            self._token,
            self._me(),
            listeners,
            self._selector,
            lost_s=self._lost_s,
            heard=self._hear_peer,
            lost=self._lose_peer,
        )

    def _seek(self, targets: list[tuple[str, int]]) -> None:
        self._spoke = Spoke(
            self._token,
            self._me(),
            targets,
            self._selector,
            lost_s=self._lost_s,
            heard=self._hear_hub,
            lost=self._lose_hub,
        )

    def _me(self) -> Message:
        one = self._identity
        return {
            "rank": one.rank,
            "node": one.node,
            "host": self._host,
            "local_rank": one.local_rank,
        }

    def _targets(self) -> list[tuple[str, int]]:
        """Where this hub may be reached from, under torchrun: MASTER_ADDR may be another node."""
        if self._hub is None:
            return []
        found: list[str] = []
        for host in (preflight.master(self._env)[0], self._host):
            with suppress(LaunchError):
                addresses = preflight.resolve(host, 0, tries=1)
                found += addresses
                found += filter(None, map(_toward, addresses))
        return [(address, self._hub.port) for address in dict.fromkeys(found)]

    def _hear_peer(self, peer: Peer, message: Message) -> None:
        if "failed" in message:
            self._suspect(Failure.parse(message["failed"]))
        elif "hung" in message:
            self._begin_hang(Failure.parse(message["hung"]))
        elif "stacks" in message:
            self._stacks[peer.rank], self._steps[peer.rank] = message["stacks"], message["steps"]
        elif "order" in message:
            # Told to end, and perhaps it alone: then the others wait for it in vain.
            failure = Failure(
                *(peer.rank, peer.node, peer.host, peer.local_rank, "signal", message["order"]),
                "was told to end by a signal",
                secondary=True,
            )
            self._suspect(failure)

    def _lose_peer(self, peer: Peer, why: str) -> None:
        place = peer.rank, peer.node, peer.host, peer.local_rank
        self._suspect(failures.lost(*place, why, self._place()))

    def _hear_hub(self, message: Message) -> None:
        if "port" in message:
            self._port = message["port"]
        elif "end" in message and self._spoke is not None:
            self._pass_verdict(Failure.parse(message["end"]))
            self._spoke.leave({"ending": 1})
        elif "dump" in message:
            self._begin_dump()

    def _lose_hub(self, why: str) -> None:
        if self._verdict is not None or (self._ended is not None and self._ended.well):
            return
        hub = self._spoke.hub if self._spoke is not None else {}
        node, host = str(hub.get("node", "?")), str(hub.get("host", "?"))
        log.warn(f"lost contact with rank 0 on {node}: {why}")
        self._inquest = failures.Inquest()
        if self._mine is not None:
            self._inquest.add(self._mine)
        self._inquest.add(failures.lost(0, node, host, 0, why, self._place()))
        # The survivors can't agree any more; the lowest is the first to write.
        self._judge_at = time.monotonic() + min(self._identity.rank * 0.02, 2.0)

    # --- the rank --------------------------------------------------------------------------

    def _hear_rank(self) -> None:
        for message in self._control.receive():
            if "failed" in message:
                self._told = message
            elif "hang" in message:
                self._hang_s = float(message["hang"])
                self._moved = time.monotonic()
            elif "join" in message:
                if self._spoke is None:
                    self._seek([(str(address), int(port)) for address, port in message["join"]])
            elif message.get("ask") == "announce":
                if self._hub is not None:
                    self._hub.announce(int(message["port"]))
                self._answer()
            elif message.get("ask") == "hub":
                self._answer(targets=self._targets())
            elif message.get("ask") == "store":
                self._asked = time.monotonic(), float(message["timeout"])

    def _answer(self, **content: Any) -> None:
        self._asked = None
        refused = {} if self._refusal is None else {"refused": list(self._refusal)}
        self._control.send({**content, **refused})

    def _answer_in_time(self, now: float) -> None:
        if self._asked is None:
            return
        since, timeout_s = self._asked
        spoke = self._spoke
        if self._port is not None:
            self._answer(port=self._port)
            return
        if spoke is not None and spoke.state == "refused":
            self._refusal = _refusal(_twice(self._identity.rank, spoke.reason))
        elif now - since > timeout_s and self._refusal is None:
            address = self._env.get("MASTER_ADDR", "?")
            where = f"{address}:{self._env.get('MASTER_PORT', '?')}"
            fix = (
                "look for an earlier message of rank 0; if it is only slow to start, export"
                " SLURMGEN_RDZV_TIMEOUT with more seconds"
            )
            if spoke is not None and spoke.state == "seeking":
                self._refusal = (
                    f"rank 0 doesn't listen at {where} after {timeout_s:g} s ({spoke.reason})",
                    "it didn't start, ended early, or a firewall lies between the nodes",
                    fix,
                )
            else:
                self._refusal = (
                    f"rank 0 on {address} opened no store within {timeout_s:g} s",
                    "it still imports torch, or waits for its GPU",
                    fix,
                )
        if self._refusal is not None:
            self._answer()

    def _reap(self) -> None:
        if self._ended is not None:
            return
        pid, status = os.waitpid(self._rank, os.WNOHANG)
        if pid == 0:
            return
        code = os.waitstatus_to_exitcode(status)
        self._ended = _Ending(code) if code >= 0 else _Ending(0, -code)
        self._ended_at = time.monotonic()
        self._hear_rank()
        if self._relay is not None:
            self._relay.drain(0.0)

    def _classify(self, now: float) -> None:
        """Once the rank has ended: whether that is a failure, and who has to know."""
        if self._ended is None or self._classified:
            return
        number = self._ended.signal or self._ended.code - 128
        if number in _ORDERS and number not in self._got and now - self._ended_at < _ORDER_S:
            # The same order to this process may still be on its way.
            return
        self._classified = True
        if self._verdict is not None:
            return
        if self._ended.well:
            self._leave({})
        elif self._was_ordered():
            self._leave({"order": self._ended.status})
        else:
            self._mine = self._own_failure(self._ended)
            if self._inquest is not None:
                self._suspect(self._mine)
            else:
                self._unsent = {"failed": self._mine.dump()}

    def _was_ordered(self) -> bool:
        """Whether the rank ended by a signal that is an order to end, and came from outside."""
        assert self._ended is not None
        number = self._ended.signal or self._ended.code - 128
        return number in _ORDERS and number in self._got

    def _own_failure(self, ended: _Ending) -> Failure:
        kind, name, text = failures.describe(ended.code, ended.signal, killed=False)
        said = str(self._told.get("text", ""))
        stderr = self._relay.tail() if self._relay is not None else []
        secondary = bool(self._told.get("secondary"))
        if said and kind == "exit":
            kind = "exception"
            last = said.strip().splitlines()[-1:] or [""]
            text = f"{text}: {last[0][:500]}"
        elif not said and ended.signal in {None, signal.SIGABRT}:
            secondary = secondary or failures.lost_peer("\n".join(stderr))
        one = self._identity
        return Failure(
            *(one.rank, one.node, self._host, one.local_rank, kind, ended.status, text, name),
            secondary=secondary and one.world_size > 1,
            steps=self._progress.count(),
            traceback=said,
            stderr=stderr,
        )

    def _place(self) -> str:
        return f"rank {self._identity.rank} on {self._identity.node}"

    # --- progress --------------------------------------------------------------------------

    def _watch(self, now: float) -> None:
        count = self._progress.count()
        if count != self._count:
            self._count, self._moved = count, now
        # Before the ranks have met, SLURMGEN_RDZV_TIMEOUT is the bound.
        idle = self._hang_s > 0 and count > 0 and now - self._moved > self._hang_s
        if not idle or self._hang is not None or self._ended or self._verdict:
            return
        one = self._identity
        failure = Failure(
            *(one.rank, one.node, self._host, one.local_rank, "hang", EXIT_FAILED),
            f"no progress for {self._hang_s:g} s",
            steps=count,
        )
        if self._inquest is not None:
            self._begin_hang(failure)
        else:
            self._hang = failure
            self._unsent = {"hung": failure.dump()}

    def _begin_hang(self, failure: Failure) -> None:
        if self._hang_at or self._verdict is not None:
            return
        self._hang, self._hang_at = failure, time.monotonic()
        if self._hub is not None:
            self._hub.tell({"dump": 1})
        self._begin_dump()

    def _begin_dump(self) -> None:
        if self._ended is None and self._dumping is None:
            now = time.monotonic()
            self._dumping, self._dump = (now, now), b""
            os.kill(self._rank, supervised.DUMP_SIGNAL)

    def _collect_dump(self, now: float) -> None:
        if self._dumping is None:
            return
        since, heard = self._dumping
        with suppress(BlockingIOError):
            data = os.read(self._stacks_pipe, 1 << 16)
            if data:
                self._dump += data
                self._dumping = since, now
                return
        if now - since < _DUMP_S and not (self._dump and now - heard > _QUIET_S):
            return
        self._dumping = None
        # The main thread is listed last.
        text = self._dump.decode(errors="replace")[-_STACK:]
        count = self._progress.count()
        log.note(f"stacks of {self._place()} after {count} steps\n{text or '(none)'}")
        if self._inquest is not None:
            self._stacks[self._identity.rank], self._steps[self._identity.rank] = text, count
        elif self._spoke is not None:
            self._spoke.send({"stacks": text, "steps": count})

    def _judge_hang(self, now: float) -> None:
        if not self._hang_at or self._hang is None or self._verdict is not None:
            return
        expected = 1 + (len(self._hub.here()) if self._hub is not None else 0)
        if len(self._stacks) < expected and now - self._hang_at < _STACKS_S:
            return
        first = self._hang
        likely = failures.suspects(self._steps, self._stacks)
        if likely and first.rank not in likely:
            rank = likely[0]
            node, host, local_rank = self._identity.node, self._host, self._identity.local_rank
            if self._hub is not None and rank in self._hub.peers:
                peer = self._hub.peers[rank]
                node, host, local_rank = peer.node, peer.host, peer.local_rank
            first = replace(first, rank=rank, node=node, host=host, local_rank=local_rank)
        first.steps = self._steps.get(first.rank, first.steps)
        first.traceback = self._stacks.get(first.rank, "")
        if likely:
            others = f" (and rank(s) {', '.join(map(str, likely[1:20]))})" if likely[1:] else ""
            first.text += f"; the others wait for it{others}"
        self._decide(first, [])

    # --- the verdict -----------------------------------------------------------------------

    def _suspect(self, failure: Failure) -> None:
        if self._inquest is not None and self._verdict is None:
            self._inquest.add(failure)
            self._judge(time.monotonic())

    def _judge(self, now: float) -> None:
        if self._inquest is None or self._verdict is not None or now < self._judge_at:
            return
        wait = self._hub is not None and self._hub.silent(failures.SECONDARY_S)
        first = self._inquest.first(wait=wait)
        if first is None:
            return
        if first.secondary and self._ordered():
            # The whole job was told to end: nobody has failed.
            return
        self._decide(first, self._inquest.heard)

    def _ordered(self) -> bool:
        return any(number in self._got for number in _ORDERS)

    def _decide(self, first: Failure, heard: Sequence[Failure]) -> None:
        where = ""
        mine = True
        if self._path is not None:
            try:
                mine = failures.write(
                    self._path, self._identity, first, heard, self._stacks, self._env
                )
                where = str(self._path)
            except OSError as error:
                log.warn(f"{self._path} can't be written: {error}")
        if self._hub is not None or self._spoke is None or (mine and where):
            own = self._identity.rank
            log.note(failures.words(first, heard, own_rank=own, where=where))
        self._pass_verdict(first)
        if self._hub is not None:
            self._hub.tell({"end": {**first.dump(), "stderr": [], "traceback": ""}})

    def _pass_verdict(self, first: Failure) -> None:
        if self._verdict is None:
            self._verdict, self._verdict_at = first, time.monotonic()

    def _end_rank(self, now: float) -> None:
        """Another rank has failed: this one can't do more than leave."""
        if self._verdict is None or self._ended is not None:
            return
        spent = now - self._verdict_at
        if self._blows == 0 and spent > _PEACE_S:
            # A stopped process acts on TERM only after CONT.
            self._strike(signal.SIGCONT, signal.SIGTERM)
        elif self._blows == 1 and spent > _PEACE_S + _GRACE_S:
            self._strike(signal.SIGKILL)

    def _strike(self, *numbers: signal.Signals) -> None:
        self._blows += 1
        for number in numbers:
            self._send(number)

    # --- signals ---------------------------------------------------------------------------

    def _take_signals(self, mask: set[int | signal.Signals]) -> None:
        wake, own_wake = os.pipe()
        for end in (wake, own_wake, self._seen_pipe):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(own_wake, warn_on_full_buffer=False)
        for number in (*_PASSED, signal.SIGCHLD):
            signal.signal(number, _nothing)
        self._wake = wake
        self._selector.register(wake, selectors.EVENT_READ, lambda _: self._woken())
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _woken(self) -> None:
        now = time.monotonic()
        for number in set(_read(self._wake)) - {signal.SIGCHLD}:
            self._got[number] = now
            self._to_pass.setdefault(number, now)

    def _pass_on(self, now: float) -> None:
        for number in _read(self._seen_pipe):
            self._seen[number] = now
        for number, since in list(self._to_pass.items()):
            if now - since < _PASS_ON_S:
                continue
            del self._to_pass[number]
            if self._seen.get(number, 0.0) < since - _PASS_ON_S and self._ended is None:
                self._send(number)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._rank, number)

    # --- the loop --------------------------------------------------------------------------

    def _pause(self) -> float:
        """Seconds until something may be due."""
        spoke = self._spoke
        busy = (
            self._ended is not None
            or self._verdict is not None
            or self._to_pass
            or self._dumping
            or self._hang_at
            or self._asked
            or self._unsent
            or (spoke is not None and spoke.state == "seeking")
            or (self._inquest is not None and self._inquest.heard)
        )
        return 0.03 if busy else BEAT_S

    def _tick(self) -> None:
        now = time.monotonic()
        gap, self._last_tick = now - self._last_tick, now
        if gap > 2 * BEAT_S:
            # This process itself was stopped, and the rank surely was, too.
            self._moved += gap
        self._reap()
        self._classify(now)
        self._pass_on(now)
        if self._relay is not None:
            self._relay.tick()
        if self._hub is not None:
            self._hub.tick()
        if self._spoke is not None:
            self._spoke.tick()
            if self._unsent is not None and self._spoke.state == "joined":
                self._spoke.send(self._unsent)
                self._unsent = None
        self._answer_in_time(now)
        self._watch(now)
        self._collect_dump(now)
        self._judge_hang(now)
        self._judge(now)
        self._end_rank(now)

    def _finished(self) -> bool:
        if self._ended is None or not self._classified:
            return False
        now = time.monotonic()
        spent = now - self._ended_at
        if self._verdict is not None:
            return self._may_go(now - self._verdict_at)
        if self._ended.well or self._was_ordered():
            if self._hub is not None:
                limit = _OTHERS_S if self._ended.well else _PARTING_S
                return self._hub.all_left() or spent > limit
            return self._spoke is None or not self._spoke.connected or spent > _PARTING_S
        if self._inquest is not None:
            return False
        if self._spoke is None or self._refusal is not None or self._spoke.state == "left":
            return True
        patience = failures.SECONDARY_S + (
            0.0 if self._spoke.state == "seeking" else self._lost_s + _PARTING_S
        )
        return spent > patience

    def _may_go(self, spent: float) -> bool:
        """Whether the others know the verdict, and the launcher can see the first failure first."""
        assert self._verdict is not None
        first = self._verdict.rank == self._identity.rank
        if not first and spent < _LINGER_S:
            return False
        connected = (self._hub is not None and bool(self._hub.here())) or (
            self._spoke is not None and self._spoke.connected
        )
        return not connected or spent > _PARTING_S

    def _leave(self, message: Message) -> None:
        """The rank has ended, and not by a failure."""
        if self._spoke is not None:
            self._spoke.leave(message)

    def _end(self) -> NoReturn:
        assert self._ended is not None
        ended = self._ended
        verdict = self._verdict
        if verdict is not None and not (ended.well and self._ended_at < self._verdict_at):
            if verdict.rank != self._identity.rank or self._ended_at > self._verdict_at:
                # So that the job ends as the first failure did, whichever rank is asked.
                ended = _Ending(verdict.status)
        if self._hub is not None:
            if verdict is None:
                self._hub.tell({"bye": 1})
            self._hub.close()
        if self._spoke is not None:
            self._spoke.close()
        if self._relay is not None:
            self._relay.drain(_PARTING_S)
        if verdict is not None and verdict.kind == "lost" and self._identity.local_rank == 0:
            # The last thing of all: what srun ends the step with must not reach this process.
            launcher.give_up(self._env)
        if ended.signal is not None:
            _die_of(ended.signal)
        os._exit(ended.code)


class _Through:
    """In place of sys.stderr: what the supervisor says goes the way of what the rank says."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def write(self, text: str) -> int:
        self._relay.put(text.encode(errors="replace"))
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def _refusal(error: LaunchError) -> tuple[str, str, str]:
    return error.what, error.why, error.fix


def _twice(rank: int, where: str) -> LaunchError:
    return LaunchError(
        f"rank {rank} arrived twice at {where}",
        why="two processes take themselves for the same rank: their variables were expanded once,"
        " in the batch shell, or the command was started twice",
        fix="let srun set RANK inside each task; export RANK=$SLURM_PROCID only there",
    )


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Its number is in the pipe of `signal.set_wakeup_fd`."""


def _read(pipe: int) -> bytes:
    try:
        return os.read(pipe, 4096)
    except BlockingIOError:
        return b""


def _die_of(number: int) -> NoReturn:
    """End by the signal that ended the rank, for whoever looks; without a second core file."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    # Where that doesn't end it: process 1 of a container.
    os._exit(128 + number)


def _toward(address: str) -> str:
    """This machine's own address on the way to `address`; no packet is sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return ""
