"""The folder of checkpoints, and the file systems that fail it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


PROGRAM = """
import resource, signal, sys
from pathlib import Path
import torch
from slurmgen.ddp.train.checkpoints.store import Store, Writer

folder, size = Path(sys.argv[1]), int(sys.argv[2])
writer = Writer(Store(folder, 3))
assert writer.write(1, lambda: torch.zeros(10))
if len(sys.argv) > 3:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
assert not writer.write(2, lambda: torch.zeros(size))
assert writer.last == 1 and torch.equal(Store(folder, 3).latest(), torch.zeros(10))
assert len(list(folder.iterdir())) == 1, list(folder.iterdir())
assert writer.write(3, lambda: torch.zeros(10))
"""


def run(folder: Path, *words: str, user: int | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder), *words],
        capture_output=True,
        text=True,
        timeout=120,
        user=user,
    )


def test_a_file_size_limit(tmp_path: Path) -> None:
    done = run(tmp_path / "run", "1000000", "100000")
    assert done.returncode == 0, done.stderr
    assert "File too large" in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("only root can mount a file system")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this machine doesn't let root mount a file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    done = run(small_disk / "run", "1000000")
    assert done.returncode == 0, done.stderr
    assert "No space left on device" in done.stderr
