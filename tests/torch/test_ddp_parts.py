"""The parts of a resumed training: state, buckets, agreement, workers."""

from __future__ import annotations

import random
import time
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

Ranks = Any

pytestmark = pytest.mark.torch


def test_what_a_capture_holds_stays_as_it_was() -> None:
    import torch

    from slurmgen.ddp.train import state

    tied = torch.arange(4.0)
    item = {"one": tied, "again": tied, "view": tied[1:], "deep": [(1, tied)], "c": Counter("aab")}
    captured = state.capture(item)
    tied += 1
    item["c"]["a"] = 9
    assert captured["one"].tolist() == [0, 1, 2, 3]
    assert captured["one"] is captured["again"] is captured["deep"][0][1]
    assert captured["view"].tolist() == [1, 2, 3]
    assert captured["c"] == Counter("aab")
    state.restore(item, captured)
    assert item["one"].tolist() == [0, 1, 2, 3]
    item["one"] += 1
    assert captured["one"].tolist() == [0, 1, 2, 3]


def test_captured_memory_is_used_again() -> None:
    import torch

    from slurmgen.ddp.train import state

    model = torch.nn.BatchNorm1d(4)
    pool: dict[Any, Any] = {}
    first = state.capture(model, pool)
    assert isinstance(first, OrderedDict)
    assert vars(first)["_metadata"][""] == {"version": 2}
    with torch.no_grad():
        model.weight += 1
    second = state.capture(model, pool)
    assert first["weight"].data_ptr() == second["weight"].data_ptr()
    assert second["weight"].tolist() == [2] * 4
    state.capture(torch.nn.Linear(1, 1), pool)
    assert len(pool) == 2


def test_random_numbers_go_on() -> None:
    import torch

    from slurmgen.ddp.train import state

    numpy = pytest.importorskip("numpy")
    cpu = torch.device("cpu")
    before = state.capture_random(cpu)
    drawn = [random.random(), torch.rand(2).tolist(), numpy.random.rand(2).tolist()]
    state.check_values("random", before)
    state.restore_random(before, cpu)
    assert [random.random(), torch.rand(2).tolist(), numpy.random.rand(2).tolist()] == drawn


def test_sharded_state_is_refused() -> None:
    import torch

    from slurmgen.ddp.train import state

    class ZeroRedundancyOptimizer(torch.optim.SGD):
        pass

    with pytest.raises(TypeError, match=r"sharded over the ranks in a way of its own"):
        state.check("optimizer", ZeroRedundancyOptimizer([torch.zeros(1)], lr=1))


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[bool, bool]]]:
    """`pair(seconds)`: two ranks that step alternately; `tick(wishes)` steps both."""
    import torch

    from slurmgen.ddp.train import consensus

    asked: list[Any] = []

    class Work:
        def __init__(self) -> None:
            self.needs = (len(asked) + 1) // 2 * 2

        def wait(self) -> None:
            assert len(asked) >= self.needs, "a rank waits for one that hasn't come this far"

    def all_reduce(tensor: Any, _op: Any, **_: Any) -> Work:
        asked.append(tensor)
        if len(asked) % 2 == 0:
            both = torch.maximum(asked[-1], asked[-2])
            asked[-1].copy_(both)
            asked[-2].copy_(both)
        return Work()

    clock = [0.0]
    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    ranks = [consensus.Consensus(group="a group") for _ in range(2)]

    def tick(*wishes: tuple[bool, bool], seconds: float = 1.0) -> list[tuple[bool, bool]]:
        clock[0] += seconds
        return [
            one.tick(stop=stop, save=save) for one, (stop, save) in zip(ranks, wishes, strict=True)
        ]

    return tick


NOTHING = (False, False)


def test_one_rank_s_wish_is_granted_to_all_a_step_later(pair: Callable[..., Any]) -> None:
    assert pair(NOTHING, NOTHING) == [NOTHING, NOTHING]
    assert pair(NOTHING, (True, False)) == [NOTHING, NOTHING]
    assert pair(NOTHING, (True, False)) == [(True, False), (True, False)]


def test_a_save_is_granted_once(pair: Callable[..., Any]) -> None:
    wish = (False, True)
    assert pair(wish, NOTHING) == [NOTHING, NOTHING]
    assert pair(wish, NOTHING) == [wish, wish]
    assert pair(NOTHING, NOTHING) == [NOTHING, NOTHING]
    assert pair(NOTHING, NOTHING) == [NOTHING, NOTHING]


def test_short_steps_ask_less_often(pair: Callable[..., Any]) -> None:
    from slurmgen.ddp.train import consensus

    seconds = consensus.INTERVAL_S / 10
    for _ in range(3):
        pair(NOTHING, NOTHING, seconds=seconds)
    granted = [pair((True, False), NOTHING, seconds=seconds) for _ in range(30)]
    when = [number for number, both in enumerate(granted) if both[0][0]]
    assert 5 <= when[0] <= 12
    assert all(one == other for one, other in granted)


