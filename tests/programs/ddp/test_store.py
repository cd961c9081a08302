"""The folder of checkpoints, and the file systems that fail it."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def store(folder: Path, keep: int = 3) -> Any:
    from slurmgen.ddp.train.checkpoints.store import Store

    return Store(folder, keep)


def writer(folder: Path, keep: int = 3) -> Any:
    from slurmgen.ddp.train.checkpoints.store import Writer

    return Writer(store(folder, keep))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_names_order_and_rotation(tmp_path: Path) -> None:
    import torch

    own = store(tmp_path / "deep/run")
    assert own.found() == []
    for step in (8, 9, 10, 11):
        own.write(step, {"step": step, "weights": torch.arange(step)})
    (own.folder / "step-000000012-short.pt").touch()
    (own.folder / "notes.txt").touch()
    assert [one.step for one in own.found()] == [11, 10, 9]
    last = own.found()[0]
    assert last.path.name == f"step-000000011-{last.digest}.pt"
    assert own.read(last)["weights"].tolist() == list(range(11))
    # Anybody else's torch reads it, too.
    assert torch.load(last.path)["step"] == 11
    assert len(names(own.folder)) == 5


def test_steps_that_need_more_digits(tmp_path: Path) -> None:
    own = store(tmp_path)
    own.write(999_999_999, 1)
    own.write(1_000_000_000, 2)
    assert own.latest() == 2


def test_a_step_written_twice_counts_as_the_later(tmp_path: Path) -> None:
    own = store(tmp_path)
    first = own.write(5, "first")
    os.utime(first.path, (0, 0))
    own.write(5, "second")
    assert own.latest() == "second"


def test_at_least_one_stays(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep=0"):
        store(tmp_path, keep=0)
    own = store(tmp_path, keep=1)
    own.write(1, 1)
    own.write(2, 2)
    assert [one.step for one in own.found()] == [2]
    # A run that went back to an earlier checkpoint doesn't remove what it has just written.
    own.write(1, 1)
    assert [one.step for one in own.found()] == [2, 1]


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    if how == "bit flip":
        data[middle] ^= 1
    elif how == "torn":
        data[middle:] = bytes(len(data) - middle)
    elif how == "truncated":
        del data[middle:]
    elif how == "longer":
        data += b"\0"
    else:
        data.clear()
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["bit flip", "torn", "truncated", "longer", "empty"])
def test_damage_is_noticed_and_the_one_before_used(tmp_path: Path, how: str) -> None:
    from slurmgen.ddp.train.checkpoints.digests import DamagedError

    own = store(tmp_path)
    own.write(1, "one")
    own.write(2, "two")
    last, before = own.found()
    damage(last.path, how)
    with pytest.raises(DamagedError, match="aren't those that were written"):
        own.read(last)
    assert own.latest() == "one"
    own.set_aside(last)
    assert own.found() == [before]
    damage(before.path, how)
    with pytest.raises(DamagedError, match="no good checkpoint in"):
        own.latest()


def test_every_single_bit_counts(tmp_path: Path) -> None:
    from slurmgen.ddp.train.checkpoints.digests import DamagedError

    own = store(tmp_path)
    done = own.write(1, [1])
    whole = done.path.read_bytes()
    for place in range(0, len(whole), 37):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        done.path.write_bytes(flipped)
        with pytest.raises(DamagedError):
            own.read(done)


def test_what_killed_writers_left_is_removed(tmp_path: Path) -> None:
    own = store(tmp_path)
    own.write(1, 1)
    (tmp_path / ".step-2.node-7.4711.140.tmp").write_bytes(b"half")
    (tmp_path / ".other.tmp").touch()
    own.clean()
    assert len(names(tmp_path)) == 2
    assert ".other.tmp" in names(tmp_path)
    store(tmp_path / "absent").clean()


@pytest.mark.parametrize("call", ["fsync", "replace", "mkdir"])
def test_a_system_call_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, said: Callable[[], list[str]]
) -> None:
    folder = tmp_path / "run"
    own = writer(folder)
    assert own.write(1, lambda: "one")
    before = names(folder)

    def fail(*_: object, **__: object) -> None:
        raise FULL

    with monkeypatch.context() as patch:
        patch.setattr(os if call == "fsync" else Path, call, fail)
        for step in (2, 3):
            assert not own.write(step, lambda: "two")
    assert names(folder) == before
    assert own.last == 1
    # Said once.
    assert said() == [
        f"warning: no checkpoint of step 2 in {folder}: No space left on device; the last is step 1"
    ]
    assert own.write(4, lambda: "four")
    assert said() == ["checkpoints are written again, step 4"]
    assert store(folder).latest() == "four"


@pytest.mark.parametrize("nth", range(6))
def test_a_write_that_fails_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    import torch

    from slurmgen.ddp.train.checkpoints import digests as module

    own = writer(tmp_path)
    assert own.write(1, lambda: "one")
    state = {"weights": torch.zeros(1000), "bias": torch.zeros(10)}
    original = module.Digesting.__init__

    class Tearing:
        """The nth write puts half of its bytes down and fails."""

        def __init__(self, file: Any) -> None:
            self.file, self.left = file, nth

        def write(self, data: bytes) -> int:
            self.left -= 1
            if self.left < 0:
                self.file.write(bytes(data)[: len(data) // 2])
                raise FULL
            return int(self.file.write(data))

        def flush(self) -> None:
            self.file.flush()

    monkeypatch.setattr(
        module.Digesting,
        "__init__",
        lambda self, file: original(self, Tearing(file)),  # type: ignore[arg-type]
    )
    assert not own.write(2, lambda: state)
    monkeypatch.undo()
    assert len(names(tmp_path)) == 1
    assert own.write(3, lambda: state)


def test_an_object_that_can_not_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = writer(tmp_path)
    assert not own.write(1, lambda: lambda: None)
    assert "warning: no checkpoint of step 1" in capsys.readouterr().err
    assert names(tmp_path) == []


def test_a_folder_that_fsync_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.fsync

    def refuse(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        original(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    assert writer(tmp_path).write(1, lambda: 1)


def test_in_the_background(tmp_path: Path) -> None:
    own = writer(tmp_path)
    for step in range(5):
        own.start(step, lambda step=step: step)
    own.wait()
    assert not own.busy()
    assert own.last == store(tmp_path).latest() == 4


def test_readers_beside_a_writer(tmp_path: Path) -> None:
    own = writer(tmp_path, keep=1)
    own.write(0, lambda: 0)
    seen = []
    for step in range(1, 60):
        own.start(step, lambda step=step: step)
        seen.append(store(tmp_path).latest())
    own.wait()
    assert seen == sorted(seen)


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


def test_a_folder_without_permission(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = writer(tmp_path)
    own.write(1, lambda: 1)
    before = names(tmp_path)
    if os.geteuid():
        tmp_path.chmod(0o500)
    else:
        # Root may write everywhere.
        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(os, "open", refuse)
    try:
        assert not own.write(2, lambda: 2)
    finally:
        tmp_path.chmod(0o700)
        monkeypatch.undo()
    assert "Permission denied; the last is step 1" in capsys.readouterr().err
    assert names(tmp_path) == before
    assert store(tmp_path).latest() == 1


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
