"""Folder: where a sandbox keeps its state, who may use it, and its removal."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.errors import UnavailableError, UsageError
from slurmgen.jobfile.project import home_folder
from slurmgen.sandbox import deadlines
from slurmgen.sandbox.deadlines import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterator

# A Unix socket's path has 107 bytes, and slurmstepd's adds /spool/n1024/n1024_JOB.STEP.
_LONGEST_PATH = 60
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
# Slurm's configuration has no quoting for these in every place a path goes to.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+@:-]+")


@dataclass(frozen=True)
class Folder:
    """The paths of one sandbox; `path` need not exist."""

    path: Path
    short: Path

    @classmethod
    def of(cls, name: str, directory: Path | None) -> Folder:
        """That of the sandbox `name` under `directory`, by default the user's own."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a sandbox name",
                fix='write one word of letters, digits, "_", "-" and "."',
            )
        path = _resolved_root(directory) / name
        if not _PLAIN_PATH.fullmatch(str(path)):
            raise UsageError(
                f"Slurm can't work in {str(path)!r}: its configuration has no way to write it",
                fix='use a folder of letters, digits and "._+@-" (--dir)',
            )
        if len(os.fsencode(path)) <= _LONGEST_PATH:
            return cls(path, path)
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
        # Not TMPDIR, which may be long itself, or another one when it is to be removed.
        return cls(path, Path("/tmp", f"slurmgen-{os.geteuid()}-{digest}"))

    @property
    def slurm_conf(self) -> Path:
        return self.path / "slurm.conf"

    @property
    def slurmd_conf(self) -> Path:
        return self.path / "slurmd.conf"

    @property
    def task_prolog(self) -> Path:
        return self.path / "task-prolog"

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def controller_log(self) -> Path:
        return self.log / "slurmctld.log"

    @property
    def start_log(self) -> Path:
        """What the daemons said before they went into the background."""
        return self.log / "start.log"

    @property
    def spool(self) -> Path:
        return self.short / "spool"

    @property
    def munge_socket(self) -> Path:
        return self.short / "munge.sock"

    @property
    def description(self) -> Path:
        """Written last: where it exists, the sandbox was up once."""
        return self.path / "sandbox.json"

    @property
    def owner(self) -> Path:
        """Written first: the machine whose processes belong to this folder."""
        return self.path / "host"

    def create(self) -> None:
        """Make it, empty and private; it must not exist."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700)
        self.owner.write_text(socket.gethostname())
        if os.statvfs(self.path).f_flag & os.ST_NOEXEC:
            raise UnavailableError(
                f"no program may be run from {self.path}, where Slurm is to run one",
                fix="use a folder on a disk that isn't mounted noexec (--dir)",
            )
        if self.short != self.path:
            try:
                self.short.mkdir(mode=0o700)
            except FileExistsError as error:
                raise UnavailableError(
                    f"{self.short} is in the way of the sandbox's sockets",
                    fix="remove it, or use a shorter --dir",
                ) from error
        for folder in (
            self.log,
            self.spool,
            self.path / "state",
            self.path / "dev",
            self.path / "nscd",
        ):
            folder.mkdir()

    def remove(self) -> None:
        """Delete it with everything in it; nothing happens where there is none."""
        if self.short != self.path and _is_own(self.short):
            shutil.rmtree(self.short)
        if self.path.exists():
            shutil.rmtree(self.path)

    def foreign_host(self) -> str | None:
        """The other machine it belongs to: a home may be shared between login nodes."""
        try:
            host = self.owner.read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None
        # Empty if whoever made it was killed before it could write.
        return host if host not in ("", socket.gethostname()) else None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else starts or stops this sandbox inside the `with`."""
        deadline = Deadline(deadlines.LOCK, f"another slurmgen that is busy with {self.path}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
            while not self._take(lock):
                if deadline.passed:
                    raise UnavailableError(
                        f"another slurmgen has been busy with {self.path} for too long",
                        fix="wait for it, or end it",
                    )
                deadline.pause(0.05)
            yield

    def is_locked(self) -> bool:
        """Whether somebody starts or stops it right now."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
            return not self._take(lock)

    def _take(self, lock: socket.socket) -> bool:
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()
        try:
            # An abstract socket, not a lock file: it leaves nothing behind, even if killed.
            lock.bind(f"\0slurmgen-sandbox/{os.geteuid()}/{digest}")
        except OSError:
            return False
        return True


def sandbox_names(directory: Path | None) -> list[str]:
    """Names of the folders under `directory`, whatever their state, sorted."""
    root = _resolved_root(directory)
    if not root.is_dir():
        return []
    return sorted(entry.name for entry in root.iterdir() if (entry / "host").is_file())


def _resolved_root(directory: Path | None) -> Path:
    # Processes are recognized by this path, so it has to be the same however it was reached.
    return Path(os.path.realpath(os.path.expanduser(directory or _default_root())))


def _default_root() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification has relative paths ignored.
    base = Path(state) if os.path.isabs(state) else home_folder() / ".local" / "state"
    return base / "slurmgen" / "sandbox"


def _is_own(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid() and path.is_dir() and not path.is_symlink()
    except FileNotFoundError:
        return False
