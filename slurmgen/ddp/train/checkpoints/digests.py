"""Bytes on their way to disk, and the digest by which they are known when they come back."""

from __future__ import annotations

import errno
import hashlib
import os
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

DIGITS = 16
"""Of a digest, as many as a name has."""

_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF}


class DamagedError(Exception):
    """A checkpoint whose bytes aren't those that were written."""


class UntrustedError(DamagedError):
    """A checkpoint of another release of torch, or of somebody who wants to run code."""


class Digesting:
    """A file for torch.save that computes the digest of what passes.

    An error is kept for later: raised through torch's C++ code, in the middle of a record, it
    would come out as another one. size: the bytes that passed.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.size = 0
        self._file = file
        self._digest = hashlib.sha256()
        self._error: Exception | None = None

    def write(self, data: bytes) -> int:
        if self._error is None:
            try:
                self._file.write(data)
                self._digest.update(data)
            except Exception as error:
                self._error = error
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        if self._error is None:
            try:
                self._file.flush()
            except Exception as error:
                self._error = error

    def tell(self) -> int:
        return self.size

    def close(self) -> None:
        """Only flush: the file is for who opened it to close."""
        self.flush()

    def finish(self) -> str:
        """The digest; raises the first error that there was."""
        self.flush()
        if self._error is not None:
            raise self._error
        return self._digest.hexdigest()


def dump(state: object, file: BinaryIO) -> str:
    """``torch.save`` into `file` and flush; returns the digest of what was written."""
    digesting = Digesting(file)
    torch.save(state, digesting)
    return digesting.finish()[:DIGITS]


def sync_folder(folder: Path) -> None:
    """Wait until the names in `folder` are on disk, where its file system can tell."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(handle)
