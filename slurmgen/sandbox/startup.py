"""Startup: a sandbox's daemons, from an empty folder to nodes that take jobs."""

from __future__ import annotations

import json
import os
import pwd
import secrets
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.errors import UnavailableError
from slurmgen.sandbox import isolation
from slurmgen.sandbox.addresses import claimed_addresses
from slurmgen.sandbox.configuration import (
    CONTROLLER,
    Setting,
    configuration_files,
    hosts_file,
)
from slurmgen.sandbox.processes import MARKER, running_daemons

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.sandbox.folder import Folder
    from slurmgen.sandbox.interruption import Interruptions
    from slurmgen.sandbox.programs import Programs
    from slurmgen.sandbox.shape import Shape

_STEP_SECONDS = 60
_POLL_SECONDS = 0.03
_LOG_LINES = 12


def start(folder: Folder, shape: Shape, programs: Programs, interruptions: Interruptions) -> bool:
    """Start everything in the new `folder`; true where all of it listens on loopback only.

    Returns once every node has registered. Whatever it raises, the caller has processes
    and the folder to clear away.
    """
    hosts = folder.path / "hosts"
    hosts.write_text("")
    loopback_only = _can_isolate(folder)
    gpu_files = _gpu_files(folder, shape.gpus_per_node, isolated=loopback_only)
    interruptions.check()
    with claimed_addresses(shape.nodes, loopback_only=loopback_only) as addresses:
        if loopback_only:
            hosts.write_text(hosts_file(_own_hosts(), shape, addresses))
        setting = Setting(
            folder=folder,
            addresses=addresses,
            user=pwd.getpwuid(os.geteuid()).pw_name,
            release=programs.release,
            loopback_only=loopback_only,
            gpu_files=gpu_files,
        )
        for name, text in configuration_files(shape, setting).items():
            path = folder.path / name
            path.write_text(text)
            path.chmod(0o700 if path == folder.task_prolog else 0o600)
        _start_munged(folder, programs)
        interruptions.check()
        _start_daemons(folder, [_controller(folder, programs, isolated=loopback_only)])
        interruptions.check()
        nodes = [
            _node(folder, programs, f"n{i}", isolated=loopback_only)
            for i in range(1, shape.nodes + 1)
        ]
        _start_daemons(folder, nodes)
        _wait_until_registered(folder, shape, programs, interruptions)
    return loopback_only


