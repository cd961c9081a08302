"""The functions a training program calls, on two ranks and on one."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# The fixture's class lives in a conftest, which importlib mode doesn't let a test import.
Ranks = Any

pytestmark = pytest.mark.torch

PROGRAM = """
import os
from pathlib import Path
import torch
import torch.distributed as dist
from slurmgen import ddp


def main():
    world = ddp.world_size()
    assert dist.is_initialized() and dist.get_world_size() == world
    group = dist.group.WORLD
    ddp.init()
    assert dist.group.WORLD is group
    assert os.environ["RANK"] == str(ddp.rank()) and os.environ["WORLD_SIZE"] == str(world)
    assert ddp.is_main() == (ddp.rank() == 0) and ddp.device() == torch.device("cpu")

    mean = sum(range(world)) / world
    assert ddp.all_mean(ddp.rank()) == mean
    assert ddp.all_mean(torch.tensor([ddp.rank(), 2])).tolist() == [mean, 2]
    ddp.print0("once", ddp.rank())

    # The gradient of the whole batch, whatever the shares.
    model = torch.nn.Linear(1, 1, bias=False)
    parallel = ddp.wrap(model)
    assert (parallel is model) == (world == 1)
    data = list(range(8))
    loader = ddp.loader(data, global_batch_size=4, seed=3)
    seen = []
    for _ in range(2):
        for batch in loader:
            seen.append(batch.tolist())
            model.zero_grad()
            parallel(batch.float().unsqueeze(1)).mean().backward()
            whole = ddp.all_mean(batch.float().mean())
            torch.testing.assert_close(model.weight.grad.flatten()[0], whole)
    assert len(seen) == 4 and loader.epoch == 2
    Path(f"seen{ddp.rank()}.txt").write_text(repr(seen))

    path = Path("deep/model.pt")
    assert ddp.load(path) is None and ddp.load(path, default=7) == 7
    ddp.save({"rank": ddp.rank()}, path)
    assert path.exists()
    assert ddp.load(path) == {"rank": 0}
    try:
        ddp.save(lambda: None, path)
    except RuntimeError as error:
        assert not ddp.is_main() and "rank 0 couldn't write" in str(error)
    except Exception:
        assert ddp.is_main()
    else:
        raise AssertionError("a lambda can't be saved")
    assert ddp.load(path) == {"rank": 0}
    assert os.listdir("deep") == ["model.pt"]

    dist.destroy_process_group()
    if world > 1:
        try:
            ddp.all_mean(1.0)
        except RuntimeError as error:
            assert "call ddp.init() first" in str(error)
        else:
            raise AssertionError("a rank went on as if it were alone")
    ddp.init()
    assert ddp.all_mean(1.0) == 1.0
    ddp.shutdown()
    ddp.shutdown()
    assert not dist.is_initialized()
    try:
        ddp.init()
    except RuntimeError as error:
        assert "the run has ended" in str(error)
    else:
        raise AssertionError("the ranks met twice")


if __name__ == "__main__":
    ddp.init()
    main()
"""


def test_on_two_ranks_and_on_one(ranks: Ranks, port: int) -> None:
    ranks.write("job.py", PROGRAM)
    ranks.start_step("job:main", port=port)
    ended = ranks.end()
    assert [e.code for e in ended] == [0, 0], ended
    assert [e.out for e in ended] == ["once 0\n", ""]
    first, second = (eval((ranks.folder / f"seen{rank}.txt").read_text()) for rank in (0, 1))

    (ranks.folder / "deep/model.pt").unlink()
    alone = ranks.run("job.py")
    assert (alone.code, alone.out) == (0, "once 0\n"), alone
    whole = eval((ranks.folder / "seen0.txt").read_text())
    assert [one + other for one, other in zip(first, second, strict=True)] == whole
    assert whole[:2] != whole[2:]
    assert sorted(whole[0] + whole[1]) == sorted(whole[2] + whole[3]) == list(range(8))


def sampler(length: int, size: int, rank: int = 0, world_size: int = 1, **options: Any) -> Any:
    from slurmgen.ddp.train.data import GlobalBatchSampler

    chosen = {"shuffle": True, "seed": 0, "drop_last": True, **options}
    return GlobalBatchSampler(length, size, rank=rank, world_size=world_size, **chosen)


@pytest.mark.parametrize("world_size", [2, 4, 8])
@pytest.mark.parametrize("drop_last", [True, False])
def test_global_batches_do_not_depend_on_the_ranks(world_size: int, drop_last: bool) -> None:
    # 21 = 2 x 8 + 5: with 8 ranks some have no share of the last batch.
    whole = list(sampler(21, 8, drop_last=drop_last))
    parts = [sampler(21, 8, rank, world_size, drop_last=drop_last) for rank in range(world_size)]
    shares = [list(part) for part in parts]
    assert [len(part) for part in parts] == [len(share) for share in shares]
    joined = [
        list(chain(*(share[number] for share in shares if number < len(share))))
        for number in range(len(whole))
    ]
    assert joined == whole
    assert len(list(chain(*whole))) == (16 if drop_last else 21)


def test_the_order_follows_from_seed_and_epoch() -> None:
    one, other = sampler(100, 10), sampler(100, 10, seed=1)
    first = list(one)
    assert first == list(one)
    one.epoch = 1
    assert list(one) not in (first, list(other))
    assert list(chain(*sampler(6, 2, shuffle=False))) == list(range(6))


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="doesn't divide by 4 ranks: take 8, or another"):
        sampler(100, 9, world_size=4)
    with pytest.raises(ValueError, match="doesn't divide"):
        sampler(100, 0)
    with pytest.raises(ValueError, match="3 samples don't fill"):
        sampler(3, 4)
    assert len(sampler(3, 4, drop_last=False)) == 1


def test_workers_see_each_epoch_once_and_other_random_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    from slurmgen.ddp import group
    from slurmgen.ddp.train import data

    class Noise(torch.utils.data.Dataset[float]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> float:
            return float(torch.rand(()))

    def epochs(rank: int) -> list[list[float]]:
        monkeypatch.setattr(group, "rank", lambda: rank)
        monkeypatch.setattr(group, "world_size", lambda: 2)
        monkeypatch.setattr(group, "device", lambda: torch.device("cpu"))
        loader: data.Loader[float] = data.loader(Noise(), global_batch_size=4, num_workers=1)
        drawn: list[list[float]] = [
            list(chain(*(batch.tolist() for batch in loader))) for _ in range(2)
        ]
        assert loader.epoch == 2
        return drawn

    state = torch.get_rng_state()
    first, second = epochs(0), epochs(1)
    assert len({str(drawn) for drawn in first + second}) == 4
    assert epochs(0) == first
    assert torch.equal(torch.get_rng_state(), state)


def test_a_data_set_without_length() -> None:
    from slurmgen import ddp

    class Stream:
        pass

    with pytest.raises(TypeError, match="Stream has no length"):
        ddp.loader(Stream(), global_batch_size=1)


def test_a_failed_write_leaves_the_file_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from slurmgen.ddp.train.checkpoints import single_file

    path = tmp_path / "model.pt"
    single_file._write(1, path)

    def half(_: object, file: Any) -> None:
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(OSError, match="no space"):
        single_file._write(2, path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.pt"]
    assert torch.load(path) == 1
