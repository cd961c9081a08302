"""The link between supervisors, and what is decided by what comes over it."""

from __future__ import annotations

import selectors
import time
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.ddp.watch import failures, ports
from slurmgen.ddp.watch.failures import Failure, Inquest
from slurmgen.ddp.watch.hub import Hub, Peer
from slurmgen.ddp.watch.secret import Token
from slurmgen.ddp.watch.spoke import Spoke
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slurmgen.ddp.watch.wire import Message


def me(rank: int) -> Message:
    return {"rank": rank, "node": f"n{rank}", "host": "h", "local_rank": 0}


class Net:
    """A hub and spokes in one process, on one selector."""

    def __init__(self, size: int, lost_s: float = 10.0) -> None:
        self.selector = selectors.DefaultSelector()
        self.token = Token("run", size)
        self.lost_s = lost_s
        self.heard: list[tuple[int, Message]] = []
        self.lost: list[tuple[int, str]] = []
        self.told: list[Message] = []
        self.hub = Hub(
            self.token,
            me(0),
            ports.listen(["127.0.0.1"], 0),
            self.selector,
            lost_s=lost_s,
            heard=self._hear,
            lost=lambda peer, why: self.lost.append((peer.rank, why)),
        )
        self.spokes: list[Spoke] = []

    def _hear(self, peer: Peer, message: Message) -> None:
        self.heard.append((peer.rank, message))

    def spoke(self, rank: int, run: str = "run") -> Spoke:
        one = Spoke(
            Token(run, self.token.world_size),
            me(rank),
            [("127.0.0.1", self.hub.port)],
            self.selector,
            lost_s=self.lost_s,
            heard=self.told.append,
            lost=lambda why: self.lost.append((-rank, why)),
        )
        self.spokes.append(one)
        return one

    def until(self, met: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not met():
            assert time.monotonic() < end
            for key, events in self.selector.select(0.01):
                key.data(events)
            self.hub.tick()
            for one in self.spokes:
                one.tick()

    def close(self) -> None:
        for one in self.spokes:
            one.close()
        self.hub.close()
        self.selector.close()


@pytest.fixture
def net() -> Iterator[Callable[..., Net]]:
    made: list[Net] = []

    def make(size: int, **more: Any) -> Net:
        made.append(Net(size, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_thousand_ranks_join_and_leave(net: Callable[..., Net]) -> None:
    run = net(1024)
    for rank in range(1, 1024):
        run.spoke(rank)
    run.until(lambda: len(run.hub.here()) == 1023)
    run.hub.announce(4711)
    run.until(lambda: len(run.told) == 1023)
    assert run.told == [{"port": 4711}] * 1023
    for one in run.spokes:
        one.leave({})
    run.until(lambda: run.hub.all_left() and not any(one.connected for one in run.spokes))
    assert run.lost == []


def test_who_comes_late_learns_the_port(net: Callable[..., Net]) -> None:
    run = net(2)
    run.hub.announce(4711)
    one = run.spoke(1)
    run.until(lambda: run.told == [{"port": 4711}])
    assert (one.state, one.hub["node"]) == ("joined", "n0")


def test_a_rank_of_another_run_stays_outside(net: Callable[..., Net]) -> None:
    run = net(2)
    one = run.spoke(1, "other")
    run.until(lambda: "isn't rank 0 of this run" in one.reason)
    assert (one.state, run.hub.here()) == ("seeking", [])


def test_the_same_rank_twice(net: Callable[..., Net]) -> None:
    run = net(2)
    first = run.spoke(1)
    run.until(lambda: first.state == "joined")
    second = run.spoke(1)
    run.until(lambda: second.state == "refused")
    assert first.state == "joined"


def test_an_end_without_leave_is_a_loss(net: Callable[..., Net]) -> None:
    run = net(3)
    first, second = run.spoke(1), run.spoke(2)
    run.until(lambda: len(run.hub.here()) == 2)
    first.leave({})
    second.close()
    run.until(run.hub.all_left)
    assert run.lost == [(2, "its connection ended")]
    assert run.heard == [(1, {"bye": 1})]


def test_ports_are_those_of_the_run_and_not_ephemeral() -> None:
    one = ports.candidates(Token("a", 8), 23456, {})
    assert one == ports.candidates(Token("a", 8), 23456, {})
    other = ports.candidates(Token("b", 8), 23456, {})
    assert (one[0], other[0], len(set(one))) == (23456, 23456, 16)
    assert set(one[1:]) != set(other[1:])
    assert all(12_000 <= port < 32_000 for port in one)


def test_reserved_ports_come_instead() -> None:
    env = {"SLURM_STEP_RESV_PORTS": "12000-12002,12007"}
    assert ports.candidates(Token("a", 8), 1, env) == [12000, 12001, 12002, 12007]


def test_where_rank_0_listens() -> None:
    assert ports.own_addresses("10.0.0.1", ["10.0.0.1"], 2) == ["10.0.0.1"]
    assert ports.own_addresses("n1", ["127.0.1.1"], 1) == ["127.0.1.1"]
    # The other nodes find another address behind that name.
    assert ports.own_addresses("n1", ["127.0.1.1"], 2) == []


def failed(rank: int, *, secondary: bool = False) -> Failure:
    return Failure(rank, "n1", "h", rank, "exit", 1, "x", secondary=secondary)


def test_the_cause_is_preferred_and_else_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    inquest = Inquest()
    inquest.add(failed(1, secondary=True))
    assert inquest.first() is None
    monkeypatch.setattr(failures, "SECONDARY_S", -1.0)
    assert inquest.first() == failed(1, secondary=True)
    # Somebody is silent, and may be the cause.
    assert inquest.first(wait=True) is None
    inquest.add(failed(2))
    inquest.add(failed(3))
    first = inquest.first()
    assert first is not None
    assert first.rank == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch.distributed.DistBackendError: NCCL error", True),
        ("RuntimeError: [gloo/pair.cc:534] Connection closed by peer [10.0.0.1]:3", True),
        ("RuntimeError: Read error [10.0.0.1]:3: Connection reset by peer", True),
        ("ValueError: no such column", False),
        ("torch.OutOfMemoryError: CUDA out of memory", False),
    ],
)
def test_what_speaks_of_a_lost_peer(text: str, expected: bool) -> None:
    assert failures.lost_peer(text) is expected


def stack(frame: str) -> str:
    return f"Current thread 0x00007f01 (most recent call first):\n  File {frame}\n"


@pytest.mark.parametrize(
    ("steps", "frames", "expected"),
    [
        ({0: 5, 1: 4, 2: 5}, "aaa", [1]),
        ({0: 5, 1: 5, 2: 5}, "aba", [1]),
        ({0: 5, 1: 5, 2: 5}, "aaa", []),
        ({0: 5, 1: 5}, "ab", []),
        ({0: 5}, "a", [0]),
    ],
)
def test_whom_the_others_wait_for(steps: dict[int, int], frames: str, expected: list[int]) -> None:
    assert failures.suspects(steps, dict(enumerate(map(stack, frames)))) == expected
