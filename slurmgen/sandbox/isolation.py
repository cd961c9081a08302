"""A program of its own: starts daemons, each on a host of its own name.

Slurm binds a daemon to one address only by way of `CommunicationParameters=NoInAddrAny`,
which takes the address that the machine's own host name resolves to. So each daemon gets
a private host name and a private /etc/hosts (a UTS and a mount namespace; an ordinary user
needs a user namespace around them). It also sees its GPUs there: /dev/null, mounted over
empty files, since slurmd wants character devices and only root could make some.

    isolation.py probe FOLDER   status 0 where this machine and user allow all that
    isolation.py start FOLDER   starts what standard input lists, as JSON: objects with
                                `argv`, `env`, `host` ("" for the machine's own) and `network`
                                (the file of a namespace; "" for the machine's own); status
                                0 where each of them went into the background
    isolation.py ask FOLDER     asks what standard input lists from one host's side, as JSON: an
                                object with `host`, `network` and `members` (objects with `name`,
                                `address`, `port`) and `seconds`; prints the members that take no
                                connection for so long (with 0 it isn't tried, and all of them),
                                with `error` and `resolved`, the addresses that the name has

Run by path with `python -I -S`, single-threaded and without slurmgen: forking a process
that may have threads, to run Python between fork and exec, is asking for a deadlock.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, NoReturn, cast

_CLONE_NEWNS = 0x0002_0000
_CLONE_NEWUTS = 0x0400_0000
_CLONE_NEWUSER = 0x1000_0000
_CLONE_NEWNET = 0x4000_0000
_MS_BIND = 4096
_PR_SET_PDEATHSIG = 1
_MS_REC = 16384
_MS_PRIVATE = 1 << 18

_NSSWITCH, _NSCD = "/etc/nsswitch.conf", "/run/nscd"
_ASKED_AT_ONCE = 200

# Each start waits for its daemon to read its configuration: more than this at once only
# makes them wait for each other.
_AT_ONCE = 2 * (os.cpu_count() or 1)


def main(verb: str, folder: Path) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if verb == "probe":
        return _probe(libc, folder)
    if verb == "ask":
        return _ask(libc, folder, json.load(sys.stdin))
    daemons = json.load(sys.stdin)
    running: set[int] = set()
    failed = False
    for daemon in daemons:
        if len(running) >= _AT_ONCE:
            failed |= _reap(running)
        running.add(_fork(libc, folder, daemon))
    while running:
        failed |= _reap(running)
    return 1 if failed else 0


def _fork(libc: ctypes.CDLL, folder: Path, daemon: dict[str, Any]) -> int:
    pid = os.fork()
    if pid == 0:
        _become(libc, folder, daemon)
    return pid


def _reap(running: set[int]) -> bool:
    pid, status = os.wait()
    running.discard(pid)
    return status != 0


def _become(libc: ctypes.CDLL, folder: Path, daemon: dict[str, Any]) -> NoReturn:
    try:
        _enter(libc, folder, daemon)
        os.execve(daemon["argv"][0], daemon["argv"], daemon["env"])
    except OSError as error:
        sys.stderr.write(f"{daemon['argv'][0]}: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(1)


def _probe(libc: ctypes.CDLL, folder: Path) -> int:
    try:
        _isolate(libc, folder, "probe")
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _enter(libc: ctypes.CDLL, folder: Path, host: dict[str, Any]) -> None:
    if host["network"]:
        with open(host["network"]) as network:
            _check(libc.setns(network.fileno(), _CLONE_NEWNET), "setns")
    if host["host"]:
        _isolate(libc, folder, host["host"])


def _ask(libc: ctypes.CDLL, folder: Path, asked: dict[str, Any]) -> int:
    _enter(libc, folder, asked)
    silent = []
    for at in range(0, len(asked["members"]), _ASKED_AT_ONCE):
        members = asked["members"][at : at + _ASKED_AT_ONCE]
        if asked["seconds"]:
            members = _without_answer(members, asked["seconds"])
        silent += members
    for member in silent:
        member["resolved"] = _addresses(member["name"])
    json.dump(silent, sys.stdout)
    return 0


def _without_answer(members: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for member in members:
            link = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            link.setblocking(False)
            member["error"] = f"no answer for {seconds:g} s"
            number = link.connect_ex((member["address"], member["port"]))
            if number not in (0, errno.EINPROGRESS):
                member["error"] = os.strerror(number)
                link.close()
            else:
                selector.register(link, selectors.EVENT_WRITE, member)
        while selector.get_map() and (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                selector.unregister(key.fileobj)
                with cast("socket.socket", key.fileobj) as link:
                    number = link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                key.data["error"] = os.strerror(number) if number else ""
        for key in list(selector.get_map().values()):
            cast("socket.socket", key.fileobj).close()
    return [member for member in members if member["error"]]


def _addresses(name: str) -> list[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return sorted({str(one[4][0]) for one in found})


def _isolate(libc: ctypes.CDLL, folder: Path, host: str) -> None:
    unshare_mounts(libc, _CLONE_NEWUTS)
    mount(libc, str(folder / "hosts"), "/etc/hosts", flags=_MS_BIND)
    if os.path.exists(_NSSWITCH):
        mount(libc, str(folder / "nsswitch.conf"), _NSSWITCH, flags=_MS_BIND)
    if os.path.isdir(_NSCD):
        # It would answer from the machine's own /etc/hosts.
        mount(libc, str(folder / "nscd"), _NSCD, flags=_MS_BIND)
    for device in (folder / "dev").iterdir():
        mount(libc, "/dev/null", str(device), flags=_MS_BIND)
    socket.sethostname(host)


def die_with(parent: int) -> None:
    """Have this process killed as soon as `parent`, which is its parent, ends."""
    _check(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL), "prctl")
    if os.getppid() != parent:
        os._exit(1)


def unshare_mounts(libc: ctypes.CDLL, flags: int = 0) -> None:
    """Give this process mounts of its own, and what else `flags` of unshare(2) name.

    An ordinary user gets a user namespace around them. Raises OSError where that isn't allowed.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags |= _CLONE_NEWNS
    if uid != 0:
        flags |= _CLONE_NEWUSER
    _check(libc.unshare(flags), "unshare")
    if uid != 0:
        # The same ids inside: Slurm and the job must find the user they know.
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    mount(libc, "none", "/", flags=_MS_REC | _MS_PRIVATE)


def mount(
    libc: ctypes.CDLL, source: str, target: str, *, kind: str = "", flags: int, options: str = ""
) -> None:
    """mount(2), which raises OSError."""
    words = (source.encode(), target.encode(), kind.encode() or None)
    result = libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None)
    _check(result, f"mount {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
