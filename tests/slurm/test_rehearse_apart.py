"""What a hostile or careless script does in a rehearsal stays there, ends there, and is told."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from slurmgen.sandbox.rehearsal import apart
from slurmgen.sandbox.rehearsal.apart import Bounds, Broken
from tests.slurm.conftest import ROOT
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.slurm

UNSHARE = shutil.which("unshare")
ALL = Bounds(processes=True, network=True, files=True)


def has(folder: Path, wanted: Bounds = ALL) -> Bounds:
    """What this machine lets this user keep a job from."""
    return apart.run(lambda bounds: bounds, folder, wanted, processes=100, seconds=60)


@pytest.fixture
def _apart(tmp_path: Path) -> None:
    found = has(tmp_path)
    if found[:3] != ALL[:3]:
        pytest.skip(f"this machine lets this user have only {found}")


def rehearse(
    script: str, folder: Path, *options: str, protected: bool = False, **more: str
) -> tuple[int, str]:
    """Status and report. protected: should it fail, nothing else on this machine is hit."""
    (folder / "job.sh").write_text(f"#!/bin/bash\n#SBATCH --nodes=1\n{script}")
    around = [UNSHARE, "--pid", "--fork", "--mount", "--mount-proc"] if protected else []
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    done = subprocess.run(
        [*map(str, around), sys.executable, "-m", "slurmgen", "rehearse", *options, "job.sh"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(temporary),
            "HOME": str(folder / "home"),
            **more,
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    # Neither folder nor process, as soon as it has ended.
    assert list(temporary.iterdir()) == []
    assert processes_of(folder) == []
    return done.returncode, done.stdout + done.stderr


def processes_of(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            known = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            if os.fsencode(str(folder)) in known:
                found.append(f"{entry.name} {known[:100]!r}")
    return found


@pytest.mark.usefixtures("_apart")
def test_files_are_copies(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "results").mkdir(parents=True)
    (home / "results" / "model.pt").write_text("weights")
    (tmp_path / "here").write_text("before")
    other = tmp_path / "elsewhere"
    other.mkdir()
    script = f"""\
set -e
rm -rf "$HOME/results"
[ ! -e "$HOME/results" ]
echo new > "$HOME/results"
echo after > here
mkdir logs
echo x > {other}/x
[ "$(cat here)" = after ]
srun python train.py
"""
    status, said = rehearse(script, tmp_path)
    assert (status, said.splitlines()[-1]) == (0, "nothing is wrong"), said
    assert (home / "results" / "model.pt").read_text() == "weights"
    assert (tmp_path / "here").read_text() == "before"
    assert list(other.iterdir()) == []
    assert not (tmp_path / "logs").exists()


@pytest.mark.usefixtures("_apart")
def test_the_network_is_out_of_reach(tmp_path: Path) -> None:
    """Programs that would use it are stood for; what speaks for itself finds nobody."""
    script = """\
set -e
curl -sSf https://example.org/data > data
git push
/usr/bin/ssh elsewhere rm -rf x
sudo reboot
if (exec 3<> /dev/tcp/192.0.2.1/80) 2> told; then exit 3; fi
grep -q "Network is unreachable" told
srun python train.py
"""
    status, said = rehearse(script, tmp_path)
    assert status == 0, said
    assert "not run, taken to succeed: curl, git, ssh, sudo\n" in said


@pytest.mark.usefixtures("_apart")
def test_git_and_rsync_run_where_they_stay_here(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("no git")
    script = """\
