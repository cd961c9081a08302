"""Accounting: a database and slurmdbd of a sandbox's own, so that sacct and sacctmgr work.

MariaDB keeps to a socket inside the sandbox's folder, and asks nobody for a password there: who
may enter the folder is the user that runs it all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from slurmgen.sandbox.folder import Folder

ACCOUNT = "sandbox"
CLUSTER = "sandbox"

_PACKAGES = {
    "slurmdbd": "slurmdbd",
    "sacctmgr": "slurm-client",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
}
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_SECONDS = 60
_POLL_SECONDS = 0.05


class Programs(NamedTuple):
    """The absolute paths of what accounting takes."""

    slurmdbd: str
    sacctmgr: str
    mariadbd: str
    install: str


def find_programs() -> Programs:
    """Those of this machine; `UnavailableError` names the packages that are missing."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SBIN))
    found = {name: shutil.which(name, path=path) for name in _PACKAGES}
    missing = {_PACKAGES[name]: None for name, where in found.items() if where is None}
    if missing:
        raise UnavailableError(
            "--accounting takes slurmdbd and MariaDB, which this machine doesn't have",
            fix=f"apt-get install --no-install-recommends {' '.join(missing)}",
        )
    return Programs(*(where for where in found.values() if where is not None))


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
        "StorageLoc": "slurm_acct_db",
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
        made = subprocess.run(
            [programs.install, "--no-defaults", *common, "--skip-test-db", "--skip-name-resolve"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            cwd="/",
            start_new_session=True,
            check=False,
        )
        if made.returncode:
            raise _failure("mariadb-install-db", folder)
        check()
        server = subprocess.Popen(
            [
                programs.mariadbd,
                "--no-defaults",
                *common,
                f"--socket={_socket(folder)}",
                f"--pid-file={data}/mariadbd.pid",
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
    deadline = time.monotonic() + _SECONDS
    while not _socket(folder).is_socket():
        check()
        if server.poll() is not None or time.monotonic() > deadline:
            raise _failure("mariadbd", folder)
        time.sleep(_POLL_SECONDS)
    # It outlives this process, whose business it no longer is.
    server.returncode = 0


def register(
    programs: Programs,
    environment: Mapping[str, str],
    *,
    user: str,
    folder: Folder,
    check: Callable[[], None],
) -> None:
    """Wait for slurmdbd, and tell it of the cluster, an account and the user in it."""
    deadline = time.monotonic() + _SECONDS
    for words in (
        ["add", "cluster", CLUSTER],
        ["add", "account", ACCOUNT, f"cluster={CLUSTER}"],
        ["add", "user", user, f"account={ACCOUNT}", "adminlevel=admin"],
        # root is in an account called root from the start.
        ["modify", "user", "where", f"name={user}", "set", f"defaultaccount={ACCOUNT}"],
    ):
        while True:
            done = subprocess.run(
                [programs.sacctmgr, "--immediate", *words],
                env=environment,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
            if not done.returncode:
                break
            check()
            if time.monotonic() > deadline:
                raise _failure("slurmdbd", folder, done.stderr)
            time.sleep(_POLL_SECONDS)


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
