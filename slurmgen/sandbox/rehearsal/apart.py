"""A process apart, in which a job is rehearsed: what its script does reaches nothing outside.

In namespaces of its own, as far as this machine lets this user make some:

* of processes: whatever the script starts ends with the rehearsal, and no signal leaves it;
* of the network: loopback and nothing else;
* of mounts, with a copy of every file: what the script writes, moves and deletes is a layer in
  memory, which goes away with the rehearsal. /dev, /run and /sys are the machine's own.

That keeps a script from doing harm by being rehearsed. It is no protection from somebody who means
to do harm: he has this user's rights, and reads this user's files.
"""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import pwd
import re
import select
import signal
import socket
import struct
import time
import traceback
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

from slurmgen.errors import SlurmgenError, UnavailableError
from slurmgen.sandbox import deadlines
from slurmgen.sandbox.deadlines import Deadline
from slurmgen.sandbox.isolation import die_with, mount, unshare_mounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

T = TypeVar("T")

_CLONE_NEWPID = 0x2000_0000
_CLONE_NEWNET = 0x4000_0000
_MS_NOSUID_NODEV_NOEXEC = 2 | 4 | 8
_MS_BIND, _MS_REC = 4096, 16384
_PATH = os.O_PATH | os.O_CLOEXEC
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFADDR, _IFF_UP = 0x8913, 0x8914, 0x8916, 1
# Kinds of mount that are no files of anybody's, and folders where programs leave their sockets,
# which a copy has no use for.
_NO_FILES = frozenset(
    "autofs binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fusectl "
    "hugetlbfs mqueue nsfs proc pstore rpc_pipefs securityfs selinuxfs sysfs tracefs".split()
)
_OWN_FOLDERS = ("/dev", "/proc", "/run", "/sys")
_LOOK = 0.25
# Of this machine's memory, for all that the script writes.
_LAYERS = "mode=700,size=25%"


class Bounds(NamedTuple):
    """What a rehearsal is kept from: other processes, the network, the files themselves.

    real: folders whose files it isn't kept from, as one that lies on a file system of which no
    copy can be made.
    """

    processes: bool
    network: bool
    files: bool
    real: tuple[str, ...] = ()


class Broken(SlurmgenError):
    """The job has ended its own rehearsal, or would have."""


def run(
    work: Callable[[Bounds], T], folder: Path, wanted: Bounds, *, processes: int, seconds: float
) -> T:
    """`work` in a process apart, and what it returns; whatever it started has ended then.

    work: is told which of what was `wanted` this machine has. folder: stays what it is. processes:
    more of them at once are too many. Raises what `work` raises, Broken, and UnavailableError if
    that takes more than `seconds`. For a process with one thread only.
    """
    (folder / "files").mkdir(exist_ok=True)
    reader, writer = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _Apart(work, folder, writer, processes).start(parent, wanted)
    os.close(writer)
    try:
        answer = _read(reader, seconds)
    finally:
        os.close(reader)
        # All that it holds ends with it.
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if not answer:
        raise Broken("it ends every process it can")
    kind, content = _unpickled(answer)
    match kind:
        case "returned":
            return cast("T", content)
        case "refused":
            raise content[0](content[1], fix=content[2])
        case "broken":
            raise Broken(content)
    raise RuntimeError(f"the rehearsal's own process ended:\n{content}")


def _read(reader: int, seconds: float) -> bytes:
    end = time.monotonic() + seconds
    parts: list[bytes] = []
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            raise UnavailableError(
                f"the rehearsal did not end within {seconds:.0f} s, and was ended",
                fix="try again when the machine is less busy, or with a larger --limit",
            )
        part = os.read(reader, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)


