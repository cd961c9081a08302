"""Other versions of Slurm, unpacked beside the machine's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.errors import UnavailableError, UsageError
from slurmgen.sandbox import release
from slurmgen.sandbox.processes import find_processes
from slurmgen.sandbox.programs import find_programs
from tests.slurm.conftest import ROOT, skip_without_accounting
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

# One that no machine of the tests has itself.
VERSION = "24.11"
SETPRIV = shutil.which("setpriv")


def slurmgen(*arguments: str, cwd: Path, as_: tuple[str, ...] = ()) -> tuple[int, str, str]:
    done = subprocess.run(
        [*as_, sys.executable, "-m", "slurmgen", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def _unpacked() -> None:
    if release.ENTERED in os.environ:
        pytest.skip("another version of Slurm is shown here already")
    try:
        release.unpacked(VERSION)
    except UnavailableError as error:
        pytest.skip(f"needs Slurm {VERSION}: {error}")
    try:
        find_programs(VERSION)
    except UnavailableError as error:
        pytest.skip(f"needs mounts: {error}")


def test_a_version_that_debian_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'23\.02' is not a version of Slurm") as caught:
        release.unpacked("23.02")
    assert "20.11, 22.05, 24.11, 26.05" in caught.value.fix
    status, out, said = slurmgen(
        "sandbox", "up", "--slurm", "23.02", "--dir", str(tmp_path), cwd=tmp_path
    )
    assert (status, out) == (2, "")
    assert "'23.02' is not a version of Slurm" in said


def test_inside_it_nothing_is_entered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "unpacked", lambda version: Path("/cache", version))
    monkeypatch.delenv(release.ENTERED, raising=False)
    assert release.command("24.11", ["sinfo"])[-3:] == ["/cache/24.11", "--", "sinfo"]
    assert release.command("", ["sinfo"]) == ["sinfo"]
    monkeypatch.setenv(release.ENTERED, "24.11")
    assert release.command("24.11", ["sinfo"]) == ["sinfo"]


@pytest.mark.slurm
def test_the_machines_own_version_takes_nothing_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    own = find_programs()
    monkeypatch.setattr(release, "unpacked", pytest.fail)
    assert find_programs(own.version.rpartition(".")[0]) == own


@pytest.mark.slurm
@pytest.mark.usefixtures("_unpacked")
def test_the_verbs_reach_a_sandbox_of_another_version(tmp_path: Path) -> None:
    def sandbox(verb: str, *arguments: str) -> str:
        status, out, said = slurmgen(
            "sandbox", verb, "--dir", str(tmp_path / "root"), *arguments, cwd=tmp_path
        )
        assert status == 0, said
        return out

    try:
        conf = tmp_path / "root" / "default" / "slurm.conf"
        assert sandbox("up", "--slurm", VERSION) == f"export SLURM_CONF={conf}\n"
        assert sandbox("status").split()[:4][1].startswith(f"{VERSION}.")
        assert sandbox("status").split()[2:4] == ["2", "up"]
        assert sandbox("exec", "sinfo", "-V").startswith(f"slurm-wlm {VERSION}.")
        # A task, and what a shell starts.
        shown = sandbox("exec", "bash", "-c", "srun --nodes=2 --gres=gpu:1 sinfo -V; squeue -h")
        assert shown.count(f"slurm-wlm {VERSION}.") == 2
        sandbox("kill", "n1")
        sandbox("revive", "n1")
        assert sandbox("exec", "srun", "--nodelist=n1", "hostname") == "n1\n"
        assert slurmgen("sandbox", "exec", "--dir", "root", "nosuch", cwd=tmp_path)[0] == 127
    finally:
        sandbox("down")
    assert list((tmp_path / "root").iterdir()) == []


@pytest.mark.slurm
@pytest.mark.usefixtures("_unpacked")
def test_rehearse_on_another_version(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("nodes: 2\ngpus_per_node: 2\ncommand: python train.py\n")
    status, out, said = slurmgen("rehearse", "--slurm", VERSION, "job.yaml", cwd=tmp_path)
    assert status == 0, out + said
    assert f"rehearsed on Slurm {VERSION}." in out


ORDINARY = """\
import sys
from pathlib import Path
from slurmgen.sandbox import Sandbox
with Sandbox.up(slurm=sys.argv[1], directory=Path("root")) as sandbox:
    print(sandbox.version, sandbox.run(["srun", "--nodes=2", "id", "-un"]).stdout.split())
    # From a process that has not started it.
    print(Sandbox.find(directory=Path("root")).run(["sinfo", "-V"]).stdout)
