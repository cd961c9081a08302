"""A sandbox on a machine that has the names of its nodes for something else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from slurmgen.errors import UnavailableError
from slurmgen.sandbox import Sandbox, Shape, programs
from slurmgen.sandbox.addresses import Addresses
from slurmgen.sandbox.processes import find_processes
from slurmgen.sandbox.startup import Ask

ROOT = Path(__file__).resolve().parents[2]
SLURMGEN = (sys.executable, "-m", "slurmgen")
UNSHARE = shutil.which("unshare")

pytestmark = pytest.mark.slurm


@pytest.fixture(autouse=True, scope="module")
def _slurm() -> None:
    try:
        programs.find_programs()
    except UnavailableError as error:
        pytest.skip(str(error))


# The file, the machine's own name, and the order in which glibc asks for names.
MACHINES = {
    "Debian's own line": ("127.0.1.1 n1\n", "n1", ""),
    "both nodes": ("127.0.0.1 n1 n2\n", "", ""),
    "the other node": ("127.0.0.1 localhost n2\n", "n2", ""),
    "the controller": ("127.0.1.1 ctl\n", "ctl", ""),
    "IPv6": ("::1 n1\n", "", ""),
    "capitals and domains": ("127.0.1.1 N1.example.org N1 CTL\n", "", ""),
    "no hosts at all": ("", "n1", ""),
    "files last": ("127.0.1.1 n1\n", "n1", "hosts: dns files\n"),
}
UP = """\
mount --bind hosts /etc/hosts
if [ -s nsswitch ]; then mount --bind nsswitch /etc/nsswitch.conf; fi
if [ -n "$NAME" ]; then hostname "$NAME"; fi
"$@" sandbox up --dir "$PWD/box" $NETNS || exit
"$@" sandbox exec --dir "$PWD/box" -- srun -N2 --time=1 hostname
status=$?
"$@" sandbox down --dir "$PWD/box"
exit $status
"""
REHEARSE = UP.partition('"$@"')[0] + '"$@" rehearse job.sh\n'
JOB = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1\nsrun python train.py\n"


def on_a_machine(
    machine: str, script: str, folder: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    hosts, name, nsswitch = MACHINES[machine]
    (folder / "hosts").write_text(f"127.0.0.1 localhost\n{hosts}")
    (folder / "nsswitch").write_text(nsswitch)
    (folder / "job.sh").write_text(JOB)
    assert UNSHARE
    return subprocess.run(
        [UNSHARE, "--mount", "--uts", "bash", "-c", script, "bash", *SLURMGEN],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(folder),
            "NAME": name,
            "NETNS": "",
            **more,
        },
        capture_output=True,
        text=True,
        timeout=240,
    )


ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0 or not UNSHARE, reason="takes root and unshare")


@ROOT_ONLY
@pytest.mark.parametrize("machine", MACHINES)
def test_nodes_are_reached(machine: str, tmp_path: Path) -> None:
    done = on_a_machine(machine, UP, tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")[1:-1]) == ["n1", "n2"]


@ROOT_ONLY
@pytest.mark.parametrize("machine", ["Debian's own line", "the controller"])
def test_nodes_with_networks_are_reached(machine: str, tmp_path: Path) -> None:
    done = on_a_machine(machine, UP, tmp_path, NETNS="--netns")
    if "allows no networks" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")[1:-1]) == ["n1", "n2"]


@ROOT_ONLY
@pytest.mark.parametrize("machine", ["Debian's own line", "both nodes", "the controller"])
def test_a_job_is_rehearsed(machine: str, tmp_path: Path) -> None:
    done = on_a_machine(machine, REHEARSE, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("nothing is wrong\n")


def test_who_does_not_answer_is_named(tmp_path: Path) -> None:
    with Sandbox.up(name="s", shape=Shape(nodes=2), directory=tmp_path) as box:
        if not box.loopback_only:
            pytest.skip("this machine allows no private host names")
        found = programs.find_programs()
        conf = dict(
            word.split("=", 1)
            for line in box.slurm_conf.read_text().splitlines()
            for word in line.split()
            if "=" in word and line.startswith(("NodeName=n1 ", "SlurmctldPort"))
        )
        layout = Addresses(int(conf["NodeAddr"].split(".")[1]), int(conf["SlurmctldPort"]))
        ask = Ask(box.folder, found, layout, box.reach, None)
        assert ask({"n1", "n2", "ctl"}) == []
        for process in find_processes(box.folder.path):
            if process.node == "n2":
                os.kill(process.pid, signal.SIGKILL)
        (silent,) = ask({"n1", "n2", "ctl"})
        assert (silent.name, silent.error) == ("n2", "Connection refused")
        assert silent.resolved == (layout.node(2),) == (silent.address,)
        elsewhere = Addresses(layout.block + 1, layout.port)
        names = [one.name for one in ask._replace(layout=elsewhere).wrongly_named({"n1", "ctl"})]
        assert names == ["ctl", "n1"]
