"""A sandbox with slurmdbd and MariaDB."""

from __future__ import annotations

import ipaddress
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slurmgen.errors import UnavailableError
from slurmgen.sandbox import Sandbox, Shape, accounting, release, remove
from slurmgen.sandbox.folder import Folder
from slurmgen.sandbox.processes import find_processes
from tests.slurm.conftest import ROOT, skip_without_accounting
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.slurm


@pytest.mark.matrix
def test_sacct_shows_a_job_that_has_ended(tmp_path: Path) -> None:
    skip_without_accounting()
    shape = Shape(nodes=1, gpus_per_node=2)
    with Sandbox.up(name="s", shape=shape, directory=tmp_path, accounting=True) as box:
        words = ["--parsable", "--wait", "--gres=gpu:a100:2", "--output=/dev/null", "--wrap=exit 3"]
        job = box.run(["sbatch", *words]).stdout.strip()
        shown = ["sacct", "-nPX", f"--jobs={job}", "--format=cluster,account,state,exitcode"]
        deadline = time.monotonic() + PATIENCE_S
        while (row := box.run(shown).stdout.strip()) != "sandbox|sandbox|FAILED|3:0":
            assert time.monotonic() < deadline, row
            time.sleep(0.1)
        assert box.run(["sacctmgr", "-i", "add", "qos", "debug"]).returncode == 0
        # Each time it waits for five seconds.
        assert "mysql_real_connect failed" not in (box.folder.log / "slurmdbd.log").read_text()
        listening = {
            address
            for process in find_processes(box.folder.path)
            for address in listens_at(process.pid)
        }
        if box.loopback_only:
            # slurmctld, slurmd and slurmdbd; of MariaDB there is a socket in the folder.
            assert len(listening) == 3
            assert all(address.startswith("127.") for address in listening), listening
    assert find_processes(box.folder.path) == []
    assert not box.folder.path.exists()


def listens_at(pid: int) -> set[str]:
    """The addresses, with their ports, at which a process waits for TCP connections."""
    open_files = Path("/proc", str(pid), "fd")
    sockets = {os.readlink(file) for file in open_files.iterdir()}
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path("/proc", str(pid), "net", name).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                host, port = fields[1].split(":")
                address = ipaddress.ip_address(bytes.fromhex(host)[::-1])
                found.add(f"{address}:{int(port, 16)}")
    return found


@pytest.mark.parametrize("started", ["mariadb.log", "slurmdbd.log"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_start_that_is_ended_leaves_nothing(
    started: str, number: signal.Signals, tmp_path: Path
) -> None:
    skip_without_accounting()
    folder = Folder.of("s", tmp_path)
    up = ["--name=s", f"--dir={tmp_path}", "--nodes=1", "--accounting"]
    starting = subprocess.Popen(
        [sys.executable, "-m", "slurmgen", "sandbox", "up", *up],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + PATIENCE_S
    while not (folder.log / started).exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    starting.send_signal(number)
    assert starting.wait(PATIENCE_S) in {-number, 128 + number}
    if number == signal.SIGKILL:
        assert remove("s", directory=tmp_path)
    assert find_processes(folder.path) == []
    assert not folder.path.exists()
    assert not folder.short.exists()


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(accounting, "_SBIN", ())
    with pytest.raises(UnavailableError, match="slurmdbd and MariaDB") as error:
        accounting.find_programs()
    assert error.value.fix.endswith(" slurmdbd slurm-client mariadb-server")
    # Of a version that is unpacked, only MariaDB is asked of this machine.
    monkeypatch.setattr(release, "is_shown", lambda version: not version)
    with pytest.raises(UnavailableError, match="--accounting takes MariaDB, which") as error:
        accounting.find_programs("24.11")
    assert error.value.fix.endswith("--no-install-recommends mariadb-server")
