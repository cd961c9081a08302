"""The sandbox, against the Slurm that is installed here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.cli.commands import sandbox as commands
from slurmgen.errors import UnavailableError, UsageError
from slurmgen.sandbox import Sandbox, Shape, programs, remove, statuses
from slurmgen.sandbox.folder import Folder
from slurmgen.sandbox.processes import find_processes, running_daemons
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slurm

SMALL = Shape(nodes=1, gpus_per_node=1)

TASKS_OF_A_JOB = """\
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4 --gres=gpu:a100:4
srun bash -c 'echo "$SLURM_PROCID $SLURM_LOCALID $SLURMD_NODENAME $SLURM_STEP_NODELIST \
$CUDA_VISIBLE_DEVICES $(hostname)"'
"""


@pytest.fixture(autouse=True, scope="module")
def _slurm() -> None:
    try:
        programs.find_programs()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One that tests share: they submit jobs, and leave its daemons alone."""
    with Sandbox.up(name="shared", directory=tmp_path_factory.mktemp("root")) as shared:
        yield shared


def until(met: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


def submit(sandbox: Sandbox, script: str, *options: str, cwd: Path) -> str:
    result = sandbox.run(["sbatch", "--parsable", *options], given=script, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def job_state(sandbox: Sandbox, job: str) -> str:
    result = sandbox.run(["squeue", "--noheader", "--states=all", "--format=%T", "--jobs", job])
    return result.stdout.strip()


def finish(sandbox: Sandbox, *jobs: str) -> None:
    for job in jobs:
        until(lambda job=job: job_state(sandbox, job) == "COMPLETED", f"job {job}")  # type: ignore[misc]


def assert_nothing_left(folder: Folder) -> None:
    assert find_processes(folder.path) == []
    assert working_in(folder.path) == []
    assert not folder.path.exists()
    assert not folder.short.exists()


def working_in(folder: Path) -> list[str]:
    """The processes there, however they show themselves otherwise."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if os.readlink(entry / "cwd").startswith(f"{folder}/"):
                found.append(entry.name)
    return found


# --- jobs ----------------------------------------------------------------------------


@pytest.mark.matrix
def test_a_job_has_a_task_for_each_gpu_of_each_node(sandbox: Sandbox, tmp_path: Path) -> None:
    job = submit(sandbox, TASKS_OF_A_JOB, "--output=out", cwd=tmp_path)
    finish(sandbox, job)
    rows = sorted(line.split() for line in (tmp_path / "out").read_text().splitlines())
    node = ["n1"] * 4 + ["n2"] * 4
    host = node if sandbox.loopback_only else [socket.gethostname()] * 8
    assert rows == [[str(i), str(i % 4), node[i], "n[1-2]", "0,1,2,3", host[i]] for i in range(8)]


@pytest.mark.matrix
def test_srun_from_outside(sandbox: Sandbox) -> None:
    result = sandbox.run(["srun", "-N2", "--gres=gpu:a100:2", "printenv", "CUDA_VISIBLE_DEVICES"])
    assert (result.stdout, result.stderr) == ("0,1\n0,1\n", "")


def test_jobs_share_a_node(sandbox: Sandbox, tmp_path: Path) -> None:
    # Each ends only when it has seen the other.
    meet = """\
        #!/bin/bash
        #SBATCH --nodes=1 --nodelist=n1 --gres=gpu:a100:2
        echo "$CUDA_VISIBLE_DEVICES" > mine.$1
        until [ -s mine.$2 ]; do sleep 0.05; done
        """
    (tmp_path / "meet.sh").write_text(textwrap.dedent(meet))
    jobs = [
        submit(sandbox, "", "meet.sh", *names, cwd=tmp_path) for names in (("a", "b"), ("b", "a"))
    ]
    finish(sandbox, *jobs)
    gpus = {(tmp_path / f"mine.{name}").read_text().strip() for name in "ab"}
    assert gpus == {"0,1", "2,3"}


@pytest.mark.matrix
def test_a_requeued_job_starts_again(sandbox: Sandbox, tmp_path: Path) -> None:
    script = """\
        #!/bin/bash
        echo "${SLURM_RESTART_COUNT:-0}" >> starts
        [ -n "$SLURM_RESTART_COUNT" ] || sleep 300
        """
    job = submit(sandbox, textwrap.dedent(script), "--requeue", cwd=tmp_path)
    until((tmp_path / "starts").exists, "the first start")
    assert sandbox.run(["scontrol", "requeue", job]).returncode == 0
    finish(sandbox, job)
    assert (tmp_path / "starts").read_text() == "0\n1\n"


@pytest.mark.matrix
def test_an_array_and_a_cancelled_job(sandbox: Sandbox, tmp_path: Path) -> None:
    array = submit(
        sandbox, "#!/bin/bash\ntouch ran.$SLURM_ARRAY_TASK_ID\n", "--array=0-2", cwd=tmp_path
    )
    sleeper = submit(sandbox, "#!/bin/bash\nsleep 300\n", cwd=tmp_path)
    until(lambda: job_state(sandbox, sleeper) == "RUNNING", "the sleeper")
    assert sandbox.run(["scancel", sleeper]).returncode == 0
    until(lambda: job_state(sandbox, sleeper) == "CANCELLED", "its end")
    until(lambda: job_state(sandbox, array).split() == ["COMPLETED"] * 3, "the array")
    assert sorted(path.name for path in tmp_path.glob("ran.*")) == ["ran.0", "ran.1", "ran.2"]


@pytest.mark.matrix
def test_only_says_when_a_job_would_start(sandbox: Sandbox) -> None:
    fits = sandbox.run(["sbatch", "--test-only", "-N2", "--gres=gpu:a100:4", "--wrap=true"])
    assert fits.returncode == 0
    assert "on nodes n[1-2] in partition gpu" in fits.stderr
    assert sandbox.run(["sbatch", "--test-only", "-N3", "--wrap=true"]).returncode != 0


# --- network -------------------------------------------------------------------------


def test_every_daemon_listens_on_loopback_only(sandbox: Sandbox) -> None:
    if not sandbox.loopback_only:
        pytest.skip("this machine allows no private host names")
    inodes = {
        link.readlink().name
        for process in find_processes(sandbox.folder.path)
        for link in Path(f"/proc/{process.pid}/fd").iterdir()
        if str(link.readlink()).startswith("socket:")
    }
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                listening.append(fields[1].split(":")[0])
    assert len(listening) == 1 + sandbox.shape.nodes
    # Little-endian: the first octet, 127, comes last.
    assert all(len(address) == 8 and address.endswith("7F") for address in listening)


def test_a_node_has_an_address_to_meet_at(sandbox: Sandbox) -> None:
    addresses = set()
    for node in ("n1", "n2"):
        shown = sandbox.run(["scontrol", "--oneliner", "show", "node", node]).stdout
        address = shown.split("NodeAddr=")[1].split()[0]
        with (
            socket.create_server((address, 0)) as server,
            socket.create_connection(server.getsockname(), timeout=PATIENCE_S),
        ):
            addresses.add(address)
    assert len(addresses) == 2


# --- commands ------------------------------------------------------------------------


def test_exec_returns_the_status_and_hides_the_shell(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = sandbox.folder.path.parent
    monkeypatch.setenv("SBATCH_PARTITION", "elsewhere")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    script = 'echo "$SLURM_CONF ${SBATCH_PARTITION-unset} ${SLURM_JOB_ID-unset}"; exit 5'
    assert commands.execute(["sh", "-c", script], name="shared", directory=directory) == 5
    assert capfd.readouterr().out == f"{sandbox.slurm_conf} unset unset\n"
    killed = commands.execute(["sh", "-c", "kill -9 $$"], name="shared", directory=directory)
    assert killed == 128 + signal.SIGKILL
    assert commands.execute(["no-such-command"], name="shared", directory=directory) == 127


def test_a_client_that_hangs_is_reported(sandbox: Sandbox) -> None:
    with pytest.raises(UnavailableError, match="took longer"):
        sandbox.run(["sleep", "60"], timeout=0.1)


def test_commands_from_up_to_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "s" / "slurm.conf"

    def up() -> int:
        return commands.up(
            name="s",
            directory=tmp_path,
            nodes=1,
            gpus_per_node=0,
            partitions=["cpu", "debug"],
            extra_conf=["MaxArraySize=7"],
        )

    assert up() == 0
    try:
        assert capsys.readouterr().out == f"export SLURM_CONF={conf}\n"
        with pytest.raises(UsageError) as error:
            up()
        assert "slurmgen sandbox down" in error.value.fix
        assert commands.status(directory=tmp_path) == 0
        name, version, nodes, state, path = capsys.readouterr().out.rstrip("\n").split("\t")
        assert (name, nodes, state, path) == ("s", "1", "up", str(conf))
        assert version == programs.find_programs().version
        found = Sandbox.find("s", directory=tmp_path)
        assert found.shape == Shape(
            nodes=1, gpus_per_node=0, partitions=("cpu", "debug"), extra_conf=("MaxArraySize=7",)
        )
        shown = found.run(["scontrol", "show", "config"])
        assert "MaxArraySize            = 7\n" in shown.stdout
        assert shown.stderr == ""
        partitions = found.run(["sinfo", "--noheader", "--format=%P"]).stdout.split()
        assert partitions == ["cpu*", "debug"]
        assert stat_mode(found.folder.path) == 0o700
    finally:
        assert commands.down(name="s", directory=tmp_path) == 0
    assert commands.down(name="s", directory=tmp_path) == 0
    assert commands.status(directory=tmp_path) == 0
    assert capsys.readouterr().out == ""


def stat_mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_exec_without_a_sandbox_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as error:
        commands.execute(["true"], directory=tmp_path)
    assert error.value.exit_status == 3
    assert "slurmgen sandbox up" in error.value.fix


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "_SBIN", ())
    with pytest.raises(UnavailableError, match="slurmctld, slurmd, munged, sinfo") as error:
        Sandbox.up(directory=tmp_path)
    assert error.value.fix == "apt-get install slurmctld slurmd slurm-client munge"


# --- nothing left behind -------------------------------------------------------------


@pytest.mark.matrix
def test_down_ends_jobs_and_leaves_the_other_sandbox_alone(tmp_path: Path) -> None:
    def up(name: str) -> Sandbox:
        return Sandbox.up(name=name, shape=SMALL, directory=tmp_path)

    with ThreadPoolExecutor() as pool:
        one, two, three = pool.map(up, ["one", "two", "three"])
    with two, three:
        pids = tmp_path / "pids"
        # A process that leaves its job's session, and one that stays.
        script = f"#!/bin/bash\nsetsid sleep 300 & echo $! > {pids}\nsleep 300\n"
        submit(one, script, cwd=tmp_path)
        until(lambda: pids.exists() and pids.read_text(), "the job")
        before = running_daemons(two.folder.path)
        one.down()
        assert_nothing_left(one.folder)
        assert not Path("/proc", pids.read_text().strip(), "cwd").exists()
        assert running_daemons(two.folder.path) == before
        assert two.run(["srun", "hostname"]).returncode == 0
        assert [(row.name, row.state) for row in statuses(directory=tmp_path)] == [
            ("three", "up"),
            ("two", "up"),
        ]


def test_a_crashed_sandbox_can_be_started_again(tmp_path: Path) -> None:
    crashed = Sandbox.up(name="s", shape=SMALL, directory=tmp_path)
    (controller,) = (
        one.pid for one in find_processes(crashed.folder.path) if one.name == "slurmctld"
    )
    os.kill(controller, signal.SIGKILL)
    until(lambda: statuses(directory=tmp_path)[0].state == "down", "its end")
    with pytest.raises(UnavailableError):
        Sandbox.find("s", directory=tmp_path)
    with Sandbox.up(name="s", shape=SMALL, directory=tmp_path) as again:
        assert len(running_daemons(again.folder.path).nodes) == 1
        os.kill(
            next(p.pid for p in find_processes(again.folder.path) if p.name == "slurmd"),
            signal.SIGKILL,
        )
        until(lambda: statuses(directory=tmp_path)[0].state == "degraded", "the lost node")
    assert_nothing_left(crashed.folder)


@pytest.mark.parametrize(
    "line",
    [
        "NoSuchSetting=1",
        "SelectType=select/no_such",
        "TaskPlugin=task/no_such",
        "NodeName=n1",
    ],
)
def test_a_failed_start_shows_the_log_and_leaves_nothing(line: str, tmp_path: Path) -> None:
    shape = Shape(nodes=2, extra_conf=(line,))
    with pytest.raises(UnavailableError) as error:
        Sandbox.up(name="s", shape=shape, directory=tmp_path)
    assert "did not start" in str(error.value)
    assert len(str(error.value).splitlines()) > 1
    assert_nothing_left(Folder.of("s", tmp_path))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_start_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    folder = Folder.of("s", tmp_path)
    starting = start_many_nodes(tmp_path)
    until((folder.log / "munged.log").exists, "the start")
    starting.send_signal(number)
    starting.wait(PATIENCE_S)
    assert starting.returncode in {-number, 128 + number}
    assert_nothing_left(folder)


def test_remains_of_a_killed_start_are_cleared_away(tmp_path: Path) -> None:
    folder = Folder.of("s", tmp_path)
    starting = start_many_nodes(tmp_path)
    until(lambda: find_processes(folder.path), "the start")
    starting.kill()
    starting.wait(PATIENCE_S)
    until(lambda: statuses(directory=tmp_path) == [], "the guard")
    assert_nothing_left(folder)


def test_remains_of_a_crash_are_cleared_away(tmp_path: Path) -> None:
    """After the guard has gone with all the rest, as when the machine's memory runs out."""
    box = Sandbox.up(name="s", shape=SMALL, directory=tmp_path)
    for process in find_processes(box.folder.path):
        if process.name != "munged":
            os.kill(process.pid, signal.SIGKILL)
    until(lambda: statuses(directory=tmp_path)[0].state == "down", "its end")
    assert remove("s", directory=tmp_path)
    assert_nothing_left(box.folder)
    assert not remove("s", directory=tmp_path)


def start_many_nodes(directory: Path) -> subprocess.Popen[bytes]:
    script = (
        "import pathlib, sys, slurmgen.sandbox as s;"
        "s.Sandbox.up(name='s', shape=s.Shape(nodes=24), directory=pathlib.Path(sys.argv[1]))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", script, str(directory)],
        cwd=Path(__file__).parents[2],
        stderr=subprocess.DEVNULL,
    )


def test_a_folder_of_another_machine_is_left_alone(tmp_path: Path) -> None:
    folder = Folder.of("s", tmp_path)
    folder.create()
    folder.owner.write_text("another-login-node")
    assert statuses(directory=tmp_path)[0].state == "elsewhere"
    with pytest.raises(UsageError, match="another-login-node"):
        Sandbox.up(name="s", shape=SMALL, directory=tmp_path)
    with pytest.raises(UsageError, match="another-login-node"):
        remove("s", directory=tmp_path)
    assert folder.path.exists()
    folder.remove()


def test_a_folder_that_nobody_could_sign_is_cleared_away(tmp_path: Path) -> None:
    """Its maker was killed between making the file and writing to it."""
    folder = Folder.of("s", tmp_path)
    folder.create()
    folder.owner.write_text("")
    assert remove("s", directory=tmp_path)
    assert_nothing_left(folder)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for directory in (Path("/proc/sandboxes"), tmp_path / "file"):
        with pytest.raises(UnavailableError) as error:
            Sandbox.up(name="s", shape=SMALL, directory=directory)
        assert str(directory / "s") in str(error.value)
        assert "--dir" in error.value.fix


def test_a_command_ends_with_exec(tmp_path: Path, sandbox: Sandbox) -> None:
    words = ["sandbox", "exec", "--name", "shared", "--dir", str(sandbox.folder.path.parent)]
    ready = tmp_path / "ready"
    script = f"echo $$ > {ready}; exec sleep 600"
    command = subprocess.Popen(
        [sys.executable, "-m", "slurmgen", *words, "--", "sh", "-c", script],
        cwd=Path(__file__).parents[2],
    )
    until(lambda: ready.exists() and ready.read_text(), "the command")
    command.kill()
    command.wait(PATIENCE_S)
    pid = ready.read_text().strip()
    until(lambda: not Path("/proc", pid, "cwd").exists(), "its end")


# --- who starts it -------------------------------------------------------------------

SETPRIV = shutil.which("setpriv")
# Not nobody, as whom Slurm 26.05 no longer runs.
STARTERS = {
    "ordinary user": ["--reuid=daemon", "--regid=daemon", "--clear-groups"],
    "root without namespaces": ["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"],
    "root without namespaces and devices": [
        "--bounding-set=-sys_admin,-mknod",
        "--inh-caps=-sys_admin,-mknod",
    ],
}


@pytest.mark.skipif(os.geteuid() != 0 or not SETPRIV, reason="takes root and setpriv")
@pytest.mark.parametrize("starter", STARTERS)
def test_it_works_for(starter: str) -> None:
    assert SETPRIV
    # tmp_path is closed to other users.
    with tempfile.TemporaryDirectory(prefix="sandbox-") as scratch:
        os.chmod(scratch, 0o755)
        package = Path(__file__).parents[2] / "slurmgen"
        shutil.copytree(package, Path(scratch, "slurmgen"), ignore=lambda _, __: {"__pycache__"})
        home = Path(scratch, "home")
        home.mkdir()
        if starter == "ordinary user":
            shutil.chown(home, "daemon", "daemon")
        Path(scratch, "job.sh").write_text(TASKS_OF_A_JOB)
        Path(scratch, "script.py").write_text(SCRIPT_OF_A_STARTER)
        # Through a shell, since setpriv looks for its program with the rights of root still.
        become = [SETPRIV, *STARTERS[starter], "sh", "-c", 'exec "$@"', "sh"]
        result = subprocess.run(
            [*become, python_for_anybody(become), "script.py"],
            cwd=scratch,
            env={**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")},
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
        )
        assert result.returncode == 0, result.stderr
        answer = json.loads(result.stdout)
        tasks = sorted(line.split()[:5] for line in answer["tasks"])
        assert tasks == [
            [str(i), str(i % 4), f"n{1 + i // 4}", "n[1-2]", "0,1,2,3"] for i in range(8)
        ]
        assert answer["user"] == (["daemon"] if starter == "ordinary user" else ["root"]) * 2
        assert list(home.glob("state/slurmgen/sandbox/*")) == []
        assert find_processes(home / "state" / "slurmgen" / "sandbox" / "default") == []


SCRIPT_OF_A_STARTER = """\
import json, pathlib, time
from slurmgen.sandbox import Sandbox
home = pathlib.Path.home()
with Sandbox.up() as sandbox:
    job = sandbox.run(["sbatch", "--wait", f"--output={home}/out", "job.sh"], timeout=60)
    assert job.returncode == 0, job.stderr
    user = sandbox.run(["srun", "-N2", "id", "-un"])
    tasks = (home / "out").read_text().splitlines()
print(json.dumps({"tasks": tasks, "user": user.stdout.split()}))
"""


def python_for_anybody(become: list[str]) -> str:
    check = "import sys; sys.exit(sys.version_info < (3, 10))"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        if subprocess.run([*become, python, "-c", check], capture_output=True).returncode == 0:
            return python
    pytest.skip("no Python 3.10 that every user may run")


# --- what can't be -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a b", "-x", "a\n", "x" * 65])
def test_a_name_stays_in_its_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Sandbox.up(name=name, shape=SMALL, directory=tmp_path)


@pytest.mark.parametrize(
    "shape",
    [
        {"nodes": 0},
        {"nodes": 1025},
        {"gpus_per_node": -1},
        {"gpu_type": "a100:4"},
        {"cpus_per_node": 0},
        {"memory_mb": 0},
        {"partitions": ()},
        {"partitions": ("gpu", "gpu")},
        {"partitions": ("a b",)},
        {"partitions": ("ALL",)},
        {"extra_conf": ("SlurmUser=root",)},
        {"extra_conf": (" slurmctldhost = elsewhere",)},
        {"extra_conf": ("Licenses=a:1\nSlurmUser=root",)},
    ],
)
def test_a_shape_that_makes_no_sense_is_refused(shape: dict[str, object]) -> None:
    with pytest.raises(UsageError) as error:
        Shape(**shape)  # type: ignore[arg-type]
    assert error.value.fix


def test_a_folder_that_slurm_cannot_spell_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Slurm can't work in"):
        Sandbox.up(directory=tmp_path / "a folder")
