"""A checkpoint as a folder that all ranks write together.

``step-000000120-<digest>/`` holds what torch.distributed.checkpoint writes (``.metadata``,
``__<rank>_0.distcp``: the sharded tensors, for any number of ranks), ``rank-00003.pt`` with
what is that rank's own, ``run.pt`` with what is the same on all, and ``manifest.json``: the size
and digest of each of them. The digest in the folder's name is the manifest's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.default_planner import (
    DefaultSavePlanner,
    create_default_local_save_plan,
)
from torch.distributed.checkpoint.filesystem import FileSystem
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

from slurmgen.ddp import files
from slurmgen.ddp.train import shards
from slurmgen.ddp.train.checkpoints import index
from slurmgen.ddp.train.checkpoints.digests import DIGITS, DamagedError, Digesting, sync_folder
from slurmgen.ddp.train.peers import objects_without_numpy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from torch.distributed.checkpoint.planner import LoadPlan, SavePlan

    from slurmgen.ddp.train.peers import Peers

_MANIFEST = "manifest.json"
_RUN = "run.pt"
_CHUNK = 1 << 20


class Staged(NamedTuple):
    """What one rank has to write, on the CPU and of its own.

    plan: which piece of which tensor this rank has. tensors: these pieces. own: what only this
    rank has. common: rank 0's word for all, None on the others.
    """

    plan: SavePlan
    tensors: dict[str, torch.Tensor]
    own: Any
    common: Any


class FailedError(Exception):
    """The checkpoint couldn't be written; the text says why and, if it wasn't rank 0, where."""


def plan(live: dict[str, Any], paths: dict[str, tuple[str, ...]]) -> SavePlan:
    """Which pieces of the sharded tensors `live` are this rank's."""
    made = create_default_local_save_plan(live, is_coordinator=False)
    # Where each belongs, for torch's own tools: dcp_to_torch_save gives nested dictionaries.
    return dataclasses.replace(made, planner_data=paths)


def write(folder: Path, staged: Staged, peers: Peers) -> str | None:
    """Fill `folder`, made on the way, with what all ranks staged; a collective over `peers`.

    Returns on rank 0 the digest for the folder's name, once all is on disk; None on the others.
    Raises FailedError, on every rank, where any rank failed.
    """
    own = _Files()
    trouble = ""
    try:
        with (
            objects_without_numpy(),
            _no_warning_that_it_is_alone() if peers.group is None else contextlib.nullcontext(),
        ):
            dcp.save(
                {},
                storage_writer=_Writer(folder, own, staged, peers.rank),
                planner=_Planner(staged),
                process_group=peers.group,
                no_dist=peers.group is None,
            )
    except dcp.api.CheckpointException as error:
        # The same on every rank, each of which has passed the same collectives.
        trouble = _first(error)
    reports = peers.gather((trouble, own.written))
    digest: str | None = None
    if reports is not None and not trouble:
        try:
            digest = _finish(folder, [written for _, written in reports])
        except Exception as error:
            trouble = _text(error)
    trouble = peers.from_main(trouble)
    if trouble:
        raise FailedError(trouble)
    return digest


def verify(folder: Path, digest: str, *, share: int = 0, of: int = 1) -> None:
    """Check the manifest, and each `of`-th file from the one numbered `share`.

    Raises DamagedError where the bytes aren't those that were written, OSError where they can't
    be read.
    """
    known = _manifest(folder, digest)
    # The largest first, so that no share has all of them.
    names = sorted(known, key=lambda name: (-known[name][0], name))
    for name in names[share::of]:
        size, expected = known[name]
        seen, there = hashlib.sha256(), 0
        with _opened(folder, name) as file:
            while block := file.read(_CHUNK):
                seen.update(block)
                there += len(block)
        if seen.hexdigest() != expected:
            raise DamagedError(f"its {name} isn't what was written: {there} bytes, not {size}")
    if share == 0:
        index.read(folder / index.NAME)


def common(folder: Path) -> Any:
    """What rank 0 wrote for all."""
    return torch.load(folder / _RUN, map_location="cpu", weights_only=True)


def own(folder: Path, rank: int) -> Any:
    """What `rank` wrote of its own, with marks in place of sharded tensors."""
    return torch.load(folder / _rank_file(rank), map_location="cpu", weights_only=True)


def fill(folder: Path, targets: dict[str, torch.Tensor]) -> None:
    """Read into each of `targets`, sharded in whatever way or whole, what is saved for its key.

    Not a collective: each rank reads what it needs. Raises RuntimeError for a key that isn't there,
    OSError where a file can't be read.
    """
    if not targets:
        return
    try:
        with _no_warning_that_it_is_alone():
            dcp.load(
                targets,
                storage_reader=index.Reader(folder),
                planner=_Filler(flatten_state_dict=False, flatten_sharded_tensors=False),
                no_dist=True,
            )
    except dcp.api.CheckpointException as error:
        cause, _ = error.failures[0]
        raise cause from None


def whole(folder: Path) -> Any:
    """All of it with whole tensors on the CPU; where each rank had its own, rank 0's."""
    content = common(folder)
    targets: dict[str, torch.Tensor] = {}
    for name, saved in own(folder, 0)["items"].items():
        content[name] = shards.whole(saved, targets)
    fill(folder, targets)
    return content


