"""Names that somebody else has put there before, as links to a file of one's own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.ddp import files
from slurmgen.ddp.launch.identity import resolve_identity
from slurmgen.ddp.watch import failures
from slurmgen.ddp.watch.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another's link")
NOBODY = 65534


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A file that nothing may happen to."""
    path = tmp_path / "own"
    path.write_text("mine")
    return path


def test_a_new_file_is_new(tmp_path: Path, own: Path) -> None:
    (tmp_path / "link").symlink_to(own)
    (tmp_path / "nowhere").symlink_to(tmp_path / "not there")
    for name in ("own", "link", "nowhere"):
        with pytest.raises(FileExistsError):
            files.create(tmp_path / name)
    with files.create(tmp_path / "new") as file:
        file.write(b"x")
    assert own.read_text() == "mine"
    assert not (tmp_path / "not there").exists()


@pytest.mark.parametrize(("put", "expected"), [(files.append, "mine+"), (files.replace, "+")])
def test_links_of_ones_own_are_followed(
    tmp_path: Path, own: Path, put: Callable[[Path, str], None], expected: str
) -> None:
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to(own)
    put(tmp_path / "first", "+")
    assert own.read_text() == expected
    put(tmp_path / "new", "\udcff")
    assert (tmp_path / "new").read_text() == "\\udcff"


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError, match="too many links"):
        files.append(tmp_path / "one", "x")


@needs_root
@pytest.mark.parametrize("put", [files.append, files.replace])
def test_a_link_of_another_user_is_not(
    tmp_path: Path, own: Path, put: Callable[[Path, str], None]
) -> None:
    (tmp_path / "link").symlink_to(own)
    os.lchown(tmp_path / "link", NOBODY, NOBODY)
    (tmp_path / "second").symlink_to("link")
    for name in ("link", "second"):
        with pytest.raises(PermissionError, match="is a link of another user"):
            put(tmp_path / name, "x")
    assert own.read_text() == "mine"


def test_the_file_of_a_failure_follows_no_link(tmp_path: Path, own: Path) -> None:
    identity = resolve_identity({})
    path = tmp_path / "failure.json"
    path.symlink_to(own)
    failure = Failure(0, "n", "h", 0, "exit", 1, "half a character: \udcff")
    failures.forget(path)
    assert failures.write(path, identity, failure, [], {}, {})
    assert json.loads(path.read_text())["first"]["text"] == "half a character: ?"
    assert not path.is_symlink()
    assert own.read_text() == "mine"


@pytest.mark.torch
def test_no_name_of_a_checkpoint_can_be_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from slurmgen.ddp.train.checkpoints import single_file
    from slurmgen.ddp.train.checkpoints.store import Store

    names: list[Any] = []
    create = files.create

    def noted(path: Path) -> Any:
        names.append(Path(path).name)
        return create(path)

    monkeypatch.setattr(files, "create", noted)
    for _ in range(2):
        Store(tmp_path, keep=1).write(1, "x")
        single_file.save("x", tmp_path / "file")
    assert len(set(names)) == 4
    assert all(any(len(part) == 16 for part in name.split(".")) for name in names)


def test_a_folder_that_is_not_ones_own_alone(tmp_path: Path) -> None:
    assert files.in_others_hands(tmp_path) == ""
    tmp_path.chmod(0o777)
    assert "every user may write" in files.in_others_hands(tmp_path)
    assert files.in_others_hands(tmp_path / "none") == ""
    tmp_path.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(tmp_path, 65534, -1)
        assert "belongs to another user (uid 65534)" in files.in_others_hands(tmp_path)
