"""A folder of checkpoints, each complete and proved so, whatever happened to its writer.

``step-000000120-<digest>.pt`` is a file of ``torch.save``, readable by ``torch.load``. The digest
in its name is that of its bytes: name and content appear together, by one rename. Where the state
is sharded over the ranks it is a folder without the ``.pt``, see `folders`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from slurmgen.ddp import files, log
from slurmgen.ddp.train.checkpoints.digests import DIGITS, DamagedError, dump, sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = re.compile(rf"step-(\d{{9,}})-([0-9a-f]{{{DIGITS}}})(\.pt)?")
_TEMPORARY = re.compile(r"\.step-\d+[.-].+\.tmp")
_CHUNK = 1 << 20


class Checkpoint(NamedTuple):
    """A file or folder, by its name alone: nothing is known of its content yet.

    sharded: whether it is a folder.
    """

    step: int
    digest: str
    path: Path
    sharded: bool = False


class Store:
    """The checkpoints of one run in `folder`, of which the last `keep` stay."""

    def __init__(self, folder: str | os.PathLike[str], keep: int) -> None:
        if keep < 1:
            raise ValueError(f"keep={keep}: at least the last checkpoint has to stay")
        self.folder = Path(folder)
        self.keep = keep

    def found(self) -> list[Checkpoint]:
        """All there are, the last first. Raises OSError where the folder can't be read."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        found = [
            Checkpoint(int(match[1]), match[2], self.folder / name, sharded=not match[3])
            for name in names
            if (match := _NAME.fullmatch(name))
        ]
        # Of two for the same step the later counts: the run came here twice.
        return sorted(found, key=lambda one: (one.step, _age(one.path)), reverse=True)

    def write(self, step: int, state: object) -> Checkpoint:
        """Put `state` on disk, then remove what is older than the last `keep`.

        Raises OSError, or what torch raises for an object it can't write; then nothing is left of
        it, and the files before are untouched.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.temporary(step)
        try:
            with files.create(temporary) as file:
                digest = dump(state, file)
                os.fsync(file.fileno())
            return self.publish(
                temporary, Checkpoint(step, digest, self.folder / f"step-{step:09}-{digest}.pt")
            )
        finally:
            remove(temporary)

    def temporary(self, step: int) -> Path:
        """A name for a checkpoint that is being written; `clean` knows it."""
        return self.folder / f".step-{step}.{files.unguessable()}.tmp"

    def publish(self, temporary: Path, done: Checkpoint) -> Checkpoint:
        """Give what is on disk as `temporary` its name, then remove what is too old."""
        temporary.replace(done.path)
        sync_folder(self.folder)
        for old in self.found()[self.keep :]:
            if old != done:
                remove(old.path)
        return done

    def read(self, checkpoint: Checkpoint) -> Any:
        """Its content, with whole tensors on the CPU.

        Raises DamagedError where the bytes aren't those that were written, OSError where the file
        can't be read.
        """
        if checkpoint.sharded:
            # Paid only by those who shard.
            from slurmgen.ddp.train.checkpoints import folders

            folders.verify(checkpoint.path, checkpoint.digest)
            return folders.whole(checkpoint.path)
        with checkpoint.path.open("rb") as file:
            digest, size = hashlib.sha256(), 0
            while block := file.read(_CHUNK):
                digest.update(block)
                size += len(block)
            if digest.hexdigest()[:DIGITS] != checkpoint.digest:
                raise DamagedError(f"its {size} bytes aren't those that were written")
            file.seek(0)
            return torch.load(file, map_location="cpu", weights_only=True)

    def latest(self) -> Any:
        """The content of the last good checkpoint, None without any; for readers beside a run.

        Raises DamagedError where there are checkpoints and none is good.
        """
        while True:
            vanished = False
            bad: list[str] = []
            for one in self.found():
                try:
                    return self.read(one)
                except FileNotFoundError:
                    # The run wrote a later one meanwhile, and this was the oldest.
                    vanished = True
                    break
                except DamagedError as error:
                    bad.append(f"{one.path.name}: {error}")
            if not vanished:
                if bad:
                    raise DamagedError(f"no good checkpoint in {self.folder}: {'; '.join(bad)}")
                return None

    def set_aside(self, checkpoint: Checkpoint) -> None:
        """Rename a damaged one, so that it is neither tried nor counted again."""
        with contextlib.suppress(OSError):
            checkpoint.path.rename(checkpoint.path.with_name(checkpoint.path.name + ".damaged"))

    def clean(self) -> None:
        """Remove what killed writers left. For the run's own start, before it writes."""
        try:
            names = os.listdir(self.folder)
        except OSError:
            return
        for name in names:
            if _TEMPORARY.fullmatch(name):
                remove(self.folder / name)


class Writer:
    """Writes checkpoints for a run that goes on whether or not that works.

    put: what writes one, `Store.write` for None; given the step and the state, it raises what went
    wrong. speaks: whether to say so; where all ranks write together, one does.
    """

    def __init__(
        self,
        store: Store,
        put: Callable[[int, Any], object] | None = None,
        *,
        speaks: bool = True,
    ) -> None:
        self._store = store
        self._put = put or store.write
        self._speaks = speaks
        self._thread: threading.Thread | None = None
        self._said = ""
        self.last: int | None = None
        """The step of the last complete checkpoint, None before the first."""

    def busy(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, step: int, state: Callable[[], object]) -> None:
        """Write in the background what `state` returns; not while `busy`."""
        self.wait()
        # Not a daemon: a program that ends meanwhile, well or not, still completes the file.
        self._thread = threading.Thread(
            target=self.write, args=(step, state), name="slurmgen-checkpoint"
        )
        self._thread.start()

    def wait(self) -> None:
        """Until nothing is being written."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def write(self, step: int, state: Callable[[], object]) -> bool:
        """Write now; whether that worked. What went wrong is said once, not at every save."""
        try:
            self._put(step, state())
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            # strerror alone: the temporary name differs each time.
            text = (isinstance(error, OSError) and error.strerror) or reason
            if self._speaks and text != self._said:
                self._said = text
                kept = "there is none yet" if self.last is None else f"the last is step {self.last}"
                log.warn(f"no checkpoint of step {step} in {self._store.folder}: {text}; {kept}")
            return False
        if self._said:
            log.note(f"checkpoints are written again, step {step}")
            self._said = ""
        self.last = step
        return True


def _age(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def remove(path: Path) -> None:
    """Remove a file or a folder, if that can be done."""
    with contextlib.suppress(OSError):
        if path.is_dir():
            gone = path
            if not path.name.startswith("."):
                # By one rename: half of it mustn't be found as a checkpoint.
                gone = path.rename(path.with_name(f".{path.name}.tmp"))
            shutil.rmtree(gone, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
