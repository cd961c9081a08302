"""A sandbox whose nodes have networks of their own, and what can befall one."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.cli.commands import sandbox as commands
from slurmgen.errors import UnavailableError, UsageError
from slurmgen.sandbox import (
    NodeGroup,
    PartitionShape,
    Sandbox,
    Shape,
    faults,
    programs,
    remove,
    statuses,
)
from slurmgen.sandbox.folder import Folder
from slurmgen.sandbox.processes import find_processes, running_daemons
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slurm

SMALL = Shape(nodes=1, gpus_per_node=0)
# What slurmctld takes a minute or five for otherwise.
HASTY = Shape(nodes=2, gpus_per_node=1, extra_conf=("SlurmdTimeout=5", "MessageTimeout=5"))

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="networks of their own take root")


@pytest.fixture(autouse=True, scope="module")
def _slurm() -> None:
    try:
        programs.find_programs()
        programs.find_network_tools()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One that tests share: each leaves it whole."""
    root = tmp_path_factory.mktemp("root")
    with Sandbox.up(name="links", shape=HASTY, directory=root, netns=True) as shared:
        yield shared


def until(met: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


def node_state(sandbox: Sandbox, node: str) -> str:
    shown = sandbox.run(["sinfo", "--noheader", "--Node", f"--nodes={node}", "--format=%T"])
    return shown.stdout.strip()


def job_state(sandbox: Sandbox, job: str) -> str:
    result = sandbox.run(["squeue", "--noheader", "--states=all", "--format=%T", "--jobs", job])
    return result.stdout.strip()


def submit(sandbox: Sandbox, script: str, *options: str, cwd: Path) -> str:
    result = sandbox.run(
        ["sbatch", "--parsable", *options], given=f"#!/bin/bash\n{script}", cwd=cwd
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def stray_links() -> list[str]:
    """The network devices that a sandbox made whose process is gone."""
    return [
        name
        for name in os.listdir("/sys/class/net")
        if name.startswith("slurmgen") and not Path("/proc", name.removeprefix("slurmgen")).exists()
    ]


def assert_nothing_left(folder: Folder) -> None:
    assert find_processes(folder.path) == []
    assert not folder.path.exists()
    # The kernel takes them down by itself, a moment later.
    until(lambda: not stray_links(), "the links to go")


# --- networks ------------------------------------------------------------------------

# Node 0 listens, node 1 connects by name; both say where they are.
MEET = """\
import os, socket, sys
first = sys.argv[1]
rank = int(os.environ["SLURM_PROCID"])
own = socket.gethostbyname(socket.gethostname())
if rank == 0:
    with socket.create_server((first, 29500)) as server:
        peer, (address, _) = server.accept()
        with peer:
            peer.sendall(b"hello")
    print(rank, socket.gethostname(), own, address)
else:
    for _ in range(600):
        try:
            peer = socket.create_connection((first, 29500), timeout=60)
            break
        except ConnectionRefusedError:
            __import__("time").sleep(0.05)
    with peer:
        print(rank, socket.gethostname(), own, peer.getpeername()[0], peer.recv(5).decode())
"""


@ROOT_ONLY
def test_ranks_meet_by_name_across_addresses(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "meet.py").write_text(MEET)
    shell = (
        "echo shell $(hostname) $(getent ahostsv4 $(hostname) | awk 'NR==1 {print $1}')\n"
        'first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\n'
        f'srun {sys.executable} meet.py "$first"\n'
    )
    job = submit(sandbox, shell, "-N2", "--wait", "--output=out", cwd=tmp_path)
    assert job_state(sandbox, job) == "COMPLETED"
    rows = sorted(line.split() for line in (tmp_path / "out").read_text().splitlines())
    network = sandbox.reach.network
    assert network is not None
    one, two = network.node(1), network.node(2)
    assert one != two
    assert rows == [
        ["0", "n1", one, two],
        ["1", "n2", two, one, "hello"],
        ["shell", "n1", one],
    ]


@ROOT_ONLY
def test_nodes_see_no_network_but_theirs(sandbox: Sandbox) -> None:
    # Nobody answers for names outside, and at once, or each look-up would take ten seconds.
    look_up = "timeout 5 getent hosts nosuch.name; [ $? = 2 ] || exit 1"
    unknown = f"for i in 1 2 3 4 5 6; do {look_up}; done"
    script = f"getent hosts n1 n2; ls /proc/sys/net/ipv4/conf; {unknown}"
    result = sandbox.run(["srun", "--nodelist=n2", "bash", "-c", script])
    assert result.returncode == 0, result.stderr
    words = result.stdout.split()
    assert {"n1", "n2"} <= set(words)
    assert set(words[words.index("all") :]) == {"all", "default", "eth0", "lo"}


@ROOT_ONLY
def test_srun_from_outside_hears_every_node(sandbox: Sandbox) -> None:
    result = sandbox.run(["srun", "-N2", "--label", "cat"], given="one line\n")
    assert sorted(result.stdout.splitlines()) == ["0: one line", "1: one line"]
    # The nodes of the test before may still be busy with its end.
    waits = re.compile(r"srun: job \d+ (queued and waiting for|has been allocated) resources\n")
    assert waits.sub("", result.stderr) == ""


@ROOT_ONLY
def test_two_at_once_keep_apart(sandbox: Sandbox, tmp_path: Path) -> None:
    def up(name: str) -> Sandbox:
        return Sandbox.up(name=name, shape=SMALL, directory=tmp_path, netns=True)

    with ThreadPoolExecutor() as pool:
        one, two = pool.map(up, ["one", "two"])
    blocks = {box.reach.network for box in (sandbox, one, two)}
    assert len(blocks) == 3
    with two:
        one.down()
        assert_nothing_left(one.folder)
        for box in (two, sandbox):
            assert box.run(["srun", "hostname"]).stdout == "n1\n"
        assert Sandbox.find("two", directory=tmp_path).reach == two.reach


@ROOT_ONLY
def test_a_process_that_hides_its_origin_ends_too(tmp_path: Path) -> None:
    with Sandbox.up(name="s", shape=SMALL, directory=tmp_path, netns=True) as box:
        pids = tmp_path / "pid"
        submit(box, f"env -i setsid sleep 300 & echo $! > {pids}; wait", cwd=tmp_path)
        until(lambda: pids.exists() and pids.read_text(), "the job")
    assert not Path("/proc", pids.read_text().strip(), "cwd").exists()


@ROOT_ONLY
@pytest.mark.parametrize("seed", range(6))
def test_remains_of_a_killed_start_are_cleared_away(seed: int, tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, slurmgen.sandbox as s;"
        "s.Sandbox.up(name='s', shape=s.Shape(nodes=16), directory=pathlib.Path(sys.argv[1]),"
        " netns=True)"
    )
    folder = Folder.of("s", tmp_path)
    starting = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], cwd=Path(__file__).parents[2]
    )
    until(folder.owner.exists, "the start")
    time.sleep(random.Random(seed).uniform(0, 0.8))
    starting.kill()
    starting.wait(PATIENCE_S)
    assert remove("s", directory=tmp_path)
    assert_nothing_left(folder)


