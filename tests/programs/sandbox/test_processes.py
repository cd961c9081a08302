"""The end of a sandbox's processes, on a machine that is slow, or where they multiply."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from slurmgen.errors import UnavailableError
from slurmgen.sandbox import deadlines
from slurmgen.sandbox.processes import Process, end, find_processes

if TYPE_CHECKING:
    from pathlib import Path

MARKER = "SLURMGEN_SANDBOX"


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, env={**os.environ, MARKER: str(folder)})


def reaped(found: list[Process], started: list[subprocess.Popen[bytes]]) -> list[Process]:
    """Without those that have ended: this process is their parent."""
    ended = {process.pid for process in started if process.poll() is not None}
    return [process for process in found if process.pid not in ended]


def test_a_slow_look_takes_no_time_from_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "KILLED", 2.0)
    started = [start(tmp_path, "sleep", "600") for _ in range(3)]
    looks: list[int] = []

    def find() -> list[Process]:
        if not looks:
            # Longer than those that were killed are given.
            time.sleep(2.5)
        looks.append(1)
        return reaped(find_processes(tmp_path), started)

    assert end(find) == 3
    assert all(process.wait(60) for process in started)


def test_each_one_that_ends_gives_the_others_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "KILLED", 1.0)
    # Nobody's: too large to be a process id.
    alive = [Process(1 << 30 | number, "0", "slurmd", ()) for number in range(4)]

    def find() -> list[Process]:
        if alive:
            time.sleep(0.6)
            alive.pop()
        return list(alive)

    assert end(find) == 0


def test_one_that_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "KILLED", 0.2)
    stuck = Process(1 << 30, "0", "slurmd", ())
    with pytest.raises(UnavailableError, match=f"do not end: {1 << 30}") as error:
        end(lambda: [stuck])
    assert "slurmgen sandbox down" in error.value.fix


def test_what_multiplies_is_ended(tmp_path: Path) -> None:
    """Each starts another and ends: whoever kills one by one comes too late every time."""
    (tmp_path / "again.sh").write_text('(sleep 0.02; exec bash "$0") &\n')
    first = start(tmp_path, "bash", str(tmp_path / "again.sh"))
    try:
        end(lambda: reaped(find_processes(tmp_path), [first]))
        assert reaped(find_processes(tmp_path), [first]) == []
    finally:
        first.kill()
        first.wait()