class _Unpickler(pickle.Unpickler):
    """Of slurmgen's own plain values."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "slurmgen" or (module, name) in {
            ("builtins", "frozenset"),
            ("builtins", "set"),
        }:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


def _unpickled(answer: bytes) -> tuple[str, Any]:
    found: tuple[str, Any] = _Unpickler(io.BytesIO(answer)).load()
    return found


class _Apart:
    """The process apart, and the one within that is the first of its namespace."""

    def __init__(
        self, work: Callable[[Bounds], object], folder: Path, writer: int, processes: int
    ) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._work = work
        self._folder = folder
        self._writer = writer
        self._processes = processes
        self._layers = 0
        self._real: list[str] = []

    def start(self, parent: int, wanted: Bounds) -> NoReturn:
        try:
            # Ctrl-C is the parent's to deal with.
            os.setsid()
            die_with(parent)
            has = next(bounds for bounds in _candidates(wanted) if self._can(bounds))
            self._unshare(has)
            # Once more: the kernel forgets it when rights change.
            die_with(parent)
            if has.processes:
                self._hold(has)
            self._settle(has)
            self._do(has)
        except BaseException:
            self._answer("ended", traceback.format_exc())
        finally:
            os._exit(1)

    def _can(self, bounds: Bounds) -> bool:
        """Tried in a child: there is no way back out of a namespace."""
        if not any(bounds):
            return True

        def begin() -> None:
            self._settle(bounds)
            # A directory that is asked over the network would be missed.
            pwd.getpwuid(os.geteuid())

        def all_of_it() -> None:
            self._unshare(bounds)
            if not _succeeds(begin):
                raise OSError

        return _succeeds(all_of_it)

    def _unshare(self, bounds: Bounds) -> None:
        if not any(bounds):
            return
        unshare_mounts(
            self._libc,
            (_CLONE_NEWPID if bounds.processes else 0) | (_CLONE_NEWNET if bounds.network else 0),
        )
        if bounds.network:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
                asked = ioctl(link, _SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0))
                flags = struct.unpack("16sH14x", asked)[1]
                ioctl(link, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))
                # glibc finds no name where a machine has no address but 127.0.0.1 (AI_ADDRCONFIG).
                second = struct.pack("=16sHH4s8x", b"lo:1", socket.AF_INET, 0, b"\x7f\0\0\2")
                ioctl(link, _SIOCSIFADDR, second)

    def _settle(self, has: Bounds) -> None:
        """In the first process of the namespaces: what it sees of processes and files."""
        if has.processes:
            mount(self._libc, "proc", "/proc", kind="proc", flags=_MS_NOSUID_NODEV_NOEXEC)
        if has.files:
            self._cover()

    def _hold(self, has: Bounds) -> NoReturn:
        """Fork the first process of the namespace, with which all others end."""
        reader, held = os.pipe()
        first = os.fork()
        if first == 0:
            os.close(held)
            try:
                self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if select.select([reader], [], [], 0)[0]:
                    os._exit(1)
                os.close(reader)
                self._be_first(has)
            except BaseException:
                self._answer("ended", traceback.format_exc())
            finally:
                os._exit(1)
        os.close(self._writer)
        os.waitpid(first, 0)
        os._exit(0)

    def _be_first(self, has: Bounds) -> None:
        self._settle(has)
        worker = os.fork()
        if worker == 0:
            self._do(has)
        with suppress(OSError):
            # A crowd of others must not keep it from looking.
            os.setpriority(os.PRIO_PROCESS, 0, -10)
        while True:
            with suppress(ChildProcessError):
                while ended := os.waitpid(-1, os.WNOHANG)[0]:
                    if ended == worker:
                        return
            if sum(name.isdigit() for name in os.listdir("/proc")) > self._processes:
                os.kill(worker, signal.SIGSTOP)
                self._answer("broken", f"it has more than {self._processes} processes at once")
                return
            time.sleep(_LOOK)

    def _do(self, has: Bounds) -> NoReturn:
        answer: tuple[str, object]
        try:
            # Without a namespace, what is orphaned comes here, and is ended at the end.
            self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
            try:
                answer = "returned", self._work(has._replace(real=tuple(self._real)))
            except SlurmgenError as error:
                kind = UnavailableError if isinstance(error, UnavailableError) else SlurmgenError
                answer = "refused", (kind, str(error), error.fix)
            if not has.processes:
                _end_descendants()
            self._answer(*answer)
        except BaseException:
            self._answer("ended", traceback.format_exc())
        finally:
            os._exit(0)

    def _answer(self, kind: str, content: object) -> None:
        with suppress(OSError), os.fdopen(self._writer, "wb") as file:
            pickle.dump((kind, content), file)

    def _cover(self) -> None:
        """Make the files of this process copies, except those in `folder`.

        Raises OSError if that can't be for the current folder or the home.
        """
        here, base = os.getcwd(), self._folder / "files"
        # Before anything lies over them.
        mounts = {place: (os.open(place, _PATH), real) for place, real in _mounts()}
        kept = os.open(self._folder, _PATH)
        mount(self._libc, "files", str(base), kind="tmpfs", flags=0, options=_LAYERS)
        layers = os.open(base, _PATH)
        base = Path(f"/proc/self/fd/{layers}")
        with os.scandir("/") as entries:
            folders = sorted(one.path for one in entries if one.is_dir(follow_symlinks=False))
        for place in folders:
            if place not in _OWN_FOLDERS:
                self._cover_one(place, mounts, base)
        mount(self._libc, f"/proc/self/fd/{kept}", str(self._folder), flags=_MS_BIND)
        for opened in (kept, layers, *(opened for opened, _ in mounts.values())):
            os.close(opened)
        os.chdir(here)
        for needed in (here, os.path.expanduser("~")):
            if any(_is_within(os.path.realpath(needed), (place,)) for place in self._real):
                raise OSError(f"{needed} can't be covered")

    def _cover_one(self, place: str, mounts: Mapping[str, tuple[int, bool]], base: Path) -> None:
        beneath = sorted(other for other in mounts if other.startswith(f"{place}/"))
        opened, real = mounts.get(place, (-1, True))
        source = place if opened < 0 else f"/proc/self/fd/{opened}"
        if real and self._layer(source, place, base):
            for other in beneath:
                opened, real = mounts[other]
                source = f"/proc/self/fd/{opened}"
                if real and self._layer(source, other, base):
                    continue
                with suppress(OSError):
                    mount(self._libc, source, other, flags=_MS_BIND)
                    if real:
                        self._real.append(other)
            return
        if not real:
            return
        if not beneath:
            self._real += [place] if os.access(place, os.W_OK) else []
            return
        # An ordinary user may put nothing over a folder with mounts in it, but over those beside.
        with suppress(OSError), os.scandir(place) as entries:
            for entry in sorted(entries, key=lambda one: one.path):
                inside = any(_is_within(other, (entry.path,)) for other in beneath)
                if entry.is_dir(follow_symlinks=False) and (inside or os.access(entry, os.W_OK)):
                    self._cover_one(entry.path, mounts, base)

    def _layer(self, source: str, target: str, base: Path) -> bool:
        """Mount a copy of `source` that is written to memory; False if that can't be."""
        self._layers += 1
        layer = base / str(self._layers)
        upper, work = layer / "upper", layer / "work"
        upper.mkdir(parents=True)
        work.mkdir()
        with suppress(OSError):
            state = os.stat(source)
            os.chmod(upper, state.st_mode & 0o7777)
        options = f"lowerdir={source},upperdir={upper},workdir={work}"
        for more in ("", ",userxattr"):
            with suppress(OSError):
                mount(
                    self._libc, "overlay", target, kind="overlay", flags=0, options=options + more
                )
                return True
        return False