def daemon_environment(folder: Folder) -> dict[str, str]:
    """What a daemon gets: nothing of the caller's shell may leak into a job."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(Path.home()),
        "LANG": "C.UTF-8",
        "SLURM_CONF": str(folder.slurm_conf),
        MARKER: str(folder.path),
    }


def _isolation_program(verb: str, folder: Folder) -> list[str]:
    return [sys.executable, "-I", "-S", isolation.__file__, verb, str(folder.path)]


def _can_isolate(folder: Folder) -> bool:
    device = folder.path / "dev" / "probe"
    device.touch()
    answer = _run(folder, _isolation_program("probe", folder))
    device.unlink()
    return answer == 0


def _gpu_files(folder: Folder, count: int, *, isolated: bool) -> tuple[Path, ...]:
    """One character device for each GPU: slurmd hands out no GPU for any other file."""
    files = tuple(folder.path / "dev" / f"gpu{i}" for i in range(count))
    if isolated:
        for path in files:
            path.touch()
        return files
    try:
        for path in files:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError:
        # No right to make devices: any that exist do, since nobody opens them. Slurm reads
        # a GPU's number off the end of the name.
        files = tuple(Path(f"/dev/tty{i}") for i in range(count))
        if not all(path.is_char_device() for path in files):
            raise UnavailableError(
                f"found no {count} character devices to stand for GPUs "
                "(no user namespaces, no mknod, no /dev/tty0 and up)",
                fix="run as root or allow user namespaces, or ask for no GPUs",
            ) from None
    return files


def _own_hosts() -> str:
    try:
        return Path("/etc/hosts").read_text(errors="replace")
    except FileNotFoundError:
        return "127.0.0.1 localhost\n"


def _start_munged(folder: Folder, programs: Programs) -> None:
    key = folder.path / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    arguments = [
        programs.munged,
        # The folder is private, which munged otherwise refuses to put its socket into.
        "--force",
        f"--key-file={key}",
        f"--socket={folder.munge_socket}",
        f"--pid-file={folder.short / 'munged.pid'}",
        f"--log-file={folder.log / 'munged.log'}",
        f"--seed-file={folder.path / 'munge.seed'}",
        # Listing every group of a large directory takes long, and nothing here asks.
        "--group-update-time=-1",
    ]
    if _run(folder, arguments) != 0:
        raise _start_failure("munged", folder, folder.log / "munged.log")


def _controller(folder: Folder, programs: Programs, *, isolated: bool) -> dict[str, object]:
    return {
        "argv": [programs.slurmctld, "-i", "-f", str(folder.slurm_conf)],
        "env": daemon_environment(folder),
        "host": CONTROLLER if isolated else "",
    }


def _node(folder: Folder, programs: Programs, name: str, *, isolated: bool) -> dict[str, object]:
    conf = folder.slurmd_conf if isolated else folder.slurm_conf
    return {
        "argv": [programs.slurmd, "-N", name, "-f", str(conf)],
        "env": daemon_environment(folder),
        "host": name if isolated else "",
    }


def _start_daemons(folder: Folder, daemons: list[dict[str, object]]) -> None:
    if _run(folder, _isolation_program("start", folder), given=json.dumps(daemons)) != 0:
        raise _start_failure("Slurm", folder, folder.controller_log)


def _run(folder: Folder, arguments: Sequence[str], *, given: str = "") -> int:
    with folder.start_log.open("ab") as log:
        try:
            return subprocess.run(
                arguments,
                input=given.encode(),
                # A file, since a daemon would keep a pipe open for good.
                stdout=log,
                stderr=subprocess.STDOUT,
                env=daemon_environment(folder),
                cwd="/",
                timeout=_STEP_SECONDS,
                # Ctrl-C is ours to deal with: the terminal sends it to the whole session.
                start_new_session=True,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(
                f"{arguments[0]} did not go into the background within {_STEP_SECONDS} s",
                fix="try again when the machine is less busy, or ask for fewer nodes",
            ) from error


def _wait_until_registered(
    folder: Folder, shape: Shape, programs: Programs, interruptions: Interruptions
) -> None:
    deadline = time.monotonic() + 30 + shape.nodes / 2
    expected = {f"n{i}" for i in range(1, shape.nodes + 1)}
    while True:
        interruptions.check()
        if _registered_nodes(folder, programs) >= expected:
            return
        daemons = running_daemons(folder.path)
        if not daemons.controller:
            raise _start_failure("slurmctld", folder, folder.controller_log)
        if missing := expected - daemons.nodes:
            name = min(missing)
            raise _start_failure(f"the slurmd of {name}", folder, folder.log / f"{name}.log")
        if time.monotonic() > deadline:
            raise _start_failure("Slurm", folder, folder.controller_log)
        time.sleep(_POLL_SECONDS)


def _registered_nodes(folder: Folder, programs: Programs) -> set[str]:
    try:
        answer = subprocess.run(
            [programs.sinfo, "--noheader", "--all", "--Node", "--format=%N %t"],
            capture_output=True,
            text=True,
            env=daemon_environment(folder),
            timeout=10,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return set()
    rows = (line.split() for line in answer.stdout.splitlines())
    # "unk" has not been heard of yet, and "*" marks a node that does not answer.
    return {row[0] for row in rows if len(row) == 2 and row[1].strip("*") == row[1] != "unk"}


def _start_failure(what: str, folder: Folder, log: Path) -> UnavailableError:
    said = [*_last_lines(folder.start_log), *_last_lines(log)]
    return UnavailableError(
        "\n".join([f"{what} did not start", *(f"  {line}" for line in said)]),
        fix="mend what the log names; extra lines of slurm.conf are the first suspect",
    )


def _last_lines(log: Path) -> list[str]:
    try:
        return log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
    except FileNotFoundError:
        return []
