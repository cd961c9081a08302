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
