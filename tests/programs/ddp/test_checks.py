"""What the checks make of facts, those of GPUs too, which the tests' machine may lack."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.ddp.checks.facts import Batch, Facts, Sample, Stepped, listed
from slurmgen.ddp.failure import LaunchError
from slurmgen.ddp.launch import preflight

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.torch

TELLING = [Batch([("a", True)]), Batch([("b", True)])]


def facts(rank: int, **changes: Any) -> Facts:
    node = f"n{rank // 2 + 1}"
    return Facts(**{"rank": rank, "node": node, "machine": node, **changes})


def stepped(scale: float, *, kind: Any = "bare", value: float = 1.0, **changes: Any) -> Stepped:
    """An optimizer with two parameters; the gradients of both are `scale`."""
    sample = Sample(2, "ab", [(value, value)] * 2, [[(scale, scale)] * 2] * 2)
    if kind == "ddp":
        return Stepped("ddp", wrapped=replace(sample, **changes))
    return Stepped(kind, bare=replace(sample, **changes))


def found(module: str, everyone: list[Facts], check: str = "check") -> list[str]:
    from slurmgen.ddp import checks

    return list(getattr(getattr(checks, module), check)(everyone))


def test_facts_survive_the_store() -> None:
    one = facts(
        1, cpus=1 << 200, batches=TELLING, optimizers=[stepped(1.0), stepped(2.0, kind="ddp")]
    )
    assert Facts.parse(one.dump()) == one


def test_ranks_in_a_message() -> None:
    assert listed([3]) == "rank 3"
    assert listed([1, 0]) == "ranks 0, 1"
    assert listed(list(range(9))) == "ranks 0, 1, 2, 3, 4, 5, 6, 7, ..."


# --- data -----------------------------------------------------------------------------


def test_some_ranks_with_the_same_batches() -> None:
    """As with the local rank in place of the rank, on two nodes."""
    own = {
        rank: [Batch([(f"{rank % 2}a", True)]), Batch([(f"{rank % 2}b", True)])]
        for rank in range(4)
    }
    ddp = [stepped(1.0, kind="ddp")]
    [text] = found("same_data", [facts(r, batches=own[r], optimizers=ddp) for r in range(4)])
    assert text.startswith("ranks 0, 2 train on the same batches")
    # Without DistributedDataParallel over all of them it may be tensor parallelism.
    bare = [stepped(1.0)]
    assert not found("same_data", [facts(r, batches=own[r], optimizers=bare) for r in range(4)])


@pytest.mark.parametrize(
    "batches",
    [
        TELLING[:1],
        [TELLING[0], TELLING[0]],  # The same over and over: a benchmark.
        [Batch([("a", False)]), Batch([("b", False)])],
        [],
    ],
)
def test_batches_that_say_nothing(batches: list[Batch]) -> None:
    ddp = [stepped(1.0, kind="ddp")]
    assert not found("same_data", [facts(r, batches=batches, optimizers=ddp) for r in range(2)])


@pytest.mark.parametrize("kind", ["ddp", "fsdp", "bare", "other"])
def test_who_may_share_batches(kind: Any) -> None:
    everyone = [facts(r, batches=TELLING, optimizers=[stepped(1.0, kind=kind)]) for r in range(2)]
    assert bool(found("same_data", everyone)) == (kind != "other")
    assert not found("same_data", everyone[:1])


def test_each_rank_goes_through_all_samples() -> None:
    """Shuffled by seeds of their own, so that no two batches are alike."""

    def everyone(kind: str = "ddp", other: str = "d") -> list[Facts]:
        steps = [stepped(1.0, kind=kind)]
        return [
            facts(rank, whole=whole, samples=96, optimizers=steps)
            for rank, whole in enumerate(["d", other])
        ]

    [text] = found("same_data", everyone())
    assert text.startswith("each of 2 ranks goes through all 96 samples in an epoch")
    assert not found("same_data", everyone(other="another file"))
    assert not found("same_data", everyone(other=""))
    assert not found("same_data", everyone("bare"))


def test_the_same_data_set_is_known_without_loading_a_sample() -> None:
    import torch
    from torch.utils.data import (
        ConcatDataset,
        Dataset,
        IterableDataset,
        RandomSampler,
        SequentialSampler,
        Subset,
        TensorDataset,
    )

    from slurmgen.ddp.checks.contents import of_whole

    class Files(Dataset[str]):
        """Raises for each sample: none may be loaded."""

        def __init__(self, folder: str, count: int = 40, labels: Any = None) -> None:
            self.columns = {"path": [f"{folder}/{number}.jpg" for number in range(count)]}
            self.labels = labels

        def __len__(self) -> int:
            return len(self.columns["path"])

    class Lazy(Dataset[int]):
        """Which part it reads shows only when it does."""

        def __len__(self) -> int:
            return 40

    class Stream(IterableDataset[int]):
        def __len__(self) -> int:
            return 40

        def __iter__(self) -> Iterator[int]:
            raise AssertionError

    def mark(dataset: Any, sampler: Any = RandomSampler) -> str:
        return of_whole(dataset, sampler(dataset))

    images = torch.arange(40 * 9.0).reshape(40, 9)
    tensors = TensorDataset(images, torch.zeros(40))
    assert mark(tensors)
    assert mark(tensors) == mark(TensorDataset(images.clone(), torch.zeros(40)), SequentialSampler)
    assert mark(tensors) != mark(TensorDataset(images + 1, torch.zeros(40)))
    assert mark(Files("a")) == mark(Files("a"))
    assert mark(Files("a")) != mark(Files("b"))
    assert mark(Files("a")) != mark(Files("a", 41))
    assert mark(Subset(tensors, range(0, 40, 2))) != mark(Subset(tensors, range(1, 40, 2)))
    both = ConcatDataset([tensors, Files("a")])
    assert mark(both) == mark(ConcatDataset([tensors, Files("a")]))
    assert mark(both) != mark(ConcatDataset([tensors, Files("b")]))
    for silent in (Lazy(), Stream(), ConcatDataset([tensors, Lazy()]), Subset(Lazy(), range(9))):
        assert mark(silent, SequentialSampler) == ""
    assert mark(TensorDataset(torch.ones(40, 9))) == ""
    some = RandomSampler(tensors, replacement=True)
    assert of_whole(tensors, some) == ""
    assert of_whole(tensors, RandomSampler(tensors, num_samples=10)) == ""
    pytest.importorskip("numpy")
    array = images.numpy()
    assert mark(Files("a", labels=array)) == mark(Files("a", labels=array.copy()))
    assert mark(Files("a", labels=array)) != mark(Files("a", labels=array + 1))
    names = array.astype(str)
    assert mark(Files("a", labels=names)) != mark(Files("a", labels=array))


# --- gradients ------------------------------------------------------------------------


def test_rounding_is_not_another_model() -> None:
    near = [facts(r, optimizers=[stepped(1.0 + 1e-5 * r)]) for r in range(2)]
    assert not found("gradients", near)
    assert found("gradients", [facts(r, optimizers=[stepped(1.0 + r)]) for r in range(2)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"gradients": [[(9.0, 9.0)] * 2]}, {}),  # A single step.
        ({"gradients": [[(1.0, 1.0)] * 2, [(9.0, 9.0)] * 2]}, {}),  # Alike in one of the steps.
        ({"gradients": [[(float("inf"), float("nan"))] * 2] * 2}, {}),
        ({"gradients": [[(0.0, 0.0)] * 2] * 2}, {"gradients": [[(0.0, 0.0)] * 2] * 2}),
        ({"gradients": [[(9.0, 9.0)] * 2] * 2, "names": "of another part"}, {}),
    ],
)
def test_gradients_that_say_nothing(one: Any, other: Any) -> None:
    both = [stepped(1.0, **one), stepped(1.0, **other)]
    assert not found("gradients", [facts(r, optimizers=[both[r]]) for r in range(2)])


# --- devices --------------------------------------------------------------------------


def test_two_ranks_on_one_gpu() -> None:
    everyone = [facts(rank, own=f"cuda:{rank % 2}", gpus=["GPU-0"]) for rank in range(2)]
    [text] = found("devices", everyone, "check_shared")
    assert text.startswith("ranks 0, 1 train on one GPU, GPU-0 on n1, while others idle")
    # Another machine's GPU of that name, and a rank with another one than its own.
    everyone = [facts(0, gpus=["cuda:0"]), facts(1, gpus=["cuda:1"]), facts(2, gpus=["cuda:0"])]
    assert not found("devices", everyone, "check_shared")


def test_a_gpu_that_nobody_uses() -> None:
    [text] = found("devices", [facts(0), facts(1, own="cuda:1", idle=True)], "check_idle")
    assert text.startswith("rank 1 trains on the CPU, and nothing is on cuda:1 of n1")
    assert not found("devices", [facts(0, own="cuda:0", gpus=["GPU-0"])], "check_idle")


# --- CPUs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "shared"),
    [
        ({"cpus": 0b1111}, "8 DataLoader workers of 2 rank(s) share 4 CPU(s) on n1"),
        ({"cpus": 0xFF}, ""),
        ({"cpus": 0xFF, "cpus_on_node": 4}, "share 4 CPU(s)"),
        # One task of torchrun's, and a task for each rank.
        ({"cpus": 0xFF, "task": "0", "cpus_per_task": 6}, "share 6 CPU(s)"),
        ({"workers": 0, "cpus": 1}, ""),
        ({"cpus": 0}, ""),
    ],
)
def test_workers_and_cpus(changes: Any, shared: str) -> None:
    texts = found("loader_workers", [facts(r, **{"workers": 4, **changes}) for r in range(2)])
    assert shared in "".join(texts)
    assert bool(texts) == bool(shared)


def test_ranks_that_are_bound_to_cpus_of_their_own() -> None:
    own = [facts(r, workers=3, cpus=0b11 << 2 * r, task=str(r), cpus_per_task=2) for r in range(4)]
    [text] = found("loader_workers", own)
    assert text == (
        "6 DataLoader workers of 2 rank(s) share 4 CPU(s) on n1, and on 1 other node(s): take"
        " num_workers=2 per rank, or ask for more CPUs (--cpus-per-task=3)"
    )
    assert not found("loader_workers", [replace(one, workers=2) for one in own])


# --- what is watched ------------------------------------------------------------------


def test_data_parallel_in_words() -> None:
    from slurmgen.ddp.checks.data_parallel import advice

    assert "on each of 4 ranks" in advice(4, 0)
    assert "start 2 tasks (--ntasks-per-node=2)" in advice(1, 2)
    assert advice(1, 1) == advice(1, 0) == ""


def test_files_that_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from slurmgen.ddp.checks import saves

    (tmp_path / "link").symlink_to(tmp_path)
    one = saves.identity(tmp_path / "a")
    assert one == saves.identity(tmp_path / "link/a")
    assert one != saves.identity(tmp_path / "b")
    assert one != saves.identity(tmp_path.parent / "a")

    # Seen from another node: the kernel is another one.
    def elsewhere(kind: str, source: str) -> tuple[str, str]:
        monkeypatch.setattr(saves, "_mount", lambda _: (kind, source))
        first = saves.identity(tmp_path / "a")
        boot = tmp_path / "boot"
        boot.write_text("another")
        with monkeypatch.context() as other:
            other.setattr(saves, "_BOOT", str(boot))
            return first, saves.identity(tmp_path / "a")

    for kind, source in (("ext4", "/dev/sda1"), ("tmpfs", "tmpfs"), ("overlay", "overlay")):
        first, second = elsewhere(kind, source)
        assert first != second
    for kind, source in (("nfs4", "server:/home"), ("lustre", "m@o2ib:/l"), ("gpfs", "/dev/gpfs")):
        first, second = elsewhere(kind, source)
        assert first == second


def test_batches_by_their_content() -> None:
    import torch

    from slurmgen.ddp.checks.fingerprint import leaves

    rows = torch.arange(400_000, dtype=torch.float32).reshape(8, -1)
    [(one, telling)] = leaves(rows)
    assert telling
    assert leaves([rows.clone()]) == leaves({"x": rows}) == [(one, telling)]
    assert leaves(rows.flip(0)) != leaves(rows)
    assert leaves(rows[:, ::2]) != leaves(rows)
    # A mask, padding with a few words, a single number.
    assert not leaves(torch.ones(4, 100, dtype=torch.bool))[0][1]
    assert not leaves(torch.tensor([7, 8, 9] + [0] * 50))[0][1]
    assert not leaves(torch.tensor(3.5))[0][1]
    assert leaves([f"file{n}" for n in range(9)])[0][1]
    assert [one[1] for one in leaves((rows.long(), [rows.half(), {"c": rows + 0j}]))] == [True] * 3
    assert leaves((torch.empty(0), torch.eye(2).to_sparse()))[0][1] is False
    assert leaves((object(), None)) == []


def test_torch_save_is_put_back_and_can_be_pickled() -> None:
    import torch
    from torch.distributed import HashStore

    from slurmgen.ddp.checks.exchange import Exchange
    from slurmgen.ddp.checks.saves import Saves

    before = torch.save, torch.serialization.save
    end = Saves(Exchange(HashStore(), 0, 2)).watch()
    try:
        assert torch.save is not before[0]
        assert pickle.loads(pickle.dumps(torch.save)) is torch.save
        torch.save(1, os.devnull)
    finally:
        end()
    assert (torch.save, torch.serialization.save) == before


def test_notes_of_the_ranks() -> None:
    from torch.distributed import HashStore

    from slurmgen.ddp.checks.exchange import Exchange

    store = HashStore()
    first, second = (Exchange(store, rank, 2) for rank in range(2))
    first.post("facts", "one")
    assert first.gather("facts") is None
    second.post("facts", "two")
    assert first.gather("facts") == ["one", "two"]
    assert [first.count("n"), second.count("n")] == [1, 2]


def test_the_switch() -> None:
    assert preflight.wants_checks({})
    assert preflight.wants_checks({"SLURMGEN_CHECKS": "on"})
    assert not preflight.wants_checks({"SLURMGEN_CHECKS": "off"})
    with pytest.raises(LaunchError, match="SLURMGEN_CHECKS='no' is neither on nor off"):
        preflight.wants_checks({"SLURMGEN_CHECKS": "no"})
