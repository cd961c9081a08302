"""Configuration: the text of a sandbox's files. Pure; nothing is written here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slurmgen.sandbox.addresses import Layout
    from slurmgen.sandbox.folder import Folder
    from slurmgen.sandbox.shape import Shape

# The controller's host name, where it has one of its own.
CONTROLLER = "ctl"


class Setting(NamedTuple):
    """What a configuration depends on, beside the shape."""

    folder: Folder
    addresses: Layout
    user: str
    release: tuple[int, int]
    loopback_only: bool
    own_networks: bool
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
    if setting.release >= (23, 2):
        # Without a cgroup file system to its liking slurmd refuses to start; older releases
        # do not know this line and need none.
        files["cgroup.conf"] = "CgroupPlugin=disabled\n"
    return files


def hosts_file(existing: str, shape: Shape, addresses: Layout, others: Sequence[str] = ()) -> str:
    """The /etc/hosts that daemons and jobs see: the nodes' names before this machine's.

    others: more lines.
    """
    lines = [f"{addresses.controller} {CONTROLLER}\n", *(f"{line}\n" for line in others)]
    lines += [f"{addresses.node(i)} n{i}\n" for i in range(1, shape.nodes + 1)]
    return "".join(lines) + existing


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
    for index, partition in enumerate(shape.partitions):
        default = "YES" if index == 0 else "NO"
        lines.append(
            f"PartitionName={partition} Nodes=ALL Default={default} "
            # A bounded default, else `--test-only` foresees a start in two hundred years.
            "DefaultTime=1:00:00 MaxTime=UNLIMITED State=UP"
        )
    lines += shape.extra_conf
    return "\n".join(lines) + "\n"


def _settings(shape: Shape, setting: Setting) -> dict[str, str]:
    folder, addresses = setting.folder, setting.addresses
    named = setting.loopback_only or setting.own_networks
    controller = CONTROLLER if named else "localhost"
    settings = {
        "ClusterName": "sandbox",
        "SlurmctldHost": f"{controller}({addresses.controller})",
        "SlurmctldPort": str(addresses.controller_port),
        "SlurmUser": setting.user,
        "SlurmdUser": setting.user,
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        # A requeued job waits as long as a credential lives, by default two minutes. It must
        # outlive the launch of a step, which takes longer the more nodes share these cores.
        "AuthInfo": f"socket={folder.munge_socket},cred_expire={5 + shape.nodes // 8}",
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
        "DefMemPerCPU": str(max(1, shape.memory_mb // shape.cpus_per_node)),
        # slurmctld looks at batch jobs once a second at most, and less often by default.
        "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,bf_interval=1",
        "ReturnToService": "2",
        "KillWait": "5",
        "MinJobAge": "3600",
        "FirstJobId": str(addresses.first_job_id),
        # Cores are few and pretended nodes many: late is not dead.
        "MessageTimeout": "60",
    }
    if shape.gres:
        settings["GresTypes"] = "gpu"
    return settings


def _node_lines(shape: Shape, addresses: Layout) -> list[str]:
    gres = f" Gres={shape.gres}" if shape.gres else ""
    common = (
        f"CPUs={shape.cpus_per_node} CoresPerSocket={shape.cpus_per_node} "
        f"RealMemory={shape.memory_mb}{gres}"
    )
    return [
        f"NodeName=n{i} NodeAddr={addresses.node(i)} Port={addresses.node_port(i)} {common}"
        for i in range(1, shape.nodes + 1)
    ]


def _gres_conf(shape: Shape, setting: Setting) -> str:
    kind = f" Type={shape.gpu_type}" if shape.gpu_type else ""
    return "".join(f"Name=gpu{kind} File={path}\n" for path in setting.gpu_files)
