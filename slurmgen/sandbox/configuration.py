"""Configuration: the text of a sandbox's files. Pure; nothing is written here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.sandbox import accounting
from slurmgen.sandbox.shape import PREEMPTOR

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from slurmgen.sandbox.addresses import Layout
    from slurmgen.sandbox.folder import Folder
    from slurmgen.sandbox.shape import Shape

# The controller's host name, where it has one of its own.
CONTROLLER = "ctl"
# What the names of nodes that are powered off begin with.
_OFF = "off"


class Setting(NamedTuple):
    """What a configuration depends on, beside the shape."""

    folder: Folder
    addresses: Layout
    user: str
    release: tuple[int, int]
    loopback_only: bool
    own_networks: bool
    accounting: bool
    gpu_files: tuple[Path, ...]


def configuration_files(shape: Shape, setting: Setting) -> dict[str, str]:
    """Name and text of each file of the sandbox's folder."""
    files = {
        "slurm.conf": _slurm_conf(shape, setting, for_slurmd=False),
        "gres.conf": _gres_conf(shape, setting),
    }
    if setting.loopback_only:
        files["slurmd.conf"] = _slurm_conf(shape, setting, for_slurmd=True)
        # NoInAddrAny is for slurmd alone: under it srun would listen on its node's address,
        # but the kernel gives every connection over loopback the source address 127.0.0.1,
        # and that is where a node calls back. slurmd hands its own file down to its jobs.
        files[setting.folder.task_prolog.name] = (
            f"#!/bin/sh\necho export SLURM_CONF={setting.folder.slurm_conf}\n"
        )
    if setting.accounting:
        files["slurmdbd.conf"] = accounting.slurmdbd_conf(
            setting.folder,
            user=setting.user,
            address=setting.addresses.controller,
            port=setting.addresses.accounting_port,
            loopback_only=setting.loopback_only,
        )
    if setting.release >= (23, 2):
        # Without a cgroup file system to its liking slurmd refuses to start; older releases
        # do not know this line and need none.
        files["cgroup.conf"] = "CgroupPlugin=disabled\n"
    return files


def hosts_file(existing: str, shape: Shape, addresses: Layout, others: Sequence[str] = ()) -> str:
    """The /etc/hosts that daemons and jobs see: the sandbox's names, then this machine's others.

    glibc gathers the addresses of a name from all lines, so no line of this machine's may have
    a name of the sandbox's (`127.0.1.1 n1` on a host that is called so): the name is left out.

    others: more lines, of which the same holds.
    """
    members = {CONTROLLER: addresses.controller}
    members |= {f"n{i}": addresses.node(i) for i in range(1, shape.node_count + 1)}
    lines = [f"{address} {name}" for name, address in members.items()]
    lines += [_without(members.keys(), line) for line in [*others, *existing.splitlines()]]
    return "\n".join(lines) + "\n"


def _without(names: Collection[str], line: str) -> str:
    """A line of /etc/hosts without `names`, a comment if it has no other."""
    words = line.partition("#")[0].split()
    # As glibc compares them. A name with a domain is another one, and stays.
    kept = [word for word in words[1:] if word.lower() not in names]
    if len(kept) == len(words[1:]):
        return line
    return " ".join([words[0], *kept]) if kept else f"# {line}"


def nsswitch_file(existing: str) -> str:
    """The /etc/nsswitch.conf that they see: /etc/hosts answers first, whatever DNS has."""
    return re.sub(r"(?im)^([ \t]*hosts:).*$", _files_first, existing)


def _files_first(line: re.Match[str]) -> str:
    # An action ([NOTFOUND=return]) belongs to the service before it.
    services = re.findall(
        r"[^\s\[\]]+(?:\s*\[[^\]]*\])*", line[0][len(line[1]) :].partition("#")[0]
    )
    return " ".join(
        [line[1], "files", *(one for one in services if one.split("[")[0].strip() != "files")]
    )


def _slurm_conf(shape: Shape, setting: Setting, *, for_slurmd: bool) -> str:
    settings = _settings(shape, setting)
    if setting.loopback_only:
        # slurmctld and slurmd read different files; see configuration_files().
        settings["DebugFlags"] = "NO_CONF_HASH"
        settings["CommunicationParameters"] = "NoCtldInAddrAny"
    if for_slurmd:
        settings["CommunicationParameters"] = "NoInAddrAny"
        settings["TaskProlog"] = str(setting.folder.task_prolog)
    # Slurm would take the later one of two, but every command would complain of them.
    overridden = {line.split("=")[0].strip().lower() for line in shape.extra_conf}
    lines = [f"{key}={value}" for key, value in settings.items() if key.lower() not in overridden]
    lines += _node_lines(shape, setting.addresses)
    lines += _partition_lines(shape)
    lines += shape.extra_conf
    return "\n".join(lines) + "\n"