# --- cut and mend --------------------------------------------------------------------

# Node 1 sends the time of day to node 0, ten times a second, as long as there is a file.
TALK = """\
import os, pathlib, socket, sys, time
first, folder = sys.argv[1], pathlib.Path(sys.argv[2])
if os.environ["SLURM_PROCID"] == "0":
    with socket.create_server((first, 29501)) as server:
        (folder / "listens").touch()
        peer, _ = server.accept()
        with peer:
            count = 0
            while data := peer.recv(4096):
                count += len(data)
                (folder / "new").write_text(str(count))
                (folder / "new").rename(folder / "heard")
else:
    while not (folder / "listens").exists():
        time.sleep(0.05)
    with socket.create_connection((first, 29501)) as peer:
        while not (folder / "end").exists():
            peer.sendall(b".")
            time.sleep(0.1)
"""


class Talk:
    """Two ranks with a connection between them."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        (folder / "talk.py").write_text(TALK)
        self.sandbox = sandbox
        self.folder = folder
        command = f"srun {sys.executable} talk.py n1 {folder}"
        self.job = submit(sandbox, command, "-N2", "--output=out", cwd=folder)
        until(lambda: self.heard() > 0, "the connection")

    def heard(self) -> int:
        path = self.folder / "heard"
        return int(path.read_text()) if path.exists() else 0

    def goes_on(self) -> None:
        before = self.heard()
        until(lambda: self.heard() > before, "the connection to go on")

    def stalls(self) -> None:
        # What was on its way may still arrive.
        time.sleep(0.3)
        before = self.heard()
        time.sleep(1.5)
        assert self.heard() == before

    def end(self) -> None:
        (self.folder / "end").touch()
        until(lambda: job_state(self.sandbox, self.job) == "COMPLETED", "the job's end")


@ROOT_ONLY
@pytest.mark.parametrize("members", [("n1", "n2"), ("n2", "n1"), ("n2",)])
def test_a_cut_link_stalls_and_a_mended_one_goes_on(
    members: tuple[str, ...], sandbox: Sandbox, tmp_path: Path
) -> None:
    talk = Talk(sandbox, tmp_path)
    talk.goes_on()
    assert faults.cut(sandbox, *members)
    assert not faults.cut(sandbox, *members)
    talk.stalls()
    assert faults.mend(sandbox, *members)
    assert not faults.mend(sandbox, *members)
    talk.goes_on()
    talk.end()


@ROOT_ONLY
def test_mending_a_node_mends_all_its_links(sandbox: Sandbox, tmp_path: Path) -> None:
    talk = Talk(sandbox, tmp_path)
    faults.cut(sandbox, "n1", "n2")
    faults.cut(sandbox, "ctl", "n2")
    faults.cut(sandbox, "n1")
    faults.mend(sandbox, "n1", "n2")
    talk.stalls()
    faults.cut(sandbox, "n1", "n2")
    faults.mend(sandbox, "n1")
    talk.goes_on()
    assert faults.mend(sandbox, "n2")
    assert not faults.mend(sandbox, "ctl")
    talk.end()


@ROOT_ONLY
def test_a_node_without_link_is_down_until_it_is_mended(sandbox: Sandbox) -> None:
    faults.cut(sandbox, "n2", "ctl")
    until(lambda: node_state(sandbox, "n2") == "down*", "slurmctld to miss the node")
    assert node_state(sandbox, "n1") == "idle"
    faults.mend(sandbox, "n2", "ctl")
    until(lambda: node_state(sandbox, "n2") == "idle", "the node to come back")


# --- kill and revive -----------------------------------------------------------------


@ROOT_ONLY
def test_a_killed_node_is_missed_and_comes_back(sandbox: Sandbox, tmp_path: Path) -> None:
    talk = Talk(sandbox, tmp_path)
    before = {process.pid for process in find_processes(sandbox.folder.path)}
    faults.kill(sandbox, "n2")
    assert running_daemons(sandbox.folder.path).nodes == {"n1"}
    gone = before - {process.pid for process in find_processes(sandbox.folder.path)}
    # At least slurmd, slurmstepd and the rank.
    assert len(gone) >= 3
    # No peer was told.
    assert job_state(sandbox, talk.job) == "RUNNING"
    talk.stalls()
    with pytest.raises(UsageError, match="no process to kill"):
        faults.kill(sandbox, "n2")
    faults.mend(sandbox, "n2")
    until(lambda: node_state(sandbox, "n2") == "down*", "slurmctld to miss the node")
    faults.revive(sandbox, "n2")
    until(lambda: node_state(sandbox, "n2") == "idle", "the node to come back")
    with pytest.raises(UsageError, match="runs"):
        faults.revive(sandbox, "n2")
    sandbox.run(["scancel", talk.job])
    until(lambda: node_state(sandbox, "n1") == "idle", "the first node")
    assert sandbox.run(["srun", "-N2", "true"]).returncode == 0


@ROOT_ONLY
def test_steps_outlive_their_slurmd(sandbox: Sandbox, tmp_path: Path) -> None:
    talk = Talk(sandbox, tmp_path)
    faults.kill(sandbox, "n2", slurmd_only=True)
    talk.goes_on()
    faults.revive(sandbox, "n2")
    talk.goes_on()
    talk.end()


def test_nodes_that_share_loopback_can_be_killed_too(tmp_path: Path) -> None:
    with Sandbox.up(name="s", shape=HASTY, directory=tmp_path) as box:
        if not box.loopback_only:
            pytest.skip("this machine allows no private host names")
        pids = tmp_path / "pids"
        pids.mkdir()
        script = f"srun sh -c 'setsid sleep 300 & echo $! > {pids}/$(hostname); sleep 300'"
        job = submit(box, script, "-N2", cwd=tmp_path)
        until(lambda: len(list(pids.glob("n?"))) == 2, "the job")
        until(lambda: all(path.read_text() for path in pids.glob("n?")), "its processes")
        faults.kill(box, "n2")
        alive = {
            node: Path("/proc", (pids / node).read_text().strip(), "cwd").exists()
            for node in ("n1", "n2")
        }
        assert alive == {"n1": True, "n2": False}
        assert statuses(directory=tmp_path)[0].state == "degraded"
        until(lambda: job_state(box, job) != "RUNNING", "slurmctld to miss the node")
        faults.revive(box, "n2")
        until(lambda: node_state(box, "n2") == "idle", "the node to come back")
        with pytest.raises(UsageError, match="share loopback") as error:
            faults.cut(box, "n1")
        assert "--netns" in error.value.fix


# --- preempt -------------------------------------------------------------------------


def test_a_preempted_job_is_told_and_comes_back(tmp_path: Path) -> None:
    shape = Shape(nodes=2, gpus_per_node=1, grace_seconds=3)
    script = (
        f'srun bash -c \'trap "echo >> {tmp_path}/told" TERM;'
        f" echo >> {tmp_path}/runs; while true; do sleep 0.1; done'"
    )
    runs = tmp_path / "runs"
    with Sandbox.up(name="s", shape=shape, directory=tmp_path) as box:
        job = submit(box, script, "-N1", "--nodelist=n2", "--requeue", cwd=tmp_path)
        other = submit(box, "sleep 300", "-N1", "--nodelist=n1", cwd=tmp_path)
        until(runs.exists, "the job")
        with pytest.raises(UsageError, match="no job '99999' runs") as error:
            faults.preempt(box, "99999")
        assert job in error.value.fix
        assert faults.preempt(box, job) == 3
        until((tmp_path / "told").exists, "the signal")
        until(lambda: runs.read_text().count("\n") == 2, "the second run")
        assert "Restarts=1" in box.run(["scontrol", "show", "job", job]).stdout
        assert job_state(box, other) == "RUNNING"
        sharing = submit(box, "sleep 300", "-N1", "--nodelist=n1", cwd=tmp_path)
        until(lambda: job_state(box, sharing) == "RUNNING", "a second job on n1")
        with pytest.raises(UsageError, match="would choose among them"):
            faults.preempt(box, sharing)


@ROOT_ONLY
def test_a_sandbox_without_preemption_says_so(sandbox: Sandbox) -> None:
    with pytest.raises(UsageError) as error:
        faults.preempt(sandbox, "1")
    assert "--grace" in error.value.fix


# --- groups --------------------------------------------------------------------------


def test_node_groups_have_their_own_nodes_and_partitions(tmp_path: Path) -> None:
    shape = Shape(
        groups=(
            NodeGroup(nodes=2, gpus_per_node=2, gpu_type="h100", features=("nvlink", "ib")),
            NodeGroup(nodes=1, gpus_per_node=0, cpus_per_node=8, memory_mb=4096),
        ),
        partitions=(
            PartitionShape("big", groups=(0,), max_minutes=90, max_nodes=2),
            PartitionShape("cpu", groups=(1,), max_minutes=30),
            "any",
        ),
    )
    with Sandbox.up(name="s", shape=shape, directory=tmp_path) as box:
        shown = box.run(["sinfo", "--noheader", "--format=%R %N %l %s %c %m %G %f"]).stdout
        assert sorted(shown.splitlines()) == [
            "any n3 infinite 1-infinite 8 4096 (null) (null)",
            "any n[1-2] infinite 1-infinite 64 262144 gpu:h100:2 nvlink,ib",
            "big n[1-2] 1:30:00 1-2 64 262144 gpu:h100:2 nvlink,ib",
            "cpu n3 30:00 1-infinite 8 4096 (null) (null)",
        ]
        assert Sandbox.find("s", directory=tmp_path).shape == shape
        assert statuses(directory=tmp_path)[0].nodes == 3
        options = ["--partition=any", "--constraint=nvlink", "-N2", "--gres=gpu:h100:2"]
        result = box.run(["srun", *options, "printenv", "CUDA_VISIBLE_DEVICES"])
        assert result.stdout == "0,1\n0,1\n"


@pytest.mark.parametrize(
    "shape",
    [
        {"groups": (NodeGroup(nodes=1000), NodeGroup(nodes=25))},
        {"partitions": (PartitionShape("gpu", groups=(1,)),)},
        {"partitions": ("gpu", PartitionShape("gpu"))},
        {"partitions": ("preempt",), "grace_seconds": 0},
        {"grace_seconds": -1},
    ],
)
def test_a_shape_that_makes_no_sense_is_refused(shape: dict[str, object]) -> None:
    with pytest.raises(UsageError) as error:
        Shape(**shape)  # type: ignore[arg-type]
    assert error.value.fix


def test_parts_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError):
        NodeGroup(features=("a,b",))
    with pytest.raises(UsageError):
        PartitionShape("gpu", max_minutes=0)
    with pytest.raises(UsageError):
        PartitionShape("gpu", min_nodes=3, max_nodes=2)


# --- the command line ----------------------------------------------------------------


@ROOT_ONLY
def test_commands_from_cut_to_revive(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    name, directory = sandbox.name, sandbox.folder.path.parent
    for _ in range(2):
        assert commands.cut("n1", "n2", name=name, directory=directory) == 0
    for _ in range(2):
        assert commands.mend("n1", None, name=name, directory=directory) == 0
    assert commands.kill("n1", name=name, directory=directory) == 0
    assert commands.revive("n1", name=name, directory=directory) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "slurmgen: n1 and n2 are cut off from each other",
        "slurmgen: n1 and n2 are cut off from each other already",
        "slurmgen: the link of n1 is mended",
        "slurmgen: no link of n1 was cut",
        "slurmgen: all that ran on n1 is killed",
        "slurmgen: n1 is back",
    ]


@ROOT_ONLY
@pytest.mark.parametrize(
    ("members", "fix"),
    [
        (("n3",), "did you mean n2? There is n1 to n2 and ctl"),
        (("N1",), "did you mean n1? There is n1 to n2 and ctl"),
        (("ctrl",), "did you mean ctl? There is n1 to n2 and ctl"),
        (("elsewhere",), "There is n1 to n2 and ctl"),
        (("n01",), "did you mean n1? There is n1 to n2 and ctl"),
        (("n1", "n1"), "name two nodes, or one"),
    ],
)
def test_a_name_that_is_none_is_refused(
    members: tuple[str, ...], fix: str, sandbox: Sandbox
) -> None:
    for change in (faults.cut, faults.mend):
        with pytest.raises(UsageError) as error:
            change(sandbox, *members)
        assert error.value.fix == fix


@ROOT_ONLY
def test_the_controller_is_no_node_to_kill(sandbox: Sandbox) -> None:
    with pytest.raises(UsageError, match="no node 'ctl'"):
        faults.kill(sandbox, "ctl")


# --- who may -------------------------------------------------------------------------

SETPRIV = shutil.which("setpriv")
REFUSED = {
    "ordinary user": (["--reuid=daemon", "--regid=daemon", "--clear-groups"], "takes root"),
    "root without namespaces": (
        ["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"],
        "allows no networks",
    ),
}


SCRIPT_OF_A_STARTER = """\
import json, pathlib
from slurmgen.errors import UnavailableError
from slurmgen.sandbox import Sandbox
try:
    Sandbox.up(directory=pathlib.Path("home"), netns=True)
except UnavailableError as error:
    print(json.dumps([str(error), error.fix]))
"""


@pytest.mark.skipif(os.geteuid() != 0 or not SETPRIV, reason="takes root and setpriv")
@pytest.mark.parametrize("starter", REFUSED)
def test_networks_are_refused_to(starter: str) -> None:
    assert SETPRIV
    privileges, said = REFUSED[starter]
    # tmp_path is closed to other users.
    with tempfile.TemporaryDirectory(prefix="sandbox-") as scratch:
        os.chmod(scratch, 0o755)
        package = Path(__file__).parents[2] / "slurmgen"
        shutil.copytree(package, Path(scratch, "slurmgen"), ignore=lambda _, __: {"__pycache__"})
        home = Path(scratch, "home")
        home.mkdir(mode=0o777)
        Path(scratch, "script.py").write_text(SCRIPT_OF_A_STARTER)
        result = subprocess.run(
            [SETPRIV, *privileges, "sh", "-c", "exec /usr/bin/python3 script.py"],
            cwd=scratch,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert result.returncode == 0, result.stderr
        message, fix = json.loads(result.stdout)
        assert said in message
        assert "leave out --netns" in fix
        assert list(home.iterdir()) == []
