"""Startup: a sandbox's daemons, from an empty folder to nodes that take jobs."""

from __future__ import annotations

import json
import os
import pwd
import secrets
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import UnavailableError
from slurmgen.jobfile.project import home_folder
from slurmgen.sandbox import accounting as accounts
from slurmgen.sandbox import deadlines, isolation, keeper, release
from slurmgen.sandbox.addresses import claimed_addresses
from slurmgen.sandbox.configuration import (
    CONTROLLER,
    Setting,
    configuration_files,
    hosts_file,
    nsswitch_file,
)
from slurmgen.sandbox.deadlines import Deadline
from slurmgen.sandbox.network import Namespaces, Network, claimed_network, keeper_plan
from slurmgen.sandbox.processes import MARKER, running_daemons
from slurmgen.sandbox.programs import find_network_tools

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Collection, Sequence

    from slurmgen.interruption import Interruptions
    from slurmgen.sandbox.addresses import Layout
    from slurmgen.sandbox.folder import Folder
    from slurmgen.sandbox.programs import Programs
    from slurmgen.sandbox.shape import Shape

_POLL_SECONDS = 0.03
_LOG_LINES = 12


class Reach(NamedTuple):
    """Where a sandbox's daemons listen: on loopback only, in networks of their own, or neither."""

    loopback_only: bool
    network: Network | None

    @property
    def named(self) -> bool:
        """Whether each daemon runs on a host of its own name, with its own /etc/hosts."""
        return self.loopback_only or self.network is not None


def start(
    folder: Folder,
    shape: Shape,
    programs: Programs,
    interruptions: Interruptions,
    *,
    netns: bool,
    accounting: bool,
) -> Reach:
    """Start everything in the new `folder`.

    Returns once every node has registered. Whatever it raises, the caller has processes
    and the folder to clear away.
    """
    hosts = folder.path / "hosts"
    hosts.write_text("")
    (folder.path / "nsswitch.conf").write_text(nsswitch_file(_text("/etc/nsswitch.conf", "")))
    named = _can_isolate(folder, programs)
    if netns and not named:
        raise _no_networks(folder)
    gpu_files = _gpu_files(
        folder, max(group.gpus_per_node for group in shape.node_groups), isolated=named
    )
    interruptions.check()
    with _claimed(shape, loopback_only=named, netns=netns) as layout:
        network = layout if isinstance(layout, Network) else None
        reach = Reach(loopback_only=named and network is None, network=network)
        if named:
            # Slurm asks for the name of whoever calls it.
            others = [f"{network.machine} {socket.gethostname()}"] if network else []
            hosts.write_text(
                hosts_file(_text("/etc/hosts", "127.0.0.1 localhost\n"), shape, layout, others)
            )
        setting = Setting(
            folder=folder,
            addresses=layout,
            user=pwd.getpwuid(os.geteuid()).pw_name,
            release=programs.release,
            loopback_only=reach.loopback_only,
            own_networks=network is not None,
            accounting=accounting,
            gpu_files=gpu_files,
        )
        for name, text in configuration_files(shape, setting).items():
            path = folder.path / name
            path.write_text(text)
            path.chmod(0o700 if path == folder.task_prolog else 0o600)
        namespaces = _connect(folder, shape, network) if network else None
        interruptions.check()
        ask = Ask(folder, programs, layout, reach, namespaces)
        if reach.named and (wrong := ask.wrongly_named({CONTROLLER, "n1"})):
            raise _silence(folder, wrong)
        _start_munged(folder, programs)
        interruptions.check()
        if accounting:
            _start_accounting(
                folder, shape, programs, setting.user, reach, namespaces, interruptions
            )
        _start_daemons(folder, programs, [_controller(folder, programs, reach, namespaces)])
        interruptions.check()
        nodes = [
            _node(folder, programs, i, reach, namespaces) for i in range(1, shape.node_count + 1)
        ]
        _start_daemons(folder, programs, nodes)
        _wait_until_registered(folder, shape, programs, interruptions, ask)
        if silent := ask({f"n{i}" for i in range(1, shape.node_count + 1)}):
            raise _silence(folder, silent)
    return reach


def start_node(folder: Folder, programs: Programs, number: int, reach: Reach) -> None:
    """Start the slurmd of node `number` of a sandbox that is up, where it has none."""
    namespaces = Namespaces(folder) if reach.network else None
    _start_daemons(folder, programs, [_node(folder, programs, number, reach, namespaces)])