set -e
git -c init.defaultBranch=main init -q x
[ "$(git -C x symbolic-ref --short HEAD)" = main ]
srun python train.py
"""
    status, said = rehearse(script, tmp_path)
    assert status == 0, said
    assert "not run" not in said


DAEMONS = {
    "double fork": "setsid sh -c '(setsid tail -f \"$PWD/job.sh\" < /dev/null &> /dev/null &)'\n",
    "without variables": 'env -i setsid -f tail -f "$PWD/job.sh" &> /dev/null\n',
    "deaf": (
        "trap '' TERM INT HUP CONT\nexec 0<&- 1>&- 2>&-\n"
        'setsid bash -c \'trap "" TERM; while :; do sleep 1; done\' "$PWD/job.sh" &\n'
    ),
}


@pytest.mark.parametrize("daemon", DAEMONS)
def test_nothing_lives_on(daemon: str, tmp_path: Path) -> None:
    """With namespaces or without: processes_of() is asked as soon as it has ended."""
    status, said = rehearse(DAEMONS[daemon] + "srun python train.py\n", tmp_path)
    assert status == 0, said


@pytest.mark.skipif(os.geteuid() != 0 or not UNSHARE, reason="takes root and unshare")
@pytest.mark.usefixtures("_apart")
@pytest.mark.parametrize(
    ("script", "rule"),
    [
        ("kill -9 -1\n", "job-runs-wild"),
        (":() { : | : & }; :\nsleep 600\n", "job-runs-wild"),
        ("kill -9 $PPID\nsleep 600\n", "job-hangs"),
        ("yes\n", "log-flooded"),
        ("exec 0<&- 1>&- 2>&-\nwhile :; do sleep 1; done\n", "job-hangs"),
        ("while echo on; do sleep 0.2; done\n", "job-endless"),
    ],
    ids=["kills all", "fork bomb", "kills its parent", "floods its log", "silent", "chatty"],
)
def test_a_job_that_runs_wild_is_ended_and_named(script: str, rule: str, tmp_path: Path) -> None:
    outside = subprocess.Popen(["sleep", "600"])
    try:
        status, said = rehearse(script, tmp_path, "--limit", "3", protected=True)
        assert outside.poll() is None
    finally:
        outside.kill()
        outside.wait()
    assert status == 1
    assert f"[{rule}]" in said
    assert len(said) < 10_000


def test_what_ends_it_ends_all(tmp_path: Path) -> None:
    """Killed while its work goes on: everything below it has ended with it."""
    ready = tmp_path / "ready"

    def work(_bounds: Bounds) -> None:
        subprocess.Popen(["tail", "-f", str(tmp_path)], stderr=subprocess.DEVNULL)
        ready.touch()
        time.sleep(600)

    starter = os.fork()
    if starter == 0:
        with suppress(BaseException):
            apart.run(work, tmp_path, ALL._replace(files=False), processes=100, seconds=600)
        os._exit(1)
    end = time.monotonic() + PATIENCE_S
    while not ready.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    os.kill(starter, signal.SIGKILL)
    os.waitpid(starter, 0)
    bounds = has(tmp_path)
    while bounds.processes and processes_of(tmp_path):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_it_ends_by_itself(tmp_path: Path) -> None:
    from slurmgen.errors import UnavailableError

    with pytest.raises(UnavailableError, match="did not end within 1 s"):
        apart.run(lambda _: time.sleep(600), tmp_path, ALL, processes=100, seconds=1)


def test_what_is_raised_comes_back(tmp_path: Path) -> None:
    from slurmgen.errors import UnavailableError

    def refuses(_bounds: Bounds) -> None:
        raise UnavailableError("no Slurm", fix="install it")

    def breaks(_bounds: Bounds) -> None:
        raise ValueError("a bug")

    def dies(_bounds: Bounds) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    for work, kind, text in (
        (refuses, UnavailableError, "no Slurm"),
        (breaks, RuntimeError, "ValueError: a bug"),
        (dies, Broken, "ends every process"),
    ):
        with pytest.raises(kind, match=text):
            apart.run(work, tmp_path, ALL, processes=100, seconds=60)


# --- where ------------------------------------------------------------------------------

ODD = {
    "a blank": "mkdir 'a b'; export TMPDIR=\"$PWD/a b\"",
    "missing": "export TMPDIR=$PWD/missing",
    "not mine": "mkdir ro; mount -t tmpfs -o ro none ro; export TMPDIR=$PWD/ro",
    "noexec": "mkdir ne; mount -t tmpfs -o noexec none ne; export TMPDIR=$PWD/ne",
    "full": "mkdir full; mount -t tmpfs -o size=16k none full; export TMPDIR=$PWD/full",
    "long": f"mkdir {'l' * 120}; export TMPDIR=$PWD/{'l' * 120}",
}


@pytest.mark.skipif(os.geteuid() != 0 or not UNSHARE, reason="takes root and unshare")
@pytest.mark.parametrize("place", ODD)
def test_an_odd_temporary_folder(place: str, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/bash\nsrun python train.py\n")
    words = [sys.executable, "-m", "slurmgen", "rehearse", "job.sh"]
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-ec", f'{ODD[place]}\nexec "$@"', "bash", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert processes_of(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0 or not UNSHARE, reason="takes root and unshare")
def test_no_temporary_folder_at_all(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/bash\nsrun python train.py\n")
    (tmp_path / "ro").mkdir()
    script = """\
mount -t tmpfs -o ro none ro
for place in /tmp /var/tmp; do mount --bind ro "$place"; done
exec "$@"
"""
    words = [sys.executable, "-m", "slurmgen", "rehearse", "-"]
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-ec", script, "bash", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": "/tmp"},
        input="command: python train.py\n",
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert "/var/tmp: Read-only file system" in done.stderr
    assert "set TMPDIR" in done.stderr