def _candidates(wanted: Bounds) -> Iterator[Bounds]:
    """What to try, from all to nothing; what isn't wanted is never there."""
    tried = set()
    for processes in (True, False):
        for network, files in ((True, True), (True, False), (False, True), (False, False)):
            bounds = Bounds(
                processes and wanted.processes, network and wanted.network, files and wanted.files
            )
            if bounds not in tried:
                tried.add(bounds)
                yield bounds


def _succeeds(action: Callable[[], None]) -> bool:
    """In a child: after unshare(2) the first one is where a namespace of processes begins."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            action()
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _mounts() -> Iterator[tuple[str, bool]]:
    """Each place where something is mounted, and whether that are files that can be written."""
    for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        fields, _, rest = line.partition(" - ")
        written = fields.split()[4].encode("utf-8", "surrogateescape")
        # Blanks and the like are in octal there.
        octal = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), written)
        name = os.fsdecode(octal)
        if name == "/" or _is_within(name, _OWN_FOLDERS) or not os.path.lexists(name):
            continue
        plain = rest.split()[0] not in _NO_FILES and os.path.isdir(name)
        yield name, plain and "ro" not in fields.split()[5].split(",")


def _is_within(place: str, folders: tuple[str, ...]) -> bool:
    return any(place == folder or place.startswith(f"{folder}/") for folder in folders)


def _end_descendants() -> None:
    """Until none is left that descends from this process, which adopts every orphan."""
    deadline = Deadline(deadlines.KILLED, "what the job has started to end")
    while (children := _children()) and not deadline.passed:
        for pid in children:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
        deadline.pause(0.01)


def _children() -> list[int]:
    with suppress(OSError):
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        return [int(word) for word in text.split()]
    return []