"""


@pytest.fixture
def everybodys() -> Iterator[tuple[Path, list[str]]]:
    """A folder and a command line for an ordinary user; tmp_path is closed to others."""
    if os.geteuid() != 0 or not SETPRIV:
        pytest.skip("needs root and setpriv")
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        folder = Path(scratch)
        shutil.copytree(ROOT / "slurmgen", folder / "slurmgen", ignore=lambda *_: {"__pycache__"})
        folder.chmod(0o755)
        shutil.chown(folder, "daemon", "daemon")
        yield folder, [SETPRIV, "--reuid=daemon", "--regid=daemon", "--clear-groups"]


@pytest.mark.slurm
@pytest.mark.usefixtures("_unpacked")
def test_an_ordinary_user_has_it_too(everybodys: tuple[Path, list[str]]) -> None:
    folder, become = everybodys
    python = "/usr/bin/python3"
    check = "import sys; sys.exit(sys.version_info < (3, 10))"
    if subprocess.run([*become, python, "-c", check], capture_output=True).returncode != 0:
        pytest.skip("needs a Python 3.10 that every user may run")
    done = subprocess.run(
        [*become, python, "-c", ORDINARY, VERSION],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == [
        f"{find_programs(VERSION).version} ['daemon', 'daemon']",
        f"slurm-wlm {find_programs(VERSION).version}",
    ]


@pytest.mark.slurm
@pytest.mark.usefixtures("_unpacked")
@pytest.mark.skipif(os.geteuid() != 0 or not SETPRIV, reason="takes root and setpriv")
def test_where_mounts_are_not_allowed(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("command: 'true'\n")
    without = (str(SETPRIV), "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    for words in (["sandbox", "up", "--dir", "root"], ["rehearse", "job.yaml"]):
        status, out, said = slurmgen(*words, "--slurm", VERSION, cwd=tmp_path, as_=without)
        assert (status, out) == (3, "")
        assert "doesn't let this user show another Slurm in /usr" in said
        assert "= fix: run as root, or in a container that allows mounts" in said
    assert not (tmp_path / "root" / "default").exists()


@pytest.mark.slurm
@pytest.mark.usefixtures("_unpacked")
def test_accounting_is_of_that_version_too(tmp_path: Path) -> None:
    skip_without_accounting(VERSION)
    root = ("--dir", str(tmp_path / "root"))
    up = ("up", *root, "--slurm", VERSION, "--like", "archer2_gpu", "--nodes", "1", "--accounting")
    status, _, said = slurmgen("sandbox", *up, cwd=tmp_path)
    try:
        assert status == 0, said

        def shown(*words: str) -> str:
            return slurmgen("sandbox", "exec", *root, "--", *words, cwd=tmp_path)[1]

        assert shown("sacct", "-V").startswith(f"slurm-wlm {VERSION}.")
        assert {"gpu-shd", "gpu-exc"} <= set(
            shown("sacctmgr", "-nP", "show", "qos", "format=name").split()
        )
        log = tmp_path / "root" / "default" / "log" / "slurmdbd.log"
        assert f"slurmdbd version {VERSION}." in log.read_text()
        shown("srun", "--account=sandbox", "--partition=gpu", "--qos=gpu-shd", "true")
        until = time.monotonic() + PATIENCE_S
        while "COMPLETED" not in (rows := shown("sacct", "-nX", "--format=state")):
            assert time.monotonic() < until, rows
    finally:
        slurmgen("sandbox", "down", *root, cwd=tmp_path)
    assert list((tmp_path / "root").iterdir()) == []
    assert find_processes(tmp_path / "root" / "default") == []


@pytest.mark.usefixtures("_unpacked")
def test_what_is_unpacked_is_whole() -> None:
    tree = release.unpacked(VERSION)
    assert [path for path in release.PROGRAMS.values() if not (tree / path[1:]).is_file()] == []
    assert len(list(tree.glob("usr/lib/*/slurm-wlm/accounting_storage_mysql.so"))) == 1


def test_an_older_tree_is_not_taken_and_a_new_one_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def make(version: str, suite: str, folder: Path, tree: Path) -> None:
        made.append((version, suite))
        (folder / "ready").mkdir()
        (folder / "ready").rename(tree)

    monkeypatch.setattr(release, "_make", make)
    monkeypatch.setattr(release, "_ROOTS", tmp_path / "slurmgen" / "slurm" / release._LAYOUT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # As slurmgen had them before slurmdbd came along.
    older = tmp_path / "slurmgen" / "slurm" / VERSION
    (older / "usr").mkdir(parents=True)
    killed = older.parent / release._LAYOUT / f".{VERSION}.killed"
    (killed / "root").mkdir(parents=True)
    with ThreadPoolExecutor() as pool:
        trees = set(pool.map(release.unpacked, [VERSION] * 4))
    assert trees == {older.parent / release._LAYOUT / VERSION}
    assert made == [(VERSION, release.SUITES[VERSION])]
    assert (older / "usr").is_dir()
    assert not killed.exists()
