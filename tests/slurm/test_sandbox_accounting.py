"""A sandbox with slurmdbd and MariaDB."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from slurmgen.errors import UnavailableError
from slurmgen.sandbox import Sandbox, Shape, accounting, programs
from slurmgen.sandbox.processes import find_processes

if TYPE_CHECKING:
    from pathlib import Path

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
    assert find_processes(box.folder.path) == []
    assert not box.folder.path.exists()


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(accounting, "_SBIN", ())
    with pytest.raises(UnavailableError, match="slurmdbd and MariaDB") as error:
        accounting.find_programs()
    assert error.value.fix.endswith(" slurmdbd slurm-client mariadb-server")