BUCKETS = """
import sys
import torch
from torch import nn
from slurmgen import ddp
from slurmgen.ddp.train import buckets


class Reversed(nn.Module):
    # Used in another order than made in, as in many real models.
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(40, 40) for _ in range(6))

    def forward(self, inputs):
        for part in reversed(self.parts):
            inputs = part(inputs).tanh()
        return inputs


def sizes(parallel):
    return parallel._get_ddp_logging_data().get("rebuilt_bucket_sizes")


def main():
    torch.manual_seed(0)
    model = Reversed()
    parallel = ddp.wrap(model, bucket_cap_mb=0.01)
    order = buckets.BucketOrder(parallel)
    order.record()
    for _ in range(3):
        parallel(torch.ones(4, 40)).sum().backward()
    order.recorded()
    assert order.names[:2] == ["parts.0.bias", "parts.0.weight"] or order.names[0][:7] == "parts.0"

    other = ddp.wrap(Reversed(), bucket_cap_mb=0.01)
    again = buckets.BucketOrder(other)
    seen = []
    other.module.register_forward_hook(lambda *_: seen.append(1))
    assert again.rehearse(order.names)
    assert not seen and all(one.grad is None for one in other.parameters())
    other(torch.ones(4, 40)).sum().backward()
    assert seen == [1]
    assert sizes(other) == sizes(parallel) and sizes(other), (sizes(other), sizes(parallel))

    # Another model, or one whose graph is fixed at the first pass.
    assert not buckets.BucketOrder(ddp.wrap(nn.Linear(1, 1))).rehearse(order.names)
    fixed = ddp.wrap(nn.Linear(1, 1), static_graph=True)
    assert not buckets.BucketOrder(fixed).rehearse(["weight", "bias"])
"""


def test_buckets_are_sorted_as_they_were(ranks: Ranks, port: int) -> None:
    ranks.write("job.py", BUCKETS)
    ranks.start_step("job:main", port=port)
    ended = ranks.end()
    assert [e.code for e in ended] == [0, 0], ended


def test_a_loader_that_goes_on_draws_what_it_would_have_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    from slurmgen.ddp import group
    from slurmgen.ddp.train import data

    class Noise(torch.utils.data.Dataset[float]):
        read: list[int] = []  # noqa: RUF012
        factor = 1.0

        def __len__(self) -> int:
            return 12

        def __getitem__(self, index: int) -> float:
            return self.factor * (index + float(torch.rand(())) + random.random())

    def double(_: int) -> None:
        torch.utils.data.get_worker_info().dataset.factor = 2.0

    monkeypatch.setattr(group, "device", lambda: torch.device("cpu"))
    for options in ({}, {"worker_init_fn": double}, {"persistent_workers": True}):
        loader: data.Loader[float] = data.loader(
            Noise(), global_batch_size=2, num_workers=2, **options
        )
        inner = loader.dataset
        whole = [batch.tolist() for batch in loader]
        assert loader.dataset is inner
        loader.epoch, loader.skip = 0, 3
        assert [batch.tolist() for batch in loader] == whole[3:]
        # Of that iteration alone.
        assert len(list(loader)) == 6
        if "worker_init_fn" in options:
            assert max(max(batch) for batch in whole) > 20


def test_a_state_taken_apart_and_put_together() -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.tensor import DTensor, Shard, distribute_tensor

    from slurmgen.ddp.train import shards, state

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
        weight = distribute_tensor(torch.arange(6.0).view(3, 2), mesh, [Shard(0)])
        factor = distribute_tensor(torch.ones(3, 1), mesh, [Shard(0)])
        parameter = torch.nn.Parameter(weight)
        optimizer = torch.optim.SGD([parameter])
        # Of the parameter's shape, and of another, as Adafactor's.
        optimizer.state[parameter] = {"moment": weight * 2, "factor": factor, "step": 3}
        pieces: dict[str, torch.Tensor] = {}
        paths: dict[str, tuple[object, ...]] = {}
        saved = shards.split("opt", optimizer.state_dict(), pieces, paths)
        assert sorted(pieces) == ["opt.state.0.factor", "opt.state.0.moment"]
        assert paths["opt.state.0.factor"] == ("opt", "state", "0", "factor")
        state.check_values("saved", saved)

        targets: dict[str, torch.Tensor] = {}
        fresh = torch.optim.SGD([parameter])
        joined, touched = shards.join(fresh, saved, targets, torch.device("cpu"))
        assert touched
        for key, target in targets.items():
            assert isinstance(target, DTensor)
            assert target.placements == pieces[key].placements
            target.copy_(pieces[key])
        state.restore(fresh, joined, give=True)
        assert torch.equal(fresh.state[parameter]["moment"].full_tensor(), weight.full_tensor() * 2)
        assert fresh.state[parameter]["step"] == 3

        # Saved whole, now to be shared out; saved sharded, with no place for it.
        joined, _ = shards.join({"w": weight}, {"w": torch.ones(3, 2)}, {}, torch.device("cpu"))
        assert isinstance(joined["w"], DTensor)
        mark = shards.split("notes", {"w": weight}, {}, {})
        for item in ({}, {"w": torch.ones(2, 2)}):
            with pytest.raises(RuntimeError, match=r"a tensor notes\.w of shape \[3, 2\]"):
                shards.join(item, mark, {}, torch.device("cpu"))
    finally:
        dist.destroy_process_group()
