"""The index of a sharded checkpoint, from a stranger."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


class Runs:
    """Unpickled, it runs a command."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


def saved(folder: Path) -> Any:
    """A checkpoint by torch's own hand, and its index as torch itself reads it."""
    import torch
    import torch.distributed.checkpoint as dcp

    content = {"weight": torch.arange(6.0).reshape(2, 3), "half": torch.ones(2).half(), "n": 5}
    with pytest.warns(UserWarning, match=r"torch.distributed is disabled"):
        dcp.save(content, checkpoint_id=folder)
    return pickle.loads((folder / ".metadata").read_bytes())


def test_what_torch_writes_is_read_as_torch_reads_it(tmp_path: Path) -> None:
    from slurmgen.ddp.train.checkpoints import index

    own = saved(tmp_path)
    assert index.read(tmp_path / ".metadata") == own


@pytest.mark.parametrize(
    "data",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"ctorch\nload\n(S'x'\ntR.",
        b"ctorch.serialization\nload\n(S'x'\ntR.",
        b"\x80\x04\x8c\x05torch\x8c\x0fserialization.os\x93.",
        b"(dp0\n.",
        b"Pnumber\n.",
        b"garbage",
        b"",
    ],
)
def test_what_is_no_index(tmp_path: Path, data: bytes) -> None:
    from slurmgen.ddp.train.checkpoints import index
    from slurmgen.ddp.train.checkpoints.digests import DamagedError

    (tmp_path / ".metadata").write_bytes(data)
    with pytest.raises(DamagedError, match=r"its \.metadata"):
        index.read(tmp_path / ".metadata")


def test_an_index_that_leads_out_of_its_folder(tmp_path: Path) -> None:
    from slurmgen.ddp.train.checkpoints import index
    from slurmgen.ddp.train.checkpoints.digests import DamagedError

    metadata = saved(tmp_path)
    for info in metadata.storage_data.values():
        info.relative_path = "../other/__0_0.distcp"
    (tmp_path / ".metadata").write_bytes(pickle.dumps(metadata))
    with pytest.raises(DamagedError, match="leads out of the folder"):
        index.read(tmp_path / ".metadata")


def test_a_pickle_in_place_of_a_tensor_runs_nothing(tmp_path: Path) -> None:
    """torch reads what the index calls bytes as a pickle, whatever was asked for."""
    import torch
    from torch.distributed.checkpoint.metadata import BytesStorageMetadata

    from slurmgen.ddp.train.checkpoints import folders

    metadata = saved(tmp_path)
    metadata.state_dict_metadata["weight"] = BytesStorageMetadata()
    (tmp_path / ".metadata").write_bytes(pickle.dumps(metadata))
    torch.save(Runs(f"touch {tmp_path}/ran"), tmp_path / "__0_0.distcp")
    with pytest.raises(RuntimeError, match="has no tensor for weight"):
        folders.fill(tmp_path, {"weight": torch.zeros(2, 3)})
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("where", ["alone", "planner_data", "storage_data"])
def test_a_pickle_that_runs_code_runs_nothing(tmp_path: Path, where: str) -> None:
    from slurmgen.ddp.train.checkpoints import index
    from slurmgen.ddp.train.checkpoints.digests import UntrustedError

    metadata: Any = saved(tmp_path)
    runs = Runs(f"touch {tmp_path}/ran")
    if where == "alone":
        metadata = runs
    else:
        setattr(metadata, where, {"x": runs})
    (tmp_path / ".metadata").write_bytes(pickle.dumps(metadata))
    with pytest.raises(UntrustedError, match=r"its \.metadata names posix\.system, which"):
        index.read(tmp_path / ".metadata")
    assert not (tmp_path / "ran").exists()
    # The attack works, on whoever lets it.
    pickle.loads((tmp_path / ".metadata").read_bytes())
    assert (tmp_path / "ran").exists()