class _Filler(dcp.DefaultLoadPlanner):
    """Fills tensors by their keys alone, and leaves out what isn't asked for."""

    def create_local_plan(self) -> LoadPlan:
        missing = [key for key in self.state_dict if key not in self.metadata.state_dict_metadata]
        if missing:
            raise RuntimeError(f"the checkpoint doesn't have {', '.join(missing)}")
        odd = [
            key
            for key in self.state_dict
            if not isinstance(self.metadata.state_dict_metadata[key], TensorStorageMetadata)
        ]
        if odd:
            # torch would read them as pickles, which can run code.
            raise RuntimeError(f"the checkpoint has no tensor for {', '.join(odd)}")
        return super().create_local_plan()

    def load_bytes(self, *_: Any) -> None:
        """What torch would read as a pickle."""
        raise RuntimeError("the checkpoint has something else than tensors in its shards")


class _Planner(DefaultSavePlanner):
    """Writes what was staged, by a plan that was made from the live tensors."""

    def __init__(self, staged: Staged) -> None:
        super().__init__()
        self._staged = staged

    def create_local_plan(self) -> SavePlan:
        self.plan = self._staged.plan
        return self.plan

    def lookup_object(self, index: Any) -> torch.Tensor:
        return self._staged.tensors[index.fqn]


class _Writer(dcp.FileSystemWriter):
    """Writes a rank's own file, and rank 0's for all, with its pieces of tensors.

    Here, because what fails here fails on every rank.
    """

    def __init__(self, folder: Path, files: _Files, staged: Staged, rank: int) -> None:
        # torch's own fsync of the metadata comes before their flush: `files` does it.
        # Nothing to copy ahead: all is on the CPU, and CUDA in this thread would be the first GPU.
        super().__init__(folder, sync_files=False, per_thread_copy_ahead=0)
        self.fs = files
        self._folder, self._staged, self._rank = folder, staged, rank

    def write_data(self, plan: Any, planner: Any) -> Any:
        try:
            self._write(_rank_file(self._rank), self._staged.own)
            if self._staged.common is not None:
                self._write(_RUN, self._staged.common)
            return super().write_data(plan, planner)
        except Exception as error:
            # Of a kind that surely can be sent to the other ranks, who would wait for ever.
            raise FailedError(_text(error)) from None

    def _write(self, name: str, content: Any) -> None:
        with self.fs.create_stream(self._folder / name, "wb") as stream:
            torch.save(content, stream)


class _Files(FileSystem):
    """A file system that has on disk what it has written, and notes its size and digest.

    written: by name, (bytes, SHA-256).
    """

    def __init__(self) -> None:
        self.written: dict[str, tuple[int, str]] = {}

    @contextlib.contextmanager
    def create_stream(self, path: Any, mode: str) -> Iterator[Any]:
        if mode != "wb":
            with super().create_stream(path, mode) as stream:
                yield stream
            return
        with files.create(path) as file:
            stream = Digesting(file)
            try:
                yield stream
            except Exception:
                # What torch makes of an error of the disk is another one.
                stream.finish()
                raise
            digest = stream.finish()
            os.fsync(file.fileno())
        self.written[Path(path).name] = (stream.size, digest)

    def rename(self, path: Any, new_path: Any) -> None:
        super().rename(path, new_path)
        self.written[Path(new_path).name] = self.written.pop(Path(path).name)


@contextlib.contextmanager
def _no_warning_that_it_is_alone() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled", UserWarning)
        yield


def _finish(folder: Path, written: list[dict[str, tuple[int, str]]]) -> str:
    found = {name: list(one) for part in written for name, one in part.items()}
    for rank, part in enumerate(written):
        for name, (size, _) in part.items():
            # From another node: a folder of the same name on its own disk doesn't help.
            try:
                there = (folder / name).stat().st_size
            except FileNotFoundError:
                there = -1
            if there != size:
                raise FailedError(
                    f"rank 0 doesn't see the file {name} of rank {rank}: the folder has to be on"
                    " a file system that all nodes share"
                )
    text = json.dumps({"files": found}, indent=0, sort_keys=True).encode()
    with files.create(folder / _MANIFEST) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(folder)
    return hashlib.sha256(text).hexdigest()[:DIGITS]


def _manifest(folder: Path, digest: str) -> dict[str, tuple[int, str]]:
    with _opened(folder, _MANIFEST) as file:
        text = file.read()
    if hashlib.sha256(text).hexdigest()[:DIGITS] != digest:
        raise DamagedError(f"its {_MANIFEST} isn't what was written")
    found: dict[str, tuple[int, str]] = json.loads(text)["files"]
    return found


def _opened(folder: Path, name: str) -> BinaryIO:
    try:
        return (folder / name).open("rb")
    except FileNotFoundError:
        # Without its folder, the run has just removed it as too old.
        if not folder.is_dir():
            raise
        raise DamagedError(f"its {name} is missing") from None


def _rank_file(rank: int) -> str:
    return f"rank-{rank:05}.pt"


def _first(error: Any) -> str:
    """What the first rank that failed said."""
    rank, (cause, _) = min(error.failures.items())
    text = _text(cause)
    return text if rank == 0 else f"{text} (rank {rank})"


def _text(error: BaseException) -> str:
    # strerror alone: the temporary name differs each time.
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__
