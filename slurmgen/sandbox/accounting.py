"""Accounting: a database and slurmdbd of a sandbox's own, so that sacct and sacctmgr work.

MariaDB keeps to a socket inside the sandbox's folder, and asks nobody for a password there: who
may enter the folder is the user that runs it all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import UnavailableError
from slurmgen.sandbox import deadlines, release
from slurmgen.sandbox.deadlines import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from slurmgen.sandbox.folder import Folder

ACCOUNT = "sandbox"
CLUSTER = "sandbox"

_SLURM = {"slurmdbd": "slurmdbd", "sacctmgr": "slurm-client"}
_DATABASE_SERVER = {
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "mariadb": "mariadb-server",
}
_DATABASE = "slurm_acct_db"
_PLAIN = ("--skip-test-db", "--skip-name-resolve")
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_POLL_SECONDS = 0.05


# A line of slurm.conf without which nobody keeps to accounts and limits.
ENFORCED = "AccountingStorageEnforce=associations,limits,qos"
# In a line for sacctmgr: whoever runs the sandbox.
USER = "$USER"


class Programs(NamedTuple):
    """The absolute paths of what accounting takes.

    unpacked: what `release.command()` is to show for slurmdbd and sacctmgr to be there; empty for
    what this machine has itself. MariaDB is always this machine's.
    """

    slurmdbd: str
    sacctmgr: str
    mariadbd: str
    install: str
    client: str
    unpacked: str = ""


def find_programs(unpacked: str = "") -> Programs:
    """Those of this machine; `UnavailableError` names the packages that are missing.

    unpacked: the version of Slurm that they go with, where it isn't the machine's own.
    """
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SBIN))
    own = release.is_shown(unpacked)
    packages = {**_SLURM, **_DATABASE_SERVER} if own else _DATABASE_SERVER
    found = {name: shutil.which(name, path=path) for name in packages}
    missing = {packages[name]: None for name, where in found.items() if where is None}
    if missing:
        raise UnavailableError(
            f"--accounting takes {'slurmdbd and ' if own else ''}MariaDB, "
            "which this machine doesn't have",
            fix=f"apt-get install --no-install-recommends {' '.join(missing)}",
        )
    paths = {**release.PROGRAMS, **{name: where for name, where in found.items() if where}}
    return Programs(
        slurmdbd=paths["slurmdbd"],
        sacctmgr=paths["sacctmgr"],
        mariadbd=paths["mariadbd"],
        install=paths["mariadb-install-db"],
        client=paths["mariadb"],
        unpacked=unpacked,
    )


def slurmdbd_conf(
    folder: Folder, *, user: str, address: str, port: int, loopback_only: bool
) -> str:
    """The text of slurmdbd.conf; nobody but its user may read it, or slurmdbd refuses."""
    settings = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder.munge_socket}",
        "DbdHost": "localhost",
        "DbdAddr": address,
        "DbdPort": port,
        "SlurmUser": user,
        "LogFile": folder.log / "slurmdbd.log",
        "PidFile": folder.path / "slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",
        "StorageUser": user,
        "StorageLoc": _DATABASE,
    }
    if loopback_only:
        # slurmdbd.conf(5) doesn't know it, but slurmdbd does: it listens at the address of its
        # host's name alone.
        settings["CommunicationParameters"] = "NoInAddrAny"
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def slurm_settings(
    folder: Folder, *, address: str, port: int, release: tuple[int, int]
) -> dict[str, str]:
    """What slurm.conf says of it."""
    settings = {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": address,
        "AccountingStoragePort": str(port),
        # No password but munge's socket: AuthInfo is not looked at on the way to slurmdbd.
        "AccountingStoragePass": str(folder.munge_socket),
        "AccountingStorageTRES": "gres/gpu",
        "JobAcctGatherType": "jobacct_gather/linux",
    }
    if release >= (21, 8):
        settings["AccountingStoreFlags"] = "job_comment,job_script,job_env"
    return settings


def database_environment(folder: Folder) -> dict[str, str]:
    """Where a MariaDB client, such as slurmdbd, finds the server."""
    return {"MYSQL_UNIX_PORT": str(_socket(folder))}


def start_database(
    folder: Folder, programs: Programs, environment: Mapping[str, str], check: Callable[[], None]
) -> None:
    """Make an empty database and start its server; returns when it answers.

    check: raises where the start is to be given up.
    """
    data = folder.path / "database"
    common = [f"--datadir={data}"]
    if os.geteuid() == 0:
        # As root it runs only where root is named.
        common.append("--user=root")
    with (folder.log / "mariadb.log").open("ab") as log:
        try:
            subprocess.run(
                [programs.install, "--no-defaults", *common, *_PLAIN],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd="/",
                start_new_session=True,
                timeout=deadlines.DATABASE,
                check=True,
            )
        except subprocess.SubprocessError as error:
            raise _failure("mariadb-install-db", folder) from error
        check()
        # slurmdbd would make it, by a connection for which newer MariaDB clients insist on TLS,
        # and try again 5 s later.
        initial = folder.path / "database.sql"
        initial.write_text(f"create database {_DATABASE};\n")
        server = subprocess.Popen(
            [
                programs.mariadbd,
                "--no-defaults",
                *common,
                f"--socket={_socket(folder)}",
                f"--pid-file={data}/mariadbd.pid",
                f"--init-file={initial}",
                "--skip-networking",
                "--skip-grant-tables",
                # Nothing here outlives the machine.
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-lock-wait-timeout=900",
                "--innodb-buffer-pool-size=64M",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    deadline = Deadline(deadlines.DATABASE, "MariaDB to start")
    while not _socket(folder).is_socket():
        check()
        if server.poll() is not None or deadline.passed:
            raise _failure("mariadbd", folder)
        deadline.pause(_POLL_SECONDS)
    # It outlives this process, whose business it no longer is.
    server.returncode = 0


def register(
    programs: Programs,
    environment: Mapping[str, str],
    *,
    user: str,
    folder: Folder,
    lines: Sequence[str],
    check: Callable[[], None],
) -> None:
    """Wait for slurmdbd, and tell it of the cluster, an account and the user in it.

    lines: what else sacctmgr is to do. slurmctld, which is not up yet, hears of no change after
    it has started.
    """

    def sacctmgr(words: Sequence[str]) -> list[str]:
        return release.command(programs.unpacked, [programs.sacctmgr, "--immediate", *words])

    deadline = Deadline(deadlines.DATABASE, "slurmdbd to answer")
    for words in (
        ["add", "cluster", CLUSTER],
        ["add", "account", ACCOUNT, f"cluster={CLUSTER}"],
        ["add", "user", user, f"account={ACCOUNT}", "adminlevel=admin"],
        # root is in an account called root from the start.
        ["modify", "user", "where", f"name={user}", "set", f"defaultaccount={ACCOUNT}"],
    ):
        while (done := _run(sacctmgr(words), environment)).returncode:
            check()
            if deadline.passed:
                raise _failure("slurmdbd", folder, done.stderr)
            deadline.pause(_POLL_SECONDS)
    if lines:
        # slurmctld would make it, as soon as it has read the limits in it.
        gpus = "insert into tres_table (creation_time, type, name) values (1, 'gres', 'gpu')"
        where = [f"--socket={_socket(folder)}", _DATABASE]
        done = _run([programs.client, "--no-defaults", f"--execute={gpus}", *where], environment)
        if done.returncode:
            raise _failure("slurmdbd", folder, done.stderr)
    for line in lines:
        check()
        words = [word.replace(USER, user) for word in line.split()]
        done = _run(sacctmgr(words), environment)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise UnavailableError(
                f"sacctmgr {line} failed:\n  {said}", fix="leave out --accounting"
            )


def _run(
    command: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=deadlines.CLIENT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(
            f"{Path(command[0]).name} gave no answer for {deadlines.CLIENT:.0f} s",
            fix="try again when the machine is less busy, or leave out --accounting",
        ) from error


def _socket(folder: Folder) -> Path:
    return folder.short / "mariadb.sock"


def _failure(what: str, folder: Folder, more: str = "") -> UnavailableError:
    log = folder.log / ("slurmdbd.log" if what == "slurmdbd" else "mariadb.log")
    said = log.read_text(errors="replace").splitlines()[-12:] if log.exists() else []
    said += more.splitlines()
    return UnavailableError(
        "\n".join([f"{what} did not start", *(f"  {line}" for line in said)]),
        fix="mend what the log names, or leave out --accounting",
    )
