"""A private record of each submission from before sbatch is called until its id has been told.

The record is the script itself, in a folder of its own, and sbatch is given that file: so the
folder's random name, the token, goes with the job (`whereabouts`), and a slurmgen that is killed
leaves behind what the next submission of the same job needs to find it.

    $XDG_STATE_HOME/slurmgen/submits/KEY-ENVIRONMENT-TOKEN/
        lock      held by slurmgen as long as it lives
        sbatch    the script; held by slurmgen and by sbatch, for as long as one of them lives

KEY: a digest of the job file's path, the working folder, the script and where it goes, so that a
sweep's jobs, which differ in their script, are told apart. ENVIRONMENT: a digest of the
variables, which the job gets too.

Locks are flock(2)s: the kernel gives them up, however a process ends. A file system without them,
a home that is full or read-only: the record is kept in the machine's folder for temporary files.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Without a name of its own a job is called like the script's file, and one from standard
# input `sbatch`: as that is what sbatch(1) says, it stays so.
_SCRIPT, _LOCK = "sbatch", "lock"
# Days after which nobody asks any more what became of a submission.
_KEPT_DAYS = 7
# What another terminal or connection sets otherwise and no job is meant to depend on.
_OF_TERMINALS = (
    "SSH_ XDG_ TERM TMUX STY WINDOW DISPLAY DBUS_ VTE_ COLORTERM COLUMNS LINES SHLVL PWD OLDPWD "
    "KRB5CCNAME GPG_ VSCODE_ GIT_ASKPASS LS_COLORS PS1"
).split()


class Job(NamedTuple):
    """What makes two submissions the same one, tried twice."""

    key: str
    environment: str

    @classmethod
    def of(cls, path: str, script: str, environment: Mapping[str, str]) -> Job:
        """path: of the job file, "" where there is none."""
        where = [environment.get(name, "") for name in ("SLURM_CONF", "SLURM_CLUSTERS")]
        at = os.path.abspath(path) if path not in ("", "-") else path
        rest = sorted(
            f"{name}={value}"
            for name, value in environment.items()
            if name != "_" and not name.startswith(tuple(_OF_TERMINALS))
        )
        return cls(_digest([at, os.getcwd(), script, *where]), _digest(rest))


class Record(NamedTuple):
    """A submission under way, or one that never ended.

    began: by this machine's clock (time.time()), which may have jumped since.
    descriptor: of the script's file; what inherits it counts as this submission's sbatch.
    """

    folder: Path
    began: float
    descriptor: int

    @property
    def script(self) -> Path:
        return self.folder / _SCRIPT

    @property
    def token(self) -> str:
        return self.folder.name.rpartition("-")[2]

    @property
    def environment(self) -> str:
        return self.folder.name.split("-")[1]

    def forget(self) -> None:
        """Its id has been told, or there is none."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def sbatch_has_ended(self) -> bool:
        """Whether nobody else holds the script any more; of a record from `unfinished`."""
        return _lock(self.descriptor)


@contextmanager
def record(job: Job, script: str) -> Iterator[Record]:
    """Keep `script` until the record is told to forget. Raises UnavailableError."""
    token = secrets.token_hex(8)
    problems = []
    with ExitStack() as held:
        for find_base in (_home, _shared, lambda: _own(held)):
            try:
                made = _make(find_base(), f"{job.key}-{job.environment}-{token}", script, held)
            except OSError as error:
                problems.append(f"{error.filename or 'a lock'}: {error.strerror}")
                continue
            break
        else:
            raise UnavailableError(
                f"nowhere to keep the script for sbatch ({'; '.join(problems)}); nothing was "
                "submitted",
                fix="make room, or name a folder that can be written in TMPDIR",
            )
        yield made


@contextmanager
def unfinished(job: Job) -> Iterator[list[Record]]:
    """What was left of the same job by a slurmgen that is no more, the oldest first.

    They are this caller's alone: whoever else looks meanwhile doesn't get them.
    """
    found = []
    with ExitStack() as held:
        for find_base in (_home, _shared):
            with suppress(OSError):
                for folder in find_base().iterdir():
                    taken = _take(folder, job, held)
                    if taken is not None:
                        found.append(taken)
        yield sorted(found, key=lambda taken: taken.began)


def _take(folder: Path, job: Job, held: ExitStack) -> Record | None:
    old = False
    with suppress(OSError):
        old = time.time() - folder.stat().st_mtime > _KEPT_DAYS * 24 * 3600
    if not old and not folder.name.startswith(f"{job.key}-"):
        return None
    try:
        lock = _open(folder / _LOCK, held)
        # Whoever made it may have forgotten it since it was listed.
        if not _lock(lock) or not (folder / _LOCK).exists():
            return None
        if old:
            shutil.rmtree(folder, ignore_errors=True)
            return None
        script = _open(folder / _SCRIPT, held)
        return Record(folder, os.fstat(script).st_mtime, script)
    except OSError:
        return None


def _make(base: Path, name: str, script: str, held: ExitStack) -> Record:
    # Under another name until it is locked: to those who look it would seem left behind.
    hidden = base / f".{name}"
    hidden.mkdir(mode=0o700)
    try:
        lock = _open(hidden / _LOCK, held, os.O_CREAT | os.O_EXCL)
        file = _open(hidden / _SCRIPT, held, os.O_CREAT | os.O_EXCL)
        for descriptor in (lock, file):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with os.fdopen(os.dup(file), "wb") as stream:
            stream.write(script.encode())
            stream.flush()
            os.fsync(file)
        hidden.rename(base / name)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return Record(base / name, time.time(), file)


def _open(path: Path, held: ExitStack, flags: int = 0) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    held.callback(os.close, descriptor)
    return descriptor


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _home() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification has relative paths ignored.
    if os.path.isabs(state):
        return _private(Path(state, "slurmgen", "submits"))
    # A home that isn't there (root's HOME=/nonexistent) is nobody's to make.
    home = Path(os.path.expanduser("~")).resolve(strict=True)
    return _private(home / ".local/state/slurmgen/submits")


def _shared() -> Path:
    """Everybody may write to the folder around: somebody else's may stand there already."""
    return _private(Path(tempfile.gettempdir(), f"slurmgen-{os.getuid()}"))


def _own(held: ExitStack) -> Path:
    """Found by nobody later; the submission itself needs no more."""
    folder = tempfile.mkdtemp(prefix="slurmgen-")
    held.callback(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & 0o022:
        raise PermissionError(1, "not a private folder", str(folder))
    return folder


def _digest(parts: list[str]) -> str:
    text = "\0".join(parts).encode(errors="surrogateescape")
    return hashlib.sha256(text).hexdigest()[:16]
