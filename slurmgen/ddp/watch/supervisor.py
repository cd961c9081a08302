"""The process above each rank: sees how it ends, and ends it when another one has.

It passes the rank's stderr on, keeps contact with the supervisors of the other ranks
(`meeting.py`), and ends as the rank did. It costs a fork (`fork.py`), a few MB beside the
interpreter's shared pages, and no CPU to speak of. No torch here.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from slurmgen.ddp import log
from slurmgen.ddp.failure import EXIT_LOST
from slurmgen.ddp.watch import failures, launcher, supervised
from slurmgen.ddp.watch.child import Child, Ending, die_of
from slurmgen.ddp.watch.failures import Failure
from slurmgen.ddp.watch.hang import HangWatch, Place
from slurmgen.ddp.watch.hub import BEAT_S, Peer
from slurmgen.ddp.watch.meeting import Company, Ears
from slurmgen.ddp.watch.relay import Relay
from slurmgen.ddp.watch.wire import Message, Wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurmgen.ddp.launch.identity import Identity
    from slurmgen.ddp.watch.leash import Launcher

_PEACE_S = 1.5
_GRACE_S = 3.0
"""Once another rank has failed, the rank may end by itself for _PEACE_S, then gets TERM, and KILL
after _GRACE_S more."""

_HUB_FIRST_S = 2 * BEAT_S
_LINGER_S = 1.0
_PARTING_S = 2.0
_OTHERS_S = 5.0
_STDERR = 2


@dataclass
class Ends:
    """What connects a supervisor with its rank: a socket, and the reading ends of pipes."""

    control: socket.socket
    progress: supervised.Progress
    stacks: int
    seen: int
    stderr: int | None


class Supervisor:
    """Of the rank that the process `rank` is. mask: the signals to be blocked from here on."""

    def __init__(
        self,
        identity: Identity,
        env: Mapping[str, str],
        rank: int,
        started_by: Launcher,
        ends: Ends,
        mask: set[int | signal.Signals],
    ) -> None:
        self._identity, self._env = identity, env
        self._place: Place = (
            identity.rank,
            identity.node,
            socket.gethostname(),
            identity.local_rank,
        )
        self._path = failures.path_of(env, identity)
        self._selector = selectors.DefaultSelector()
        # The rank, and who wants to hear how it ended.
        self._launcher = started_by
        self._child = Child(rank, ends.seen, self._selector, mask)
        self._classified = False
        self._told: Message = {}
        self._status: int | None = None
        self._control = Wire(ends.control, self._selector, self._hear_rank)
        self._relay = None
        if ends.stderr is not None:
            self._relay = Relay(ends.stderr, _STDERR, self._selector)
            sys.stderr = _Through(self._relay)
        self._progress = ends.progress
        self._hang = HangWatch(
            identity, env, self._place[2], ends.progress, ends.stacks, self._ask_for_stacks
        )
        # The other ranks.
        ears = Ears(self._hear_peer, self._lose_peer, self._hear_hub, self._lose_hub)
        self._company = Company(identity, env, self._selector, ears, self._control.send)
        self._unsent: Message | None = None
        # The failure.
        self._inquest = failures.Inquest() if identity.rank == 0 else None
        self._mine: Failure | None = None
        self._verdict: Failure | None = None
        self._verdict_at = self._judge_at = 0.0
        self._blows = 0
        self._last_tick = time.monotonic()

    def run(self) -> NoReturn:
        """Supervise, and end as the rank does."""
        if self._identity.rank == 0:
            failures.forget(self._path)
        self._company.gather()
        while not self._finished():
            for key, events in self._selector.select(self._pause()):
                key.data(events)
            self._tick()
        self._end()

    # --- what is heard -----------------------------------------------------------------------

    def _hear_rank(self) -> None:
        for message in self._control.receive():
            if "ended" in message:
                self._status = int(message["ended"])
            elif "failed" in message:
                self._told, self._status = message, int(message["failed"])
            elif "hang" in message:
                self._hang.expect(float(message["hang"]))
            elif "join" in message:
                self._company.join(message["join"])
            elif message.get("ask") == "announce":
                self._company.announce(int(message["port"]))
            elif message.get("ask") == "hub":
                self._company.tell_targets()
            elif message.get("ask") == "store":
                self._company.ask_for_store(time.monotonic(), float(message["timeout"]))

    def _hear_peer(self, peer: Peer, message: Message) -> None:
        if "failed" in message:
            self._suspect(message["failed"])
        elif "hung" in message:
            self._begin_hang(message["hung"])
        elif "stacks" in message:
            self._hang.hear(peer.rank, message["stacks"], message["steps"])
        elif "order" in message:
            # Told to end, and perhaps it alone: then the others wait for it in vain.
            text = "was told to end by a signal"
            place = _place_of(peer)
            self._suspect(Failure(*place, "signal", message["order"], text, secondary=True))

    def _lose_peer(self, peer: Peer, why: str) -> None:
        self._suspect(failures.lost(*_place_of(peer), why, self._witness()))

    def _hear_hub(self, message: Message) -> None:
        spoke = self._company.spoke
        if "port" in message:
            self._company.hear_store(message["port"])
        elif "end" in message and spoke is not None:
            self._pass_verdict(message["end"])
            spoke.leave({"ending": 1})
        elif "dump" in message:
            self._dump()

    def _lose_hub(self, why: str) -> None:
        ending, spoke = self._child.ending, self._company.spoke
        if self._verdict is not None or (ending is not None and ending.well):
            return
        hub = spoke.hub if spoke is not None else {}
        node, host = str(hub.get("node", "?")), str(hub.get("host", "?"))
        log.warn(f"lost contact with rank 0 on {node}: {why}")
        self._inquest = failures.Inquest()
        if self._mine is not None:
            self._inquest.add(self._mine)
        self._inquest.add(failures.lost(0, node, host, 0, why, self._witness()))
        # The survivors can't agree any more: rank 0, if it lives, is the first to write, then the
        # lowest. Where a link is cut, both ends notice within a beat of each other.
        after = _HUB_FIRST_S + min(self._identity.rank * 0.02, 2.0)
        self._judge_at = time.monotonic() + after

    def _witness(self) -> str:
        return f"rank {self._identity.rank} on {self._identity.node}"

    # --- how the rank ends -------------------------------------------------------------------

    def _reap(self) -> None:
        if not self._child.reap():
            return
        self._hear_rank()
        if self._relay is not None:
            self._relay.drain(0.0)
        ending, status = self._child.ending, self._status
        if ending is not None and ending.signal is not None and status is not None:
            # Threads of torch's that want Python back while it ends abort the process.
            name = failures.signal_name(ending.signal)
            log.note(
                f"ended with status {status}, which counts; then {name} while Python tidied up"
            )
            self._child.ending = replace(ending, code=status, signal=None)

    def _classify(self, now: float) -> None:
        """Once the rank has ended: whether that is a failure, and who has to know."""
        ending, spoke = self._child.ending, self._company.spoke
        if ending is None or self._classified or self._child.may_be_ordered(now):
            return
        self._classified = True
        if self._verdict is not None:
            return
        if ending.well or self._child.was_ordered:
            if spoke is not None:
                spoke.leave({} if ending.well else {"order": ending.status})
            return
        self._mine = self._own_failure(ending)
        if self._inquest is not None:
            self._suspect(self._mine)
        else:
            self._unsent = {"failed": self._mine.dump()}

    def _own_failure(self, ending: Ending) -> Failure:
        kind, name, text = failures.describe(ending.code, ending.signal, killed=False)
        said = str(self._told.get("text", ""))
        stderr = self._relay.tail() if self._relay is not None else []
        secondary = bool(self._told.get("secondary"))
        if said and kind == "exit":
            kind = "exception"
            last = said.strip().splitlines()[-1:] or [""]
            text = f"{text}: {last[0][:500]}"
        elif not said and ending.signal in {None, signal.SIGABRT}:
            secondary = secondary or failures.lost_peer("\n".join(stderr))
        return Failure(
            *(*self._place, kind, ending.status, text, name),
            secondary=secondary and self._identity.world_size > 1,
            steps=self._progress.count(),
            traceback=said,
            stderr=stderr,
        )

    # --- hangs -------------------------------------------------------------------------------

    def _look_for_hangs(self, now: float) -> None:
        if self._child.ending is None and self._verdict is None:
            failure = self._hang.look(now)
            if failure is not None and self._inquest is not None:
                self._begin_hang(failure)
            elif failure is not None:
                self._unsent = {"hung": failure.dump()}
        collected = self._hang.collect(now)
        if collected is not None:
            text, steps = collected
            if self._inquest is not None:
                self._hang.hear(self._identity.rank, text, steps)
            elif self._company.spoke is not None:
                self._company.spoke.send({"stacks": text, "steps": steps})
        if self._verdict is None:
            failure = self._hang.judge(now, self._company.count, self._place_of_rank)
            if failure is not None:
                self._decide(failure, [])

    def _begin_hang(self, failure: Failure) -> None:
        if self._verdict is None and self._hang.begin(failure):
            if self._company.hub is not None:
                self._company.hub.tell({"dump": 1})
            self._dump()

    def _dump(self) -> None:
        if self._child.ending is None:
            self._hang.dump()

    def _ask_for_stacks(self) -> None:
        self._child.send(supervised.DUMP_SIGNAL)

    def _place_of_rank(self, rank: int) -> Place:
        hub = self._company.hub
        if hub is not None and rank in hub.peers:
            return _place_of(hub.peers[rank])
        return rank, *self._place[1:]

    # --- the verdict -------------------------------------------------------------------------

    def _suspect(self, failure: Failure) -> None:
        if self._inquest is not None and self._verdict is None:
            self._inquest.add(failure)
            self._judge(time.monotonic())

    def _judge(self, now: float) -> None:
        if self._inquest is None or self._verdict is not None or now < self._judge_at:
            return
        hub = self._company.hub
        first = self._inquest.first(wait=hub is not None and hub.silent(failures.SECONDARY_S))
        if first is None or (first.secondary and self._child.ordered):
            # In the second case the whole job was told to end: nobody has failed.
            return
        self._decide(first, self._inquest.heard)

    def _decide(self, first: Failure, heard: Sequence[Failure]) -> None:
        where = ""
        mine = True
        hub, spoke, stacks = self._company.hub, self._company.spoke, self._hang.stacks
        if self._path is not None:
            try:
                mine = failures.write(self._path, self._identity, first, heard, stacks, self._env)
                where = str(self._path)
            except OSError as error:
                log.warn(f"{self._path} can't be written: {error}")
        if hub is not None or spoke is None or (mine and where):
            own = self._identity.rank
            log.note(failures.words(first, heard, own_rank=own, where=where))
        self._pass_verdict(first)
        if hub is not None:
            hub.tell({"end": {**first.dump(), "stderr": [], "traceback": ""}})

    def _pass_verdict(self, first: Failure) -> None:
        if self._verdict is None:
            self._verdict, self._verdict_at = first, time.monotonic()

    def _end_rank(self, now: float) -> None:
        """Another rank has failed: this one can't do more than leave."""
        if self._verdict is None:
            return
        spent = now - self._verdict_at
        if self._blows == 0 and spent > _PEACE_S:
            self._blows = 1
            # A stopped process acts on TERM only after CONT.
            self._child.send(signal.SIGCONT, signal.SIGTERM)
        elif self._blows == 1 and spent > _PEACE_S + _GRACE_S:
            self._blows = 2
            self._child.send(signal.SIGKILL)

    # --- the loop ----------------------------------------------------------------------------

    def _pause(self) -> float:
        """Seconds until something may be due."""
        spoke = self._company.spoke
        busy = (
            self._child.ending is not None
            or self._child.passes
            or self._verdict is not None
            or self._hang.busy
            or self._company.asked
            or self._unsent is not None
            or (spoke is not None and spoke.state == "seeking")
            or (self._inquest is not None and self._inquest.heard)
        )
        return 0.03 if busy else BEAT_S

    def _tick(self) -> None:
        now = time.monotonic()
        gap, self._last_tick = now - self._last_tick, now
        if gap > 2 * BEAT_S:
            self._hang.forgive(gap)
        if self._launcher.gone:
            self._end_as_orphan()
        self._reap()
        self._classify(now)
        self._child.pass_on(now)
        if self._relay is not None:
            self._relay.tick()
        self._company.tick(now)
        spoke = self._company.spoke
        if self._unsent is not None and spoke is not None and spoke.state == "joined":
            spoke.send(self._unsent)
            self._unsent = None
        self._look_for_hangs(now)
        self._judge(now)
        self._end_rank(now)

    def _finished(self) -> bool:
        ending, hub, spoke = self._child.ending, self._company.hub, self._company.spoke
        if ending is None or not self._classified:
            return False
        now = time.monotonic()
        spent = now - ending.at
        if self._verdict is not None:
            return self._may_go(now - self._verdict_at)
        if ending.well or self._child.was_ordered:
            if hub is not None:
                return hub.all_left() or spent > (_OTHERS_S if ending.well else _PARTING_S)
            return spoke is None or not spoke.connected or spent > _PARTING_S
        if self._inquest is not None:
            return False
        if spoke is None or self._company.refused or spoke.state == "left":
            return True
        patience = failures.SECONDARY_S
        if spoke.state != "seeking":
            patience += self._company.lost_s + _PARTING_S
        return spent > patience

    def _may_go(self, spent: float) -> bool:
        """Whether the others know the verdict, and the launcher can see the first failure first."""
        assert self._verdict is not None
        first = self._verdict.rank == self._identity.rank
        if not first and spent < _LINGER_S:
            return False
        return not self._company.connected or spent > _PARTING_S

    def _end_as_orphan(self) -> NoReturn:
        """Nobody is there to hear how the rank ends, or to end it."""
        log.note(f"what had started this rank is gone; rank {self._identity.rank} ends")
        self._child.kill_all()
        self._company.close()
        if self._relay is not None:
            self._relay.drain(0.0)
        os._exit(EXIT_LOST)

    def _end(self) -> NoReturn:
        ending, verdict, hub = self._child.ending, self._verdict, self._company.hub
        assert ending is not None
        code, number = ending.code, ending.signal
        ended_first = ending.at < self._verdict_at
        if verdict is not None and not (ended_first and ending.well):
            if verdict.rank != self._identity.rank or not ended_first:
                # So that the job ends as the first failure did, whichever rank is asked.
                code, number = verdict.status, None
        if hub is not None and verdict is None:
            hub.tell({"bye": 1})
        self._company.close()
        if self._relay is not None:
            self._relay.drain(_PARTING_S)
        if verdict is not None and verdict.kind == "lost" and self._identity.local_rank == 0:
            # The last thing of all: what srun ends the step with must not reach this process.
            launcher.give_up(self._env)
        if number is not None:
            die_of(number)
        os._exit(code)


class _Through:
    """In place of sys.stderr: what the supervisor says goes the way of what the rank says."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def write(self, text: str) -> int:
        self._relay.put(text.encode(errors="replace"))
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def _place_of(peer: Peer) -> Place:
    return peer.rank, peer.node, peer.host, peer.local_rank
