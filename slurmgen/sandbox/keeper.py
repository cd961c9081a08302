"""A program of its own: makes the network of a sandbox and holds it until it is killed.

A switch, which only forwards, and behind it a namespace for each member: the controller and
the nodes. None of them has a name: they live as long as this process has them open, or a
process lives in them, and every link ends in the switch. So nothing is left of the network
once the sandbox's processes are gone, whatever ended them.

    keeper.py FOLDER   reads, as JSON, on standard input: `ip` (the program), `members` (for
                       each its lines for `ip -batch`, run in its own namespace), `switch` and
                       `machine` (the lines for those two). {switch}, {machine} and {pid} stand
                       for the two namespaces and this process. Status 0 when all of it is up;
                       the process that holds it stays behind.

The switch is open as file descriptor SWITCH, the first member as the one after it, and so on:
`/proc/PID/fd/N` is a namespace to enter. The machine's own is open below them, and only for as
long as the network is made. Run by path with `python -I -S`, as isolation.py is.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

SWITCH = 16

_CLONE_NEWNET = 0x4000_0000


def main() -> int:
    plan = json.load(sys.stdin)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        _keep(plan, writer)
    os.close(writer)
    # Empty where the keeper died before it could say.
    return 0 if os.read(reader, 1) == b"+" else 1


def _keep(plan: dict[str, Any], writer: int) -> NoReturn:
    try:
        os.setsid()
        _make(plan)
        os.write(writer, b"+")
        os.close(writer)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        while True:
            signal.pause()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"network: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(1)


def _make(plan: dict[str, Any]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    files = SWITCH + len(plan["members"]) + 16
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY:
        files = min(files, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, 1024), hard))
    machine = _open_own(SWITCH - 1)
    switch = _enter_new(libc, SWITCH)
    # As `ip` has them, in whichever namespace it runs.
    names = {
        "machine": f"/proc/{os.getpid()}/fd/{machine}",
        "switch": f"/proc/{os.getpid()}/fd/{switch}",
        "pid": str(os.getpid()),
    }
    for number, lines in enumerate(plan["members"], start=SWITCH + 1):
        _enter_new(libc, number)
        _ip(plan["ip"], lines, names)
    _enter(libc, switch)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    # Each packet that it refuses is answered, not one a second.
    Path("/proc/sys/net/ipv4/icmp_ratelimit").write_text("0")
    _ip(plan["ip"], plan["switch"], names)
    _enter(libc, machine)
    _ip(plan["ip"], plan["machine"], names)
    _enter(libc, switch)
    os.close(machine)


def _enter_new(libc: ctypes.CDLL, number: int) -> int:
    _check(libc.unshare(_CLONE_NEWNET), "a network namespace")
    with contextlib.suppress(OSError):
        # Node to node over IPv4 alone, whatever this machine's default is.
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    return _open_own(number)


def _open_own(number: int) -> int:
    own = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(own, number, inheritable=False)
    os.close(own)
    return number


def _enter(libc: ctypes.CDLL, namespace: int) -> None:
    _check(libc.setns(namespace, _CLONE_NEWNET), "setns")


def _ip(program: str, lines: list[str], names: dict[str, str]) -> None:
    text = "".join(line.format(**names) + "\n" for line in lines)
    subprocess.run([program, "-batch", "-"], input=text.encode(), check=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    sys.exit(main())