def _settings(shape: Shape, setting: Setting) -> dict[str, str]:
    folder, addresses = setting.folder, setting.addresses
    named = setting.loopback_only or setting.own_networks
    controller = CONTROLLER if named else "localhost"
    settings = {
        "ClusterName": accounting.CLUSTER,
        "SlurmctldHost": f"{controller}({addresses.controller})",
        "SlurmctldPort": str(addresses.controller_port),
        "SlurmUser": setting.user,
        "SlurmdUser": setting.user,
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        # A requeued job waits as long as a credential lives, by default two minutes. It must
        # outlive the launch of a step, which takes longer the more nodes share these cores.
        "AuthInfo": f"socket={folder.munge_socket},cred_expire={5 + shape.node_count // 8}",
        "StateSaveLocation": str(folder.path / "state"),
        "SlurmdSpoolDir": f"{folder.spool}/%n",
        "SlurmctldLogFile": str(folder.controller_log),
        "SlurmdLogFile": f"{folder.log}/%n.log",
        "SlurmctldPidFile": str(folder.path / "slurmctld.pid"),
        "SlurmdPidFile": f"{folder.spool}/%n.pid",
        # Takes the nodes' CPUs and memory from here rather than from this machine.
        "SlurmdParameters": "config_overrides",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "MpiDefault": "none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        # Else a job that names no memory takes all of its nodes', and runs alone there.
        "DefMemPerCPU": str(
            min(max(1, group.memory_mb // group.cpus_per_node) for group in shape.node_groups)
        ),
        # slurmctld looks at batch jobs once a second at most, and less often by default.
        "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,bf_interval=1",
        "ReturnToService": "2",
        "KillWait": "5",
        "MinJobAge": "3600",
        "FirstJobId": str(addresses.first_job_id),
        # Cores are few and pretended nodes many: late is not dead.
        "MessageTimeout": "60",
    }
    if any(group.gres for group in shape.node_groups):
        settings["GresTypes"] = "gpu"
    if any(group.powered_off for group in shape.node_groups):
        # Without these two Slurm would call such nodes down, and without the third hide them.
        settings |= {
            "SuspendProgram": "/bin/true",
            "ResumeProgram": "/bin/true",
            "PrivateData": "cloud",
        }
    if setting.accounting:
        settings |= accounting.slurm_settings(
            folder,
            address=addresses.controller,
            port=addresses.accounting_port,
            release=setting.release,
        )
    if shape.grace_seconds is not None:
        settings |= {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"}
    return settings


def _node_lines(shape: Shape, addresses: Layout) -> list[str]:
    lines = []
    for index, group in enumerate(shape.node_groups):
        common = (
            f"CPUs={group.cpus_per_node} CoresPerSocket={group.cpus_per_node} "
            f"RealMemory={group.memory_mb}"
        )
        if group.gres:
            common += f" Gres={group.gres}"
        if group.features:
            common += f" Features={','.join(group.features)}"
        lines += [
            f"NodeName=n{i} NodeAddr={addresses.node(i)} Port={addresses.node_port(i)} {common}"
            for i in shape.numbers(index)
        ]
        if group.powered_off:
            lines.append(
                f"NodeName={_bracketed(_OFF, shape.powered_off(index))} {common} State=CLOUD"
            )
    return lines


def _partition_lines(shape: Shape) -> list[str]:
    lines = []
    for index, partition in enumerate(shape.partition_shapes):
        limit = partition.max_minutes
        words = [
            f"PartitionName={partition.name}",
            f"Nodes={','.join(_names(shape, group) for group in partition.groups) or 'ALL'}",
            f"Default={'YES' if index == 0 else 'NO'}",
            # A bounded default, else `--test-only` foresees a start in two hundred years.
            f"DefaultTime={'1:00:00' if limit is None else min(limit, 60)}",
            f"MaxTime={'UNLIMITED' if limit is None else limit}",
        ]
        if partition.min_nodes > 1:
            words.append(f"MinNodes={partition.min_nodes}")
        if partition.max_nodes is not None:
            words.append(f"MaxNodes={partition.max_nodes}")
        if shape.grace_seconds is not None:
            words.append(f"PriorityTier=1 PreemptMode=REQUEUE GraceTime={shape.grace_seconds}")
        lines.append(" ".join([*words, *partition.further, "State=UP"]))
    if shape.grace_seconds is not None:
        lines.append(
            f"PartitionName={PREEMPTOR} Nodes=ALL Default=NO Hidden=YES DefaultTime=1 "
            "MaxTime=UNLIMITED PriorityTier=9 PreemptMode=OFF State=UP"
        )
    return lines


def _names(shape: Shape, group: int) -> str:
    names = [_bracketed("n", shape.numbers(group))]
    if shape.node_groups[group].powered_off:
        names.append(_bracketed(_OFF, shape.powered_off(group)))
    return ",".join(names)


def _bracketed(prefix: str, numbers: range) -> str:
    first, last = numbers[0], numbers[-1]
    return f"{prefix}{first}" if first == last else f"{prefix}[{first}-{last}]"


def _gres_conf(shape: Shape, setting: Setting) -> str:
    lines = []
    for index, group in enumerate(shape.node_groups):
        # One file for all nodes: each takes the lines that name it, or none at all.
        where = f"NodeName={_names(shape, index)} " if len(shape.node_groups) > 1 else ""
        kind = f" Type={group.gpu_type}" if group.gpu_type else ""
        files = setting.gpu_files[: group.gpus_per_node]
        lines += [f"{where}Name=gpu{kind} File={path}\n" for path in files]
    return "".join(lines)