def registered_nodes(folder: Folder, programs: Programs) -> set[str]:
    """The nodes that the controller has heard of and that answer it."""
    try:
        words = [programs.sinfo, "--noheader", "--all", "--Node", "--format=%N %t"]
        answer = subprocess.run(
            release.command(programs.unpacked, words),
            capture_output=True,
            text=True,
            env=daemon_environment(folder),
            timeout=deadlines.ANSWER,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return set()
    rows = (line.split() for line in answer.stdout.splitlines())
    # "unk" has not been heard of yet, and "*" marks a node that does not answer.
    return {row[0] for row in rows if len(row) == 2 and row[1].strip("*") == row[1] != "unk"}


def daemon_environment(folder: Folder) -> dict[str, str]:
    """What a daemon gets: nothing of the caller's shell may leak into a job."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(home_folder()),
        "LANG": "C.UTF-8",
        "SLURM_CONF": str(folder.slurm_conf),
        MARKER: str(folder.path),
    }


def _isolation_program(verb: str, folder: Folder, programs: Programs) -> list[str]:
    words = [sys.executable, "-I", "-S", isolation.__file__, verb, str(folder.path)]
    return release.command(programs.unpacked, words)


def _can_isolate(folder: Folder, programs: Programs) -> bool:
    device = folder.path / "dev" / "probe"
    device.touch()
    answer = _run(folder, _isolation_program("probe", folder, programs))
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


def _text(path: str, otherwise: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return otherwise


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
    if _run(folder, release.command(programs.unpacked, arguments)) != 0:
        raise _start_failure("munged", folder, folder.log / "munged.log")


def _claimed(
    shape: Shape, *, loopback_only: bool, netns: bool
) -> contextlib.AbstractContextManager[Layout]:
    if netns:
        return claimed_network(find_network_tools().ip)
    return claimed_addresses(shape.node_count, loopback_only=loopback_only)


def _connect(folder: Folder, shape: Shape, network: Network) -> Namespaces:
    members = [(CONTROLLER, network.controller)]
    members += [(f"n{i}", network.node(i)) for i in range(1, shape.node_count + 1)]
    plan = keeper_plan(network, members, find_network_tools().ip)
    argv = [sys.executable, "-I", "-S", keeper.__file__, str(folder.path)]
    if _run(folder, argv, given=json.dumps(plan)) != 0:
        raise _no_networks(folder)
    return Namespaces(folder)


def _no_networks(folder: Folder) -> UnavailableError:
    said = "".join(f"\n  {line}" for line in _last_lines(folder.start_log))
    return UnavailableError(
        f"this machine allows no networks of a sandbox's own{said}",
        fix="allow root to make namespaces (docker run --privileged), or leave out --netns",
    )


def _start_accounting(
    folder: Folder,
    shape: Shape,
    programs: Programs,
    user: str,
    reach: Reach,
    namespaces: Namespaces | None,
    interruptions: Interruptions,
) -> None:
    found = accounts.find_programs(programs.unpacked)
    environment = daemon_environment(folder)
    accounts.start_database(folder, found, environment, interruptions.check)
    daemon: dict[str, object] = {
        "argv": [found.slurmdbd],
        "env": {**environment, **accounts.database_environment(folder)},
        "host": CONTROLLER if reach.named else "",
        "network": namespaces.controller if namespaces else "",
    }
    _start_daemons(folder, programs, [daemon])
    accounts.register(
        found,
        environment,
        user=user,
        folder=folder,
        lines=shape.sacctmgr,
        check=interruptions.check,
    )


def _controller(
    folder: Folder, programs: Programs, reach: Reach, namespaces: Namespaces | None
) -> dict[str, object]:
    return {
        "argv": [programs.slurmctld, "-i", "-f", str(folder.slurm_conf)],
        "env": daemon_environment(folder),
        "host": CONTROLLER if reach.named else "",
        "network": namespaces.controller if namespaces else "",
    }


def _node(
    folder: Folder, programs: Programs, number: int, reach: Reach, namespaces: Namespaces | None
) -> dict[str, object]:
    name = f"n{number}"
    conf = folder.slurmd_conf if reach.loopback_only else folder.slurm_conf
    return {
        "argv": [programs.slurmd, "-N", name, "-f", str(conf)],
        "env": daemon_environment(folder),
        "host": name if reach.named else "",
        "network": namespaces.node(number) if namespaces else "",
    }


def _start_daemons(folder: Folder, programs: Programs, daemons: list[dict[str, object]]) -> None:
    argv = _isolation_program("start", folder, programs)
    seconds = deadlines.step(len(daemons))
    if _run(folder, argv, given=json.dumps(daemons), seconds=seconds) != 0:
        raise _start_failure("Slurm", folder, folder.controller_log)


def _run(folder: Folder, arguments: Sequence[str], *, given: str = "", seconds: float = 0) -> int:
    seconds = seconds or deadlines.step(0)
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
                timeout=seconds,
                # Ctrl-C is ours to deal with: the terminal sends it to the whole session.
                start_new_session=True,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(
                f"{arguments[0]} did not go into the background within {seconds:.0f} s",
                fix="try again when the machine is less busy, or ask for fewer nodes",
            ) from error


def _wait_until_registered(
    folder: Folder,
    shape: Shape,
    programs: Programs,
    interruptions: Interruptions,
    ask: Ask,
) -> None:
    deadline = Deadline(deadlines.registration(shape.node_count), "the nodes to register")
    expected = {f"n{i}" for i in range(1, shape.node_count + 1)}
    while True:
        interruptions.check()
        missing = expected - registered_nodes(folder, programs)
        if not missing:
            return
        daemons = running_daemons(folder.path)
        if not daemons.controller:
            raise _start_failure("slurmctld", folder, folder.controller_log)
        if gone := expected - daemons.nodes:
            name = min(gone)
            raise _start_failure(f"the slurmd of {name}", folder, folder.log / f"{name}.log")
        if deadline.passed:
            # The controller first: without it no node registers.
            if silent := ask(missing | {CONTROLLER}):
                raise _silence(folder, silent)
            name = min(missing, key=_number)
            raise _start_failure(
                f"{name} did not register within {deadline.seconds:.0f} s: it",
                folder,
                folder.log / f"{name}.log",
            )
        deadline.pause(_POLL_SECONDS)


class Silent(NamedTuple):
    """A daemon that takes no connection. resolved: the addresses that its name has."""

    name: str
    address: str
    port: int
    error: str
    resolved: tuple[str, ...]


class Ask(NamedTuple):
    """Asks daemons from the controller's side, each once."""

    folder: Folder
    programs: Programs
    layout: Layout
    reach: Reach
    namespaces: Namespaces | None

    def __call__(self, names: Collection[str]) -> list[Silent]:
        """Those of `names` that take no connection; the controller first, then by number."""
        return self._ask(names, deadlines.CONNECTION)

    def wrongly_named(self, names: Collection[str]) -> list[Silent]:
        """Those of `names` that have another address than theirs, before anything listens."""
        return [one for one in self._ask(names, 0) if set(one.resolved) != {one.address}]

    def _ask(self, names: Collection[str], seconds: float) -> list[Silent]:
        layout = self.layout
        members = []
        for name in sorted(names, key=_number):
            number = _number(name)
            address = layout.node(number) if number else layout.controller
            port = layout.node_port(number) if number else layout.controller_port
            members.append({"name": name, "address": address, "port": port})
        asked = {
            "host": CONTROLLER if self.reach.named else "",
            "network": self.namespaces.controller if self.namespaces else "",
            "members": members,
            "seconds": seconds,
        }
        done = subprocess.run(
            _isolation_program("ask", self.folder, self.programs),
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            env=daemon_environment(self.folder),
            timeout=deadlines.step(len(members)),
            cwd="/",
            start_new_session=True,
            check=False,
        )
        if done.returncode:
            said = done.stderr.strip()
            raise UnavailableError(
                f"can't ask the nodes whether they answer: {said}", fix="try again"
            )
        return [
            Silent(
                one["name"],
                one["address"],
                one["port"],
                one.get("error", ""),
                tuple(one["resolved"]),
            )
            for one in json.loads(done.stdout)
        ]


def _number(name: str) -> int:
    """Of a node; 0 for the controller."""
    return 0 if name == CONTROLLER else int(name[1:])


_NAMED_SILENT = 4


def _silence(folder: Folder, silent: Sequence[Silent]) -> UnavailableError:
    lines = []
    for one in silent[:_NAMED_SILENT]:
        found = ", ".join(one.resolved) or "no address"
        lines.append(f"{one.name} at {one.address}:{one.port}" + (one.error and f": {one.error}"))
        lines.append(f"  the name {one.name} has {found} in the sandbox")
        log = folder.controller_log if one.name == CONTROLLER else folder.log / f"{one.name}.log"
        lines += [f"  {line}" for line in _last_lines(log)[-3:]]
    if len(silent) > _NAMED_SILENT:
        lines.append(f"and {len(silent) - _NAMED_SILENT} more")
    others = any(set(one.resolved) - {one.address} for one in silent)
    return UnavailableError(
        "\n".join(["the controller does not reach", *(f"  {line}" for line in lines)]),
        fix=f"look for {silent[0].name} in /etc/hosts, DNS and /etc/nsswitch.conf"
        if others
        else "look at this machine's firewall, and at what the log says",
    )


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
