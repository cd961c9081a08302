"""A sandbox with slurmdbd and MariaDB."""

from __future__ import annotations

import ipaddress
import os
import time
from pathlib import Path

import pytest

from slurmgen.errors import UnavailableError
from slurmgen.sandbox import Sandbox, Shape, accounting, programs
from slurmgen.sandbox.processes import find_processes

pytestmark = pytest.mark.slurm

PATIENCE = 60


def test_sacct_shows_a_job_that_has_ended(tmp_path: Path) -> None:
    try:
        programs.find_programs()
        accounting.find_programs()
    except UnavailableError as error:
        pytest.skip(f"{error}: {error.fix}")
    shape = Shape(nodes=1, gpus_per_node=2)
    with Sandbox.up(name="s", shape=shape, directory=tmp_path, accounting=True) as box:
        words = ["--parsable", "--wait", "--gres=gpu:a100:2", "--output=/dev/null", "--wrap=exit 3"]
        job = box.run(["sbatch", *words]).stdout.strip()
        shown = ["sacct", "-nPX", f"--jobs={job}", "--format=cluster,account,state,exitcode"]
        deadline = time.monotonic() + PATIENCE
        while (row := box.run(shown).stdout.strip()) != "sandbox|sandbox|FAILED|3:0":
            assert time.monotonic() < deadline, row
            time.sleep(0.1)
        assert box.run(["sacctmgr", "-i", "add", "qos", "debug"]).returncode == 0
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


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(accounting, "_SBIN", ())
    with pytest.raises(UnavailableError, match="slurmdbd and MariaDB") as error:
        accounting.find_programs()
    assert error.value.fix.endswith(" slurmdbd slurm-client mariadb-server")
