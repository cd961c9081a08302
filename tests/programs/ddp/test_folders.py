"""A folder that all ranks write, and the file systems that fail it; with one rank here."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.ddp import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.torch


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[Callable[[int], bool]]:
    """`saver(step)` saves a model that is sharded over one rank; whether that worked."""
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    from slurmgen.ddp.train.checkpoints.saving import saver_for
    from slurmgen.ddp.train.checkpoints.store import Store
    from slurmgen.ddp.train.items import Items
    from slurmgen.ddp.train.peers import Peers

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        items = Items({"model": model, "optimizer": optimizer}, torch.device("cpu"))
        assert items.sharded
        own = saver_for(items, Store(tmp_path / "run", 2), Peers())

        def save(step: int) -> bool:
            own.save(step, {}, lambda _: {"slurmgen": {"step": step}}, wait=True)
            return own.writer.last == step

        yield save
    finally:
        dist.destroy_process_group()


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def store(tmp_path: Path) -> Any:
    from slurmgen.ddp.train.checkpoints.store import Store

    return Store(tmp_path / "run", 2)


def test_what_is_in_it_and_who_can_read_it(tmp_path: Path, saver: Callable[[int], bool]) -> None:
    import torch
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    from slurmgen import ddp

    assert all(map(saver, (1, 2, 3)))
    last, _ = store(tmp_path).found()
    assert [one.step for one in store(tmp_path).found()] == [3, 2]
    assert len(names(tmp_path / "run")) == 2
    assert names(last.path) == [
        ".metadata", "__0_0.distcp", "manifest.json", "rank-00000.pt", "run.pt",
    ]  # fmt: skip
    content = ddp.load(tmp_path / "run")
    assert content["slurmgen"]["step"] == 3
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    model.load_state_dict(content["model"])
    assert int(model[1].num_batches_tracked) == 1
    torch.optim.AdamW(model.parameters()).load_state_dict(content["optimizer"])
    # torch's own tools find the sharded tensors under the items' names.
    dcp_to_torch_save(last.path, tmp_path / "whole.pt")
    whole = torch.load(tmp_path / "whole.pt")
    assert torch.equal(whole["model"]["0.weight"], content["model"]["0.weight"])
    assert torch.equal(
        whole["optimizer"]["state"]["0"]["exp_avg"], content["optimizer"]["state"][0]["exp_avg"]
    )


@pytest.mark.parametrize("name", ["__0_0.distcp", ".metadata", "rank-00000.pt", "run.pt"])
@pytest.mark.parametrize("how", ["flipped", "truncated", "longer", "missing"])
def test_damage_is_noticed(
    tmp_path: Path, saver: Callable[[int], bool], name: str, how: str
) -> None:
    from slurmgen.ddp.train.checkpoints.digests import DamagedError

    assert saver(1)
    assert saver(2)
    last = store(tmp_path).found()[0]
    data = bytearray((last.path / name).read_bytes())
    if how == "flipped":
        data[len(data) // 2] ^= 1
    elif how == "truncated":
        del data[len(data) // 2 :]
    else:
        data += b"\0"
    (last.path / name).write_bytes(data)
    if how == "missing":
        (last.path / name).unlink()
    with pytest.raises(DamagedError, match=f"its {name} is"):
        store(tmp_path).read(last)
    assert store(tmp_path).latest()["slurmgen"]["step"] == 1


@pytest.mark.parametrize("call", ["fsync", "replace", "rename", "mkdir", "create"])
def test_a_system_call_that_fails_leaves_what_was_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    saver: Callable[[int], bool],
    said: Callable[[], list[str]],
    call: str,
) -> None:
    assert saver(1)
    before = names(tmp_path / "run")

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        owner = {"fsync": os, "create": files}.get(call, Path)
        patch.setattr(owner, call, fail)
        assert not saver(2)
        assert not saver(3)
    assert names(tmp_path / "run") == before
    # Said once.
    (line,) = said()
    assert line.endswith("No space left on device; the last is step 1")
    assert saver(4)


@pytest.mark.parametrize("nth", range(0, 40, 3))
def test_a_write_that_fails_in_the_middle(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    saver: Callable[[int], bool],
    said: Callable[[], list[str]],
    nth: int,
) -> None:
    from slurmgen.ddp.train.checkpoints import digests as module

    assert saver(1)
    left = nth
    original = module.Digesting.__init__

    class Tearing:
        """The nth write of all puts half of its bytes down and fails."""

        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, data: bytes) -> int:
            nonlocal left
            left -= 1
            if left < 0:
                self.file.write(bytes(data)[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return int(self.file.write(data))

        def flush(self) -> None:
            self.file.flush()

    monkeypatch.setattr(
        module.Digesting,
        "__init__",
        lambda self, file: original(self, Tearing(file)),  # type: ignore[arg-type]
    )
    assert not saver(2)
    monkeypatch.undo()
    # Not what torch makes of it.
    assert said()[0].endswith("No space left on device; the last is step 1")
    assert len(names(tmp_path / "run")) == 1
    assert saver(3)


def test_what_killed_writers_left_is_removed(tmp_path: Path, saver: Callable[[int], bool]) -> None:
    assert saver(1)
    (done,) = names(tmp_path / "run")
    for name in (".step-2.node-7.4711.140.tmp", f".{done}.tmp"):
        (tmp_path / "run" / name).mkdir()
        (tmp_path / "run" / name / "__0_0.distcp").write_bytes(b"half")
    store(tmp_path).clean()
    assert names(tmp_path / "run") == [done]


def test_a_folder_that_only_one_node_sees(tmp_path: Path) -> None:
    from slurmgen.ddp.train.checkpoints import folders

    (tmp_path / "__0_0.distcp").write_bytes(b"mine")
    with pytest.raises(folders.FailedError, match=r"doesn't see the file __1_0\.distcp of rank 1"):
        folders._finish(tmp_path, [{"__0_0.distcp": (4, "a")}, {"__1_0.distcp": (4, "b")}])
