"""The index of a sharded checkpoint, ``.metadata``: read without running what may be in it.

torch.distributed.checkpoint writes it as a pickle and reads it with ``pickle.load``, which runs
whatever the file says. Only the classes of such an index are made here (seen on torch 2.4 to
2.13), and torch's own constants; none of them does anything when it is made.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta

from slurmgen.ddp.train.checkpoints.digests import DamagedError, UntrustedError

if TYPE_CHECKING:
    from typing import NoReturn

NAME = ".metadata"
_METADATA = "torch.distributed.checkpoint.metadata"
_CLASSES = {
    *(
        (_METADATA, name)
        for name in (
            "BytesStorageMetadata",
            "ChunkStorageMetadata",
            "Metadata",
            "MetadataIndex",
            "StorageMeta",
            "TensorProperties",
            "TensorStorageMetadata",
            "_MEM_FORMAT_ENCODING",
        )
    ),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    ("torch", "Size"),
    ("collections", "OrderedDict"),
    # Of StorageMeta.checkpoint_id.
    ("pathlib", "Path"),
    ("pathlib", "PosixPath"),
    ("pathlib", "PurePosixPath"),
    ("pathlib._local", "Path"),
    ("pathlib._local", "PosixPath"),
    ("pathlib._local", "PurePosixPath"),
}
_CONSTANTS = (torch.dtype, torch.layout)


class Reader(dcp.FileSystemReader):
    """Reads the tensors of a checkpoint; no file in it can make it run code."""

    def read_metadata(self, *_: Any, **__: Any) -> Metadata:
        """Raises DamagedError where the index holds something else than an index."""
        metadata = read(Path(self.path) / NAME)
        if getattr(metadata, "storage_meta", None) is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = getattr(self, "load_id", None)
        return metadata


def read(path: Path) -> Metadata:
    """The index in the file `path`. Raises DamagedError, OSError where it can't be read."""
    try:
        found = _Unpickler(io.BytesIO(path.read_bytes()), path.name).load()
    except (OSError, DamagedError):
        raise
    except Exception as error:
        raise DamagedError(f"its {path.name} can't be read: {error}") from error
    if not isinstance(found, Metadata):
        raise DamagedError(f"its {path.name} holds {type(found).__name__}, not an index")
    for info in (found.storage_data or {}).values():
        name = getattr(info, "relative_path", None)
        if not isinstance(name, str) or name != Path(name).name:
            raise DamagedError(f"its {path.name} leads out of the folder: {name!r}")
    return found


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, name: str) -> None:
        super().__init__(file)
        self._name = name

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _CLASSES:
            return super().find_class(module, name)
        if module == "torch" and isinstance(getattr(torch, name, None), _CONSTANTS):
            return getattr(torch, name)
        if (module, name) == ("torch.serialization", "_get_layout"):
            return _layout
        raise UntrustedError(
            f"its {self._name} names {module}.{name}, which isn't of an index that torch"
            f" {torch.__version__} writes, and could run code"
        )

    def persistent_load(self, _: Any) -> NoReturn:
        raise DamagedError(f"its {self._name} refers to something outside of it")


def _layout(name: str) -> torch.layout:
    """As ``torch.serialization._get_layout``, by which a layout is pickled."""
    found = getattr(torch, str(name).removeprefix("torch."), None)
    if not isinstance(found, torch.layout):
        raise DamagedError(f"no layout: {name!r}")
    return found
