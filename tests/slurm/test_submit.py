"""slurmgen submit against a real Slurm: what it prints, makes, drops, and ends with."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from slurmgen.sandbox import Sandbox, Shape
from tests.slurm.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slurm, pytest.mark.matrix]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    directory = tmp_path_factory.mktemp("sandbox")
    with Sandbox.up(name="submit", shape=Shape(), directory=directory) as sandbox:
        yield sandbox


def submit(
    sandbox: Sandbox, folder: Path, job: str, *arguments: str, **extra: str
) -> subprocess.CompletedProcess[str]:
    (folder / "job.yaml").write_text(job)
    return subprocess.run(
        [sys.executable, "-m", "slurmgen", "submit", "job.yaml", *arguments],
        cwd=folder,
        env={**sandbox.environment(), "PYTHONPATH": str(ROOT), **extra},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_id_alone_and_the_log_folder(sandbox: Sandbox, tmp_path: Path) -> None:
    job = "time: 1m\noutput: logs/deep/%x-%j.out\ncommand: echo hello\n"
    done = submit(sandbox, tmp_path, job, "--wait")
    assert done.returncode == 0, done.stderr
    job_id = done.stdout.strip()
    assert done.stdout == f"{job_id}\n"
    assert job_id.isdigit()
    assert "COMPLETED" in done.stderr
    assert (tmp_path / "logs" / "deep" / f"job-{job_id}.out").read_text() == "hello\n"


@pytest.mark.parametrize(("command", "status"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_wait_ends_with_the_jobs_status(
    sandbox: Sandbox, tmp_path: Path, command: str, status: int
) -> None:
    job = f"time: 1m\noutput: log\nlauncher: plain\ncommand: {command}\n"
    done = submit(sandbox, tmp_path, job, "--wait")
    assert done.returncode == status, done.stderr
    assert "FAILED" in done.stderr


def test_wait_takes_the_worst_of_an_array(sandbox: Sandbox, tmp_path: Path) -> None:
    job = "time: 1m\narray: 0-2\noutput: log-%a\ncommand: exit $SLURM_ARRAY_TASK_ID\n"
    done = submit(sandbox, tmp_path, job, "--wait")
    assert done.returncode == 2, done.stderr


def test_stray_sbatch_variables_do_not_change_the_job(sandbox: Sandbox, tmp_path: Path) -> None:
    job = "time: 7m\noutput: log\nsbatch: {hold: true}\ncommand: 'true'\n"
    done = submit(
        sandbox, tmp_path, job, SBATCH_TIMELIMIT="1:00:00", SBATCH_JOB_NAME="stray", SLURM_GPUS="1"
    )
    assert done.returncode == 0, done.stderr
    assert "SBATCH_JOB_NAME, SBATCH_TIMELIMIT, SLURM_GPUS" in done.stderr
    shown = sandbox.run(["scontrol", "-o", "show", "job", done.stdout.strip()]).stdout
    sandbox.run(["scancel", done.stdout.strip()])
    assert "JobName=job " in shown
    assert "TimeLimit=00:07:00" in shown


def test_what_slurm_refuses_is_said_in_its_own_words(sandbox: Sandbox, tmp_path: Path) -> None:
    job = "partition: nosuch\ncommand: 'true'\n"
    done = submit(sandbox, tmp_path, job)
    assert done.returncode == 3
    assert done.stdout == ""
    assert "invalid partition specified: nosuch" in done.stderr


def test_test_only_submits_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    before = sandbox.run(["squeue", "-h"]).stdout
    job = "nodes: 2\ngpus_per_node: 4\noutput: logs/log\ncommand: 'true'\n"
    done = submit(sandbox, tmp_path, job, "--test-only")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "to start at" in done.stderr
    assert sandbox.run(["squeue", "-h"]).stdout == before
    assert not (tmp_path / "logs").exists()


def test_a_log_folder_that_cannot_be_made(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    done = submit(sandbox, tmp_path, "output: logs/%j.out\ncommand: 'true'\n")
    assert done.returncode == 3
    assert "nothing was submitted" in done.stderr


def test_a_controller_that_is_down(tmp_path: Path) -> None:
    with Sandbox.up(
        name="dead", shape=Shape(nodes=1, gpus_per_node=0), directory=tmp_path / "root"
    ) as sandbox:
        conf = tmp_path / "slurm.conf"
        text = sandbox.slurm_conf.read_text()
        port = next(p for p in text.splitlines() if p.startswith("SlurmctldPort="))
        conf.write_text(text.replace(port, "SlurmctldPort=1") + "\nMessageTimeout=1\n")
        done = submit(sandbox, tmp_path, "command: 'true'\n", SLURM_CONF=str(conf))
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr


def test_wait_is_not_fooled_by_what_a_user_writes(sandbox: Sandbox, tmp_path: Path) -> None:
    state = "   JobState=COMPLETED Reason=None Dependency=(null)"
    rest = "   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0"
    text = rf'"x{state}{rest} \L"'
    job = f"job_name: {text}\ncomment: {text}\ntime: 1m\noutput: log\ncommand: sleep 1; exit 3\n"
    done = submit(sandbox, tmp_path, job, "--wait")
    assert done.returncode == 3, done.stderr


def test_wait_remembers_a_task_that_slurm_has_forgotten(tmp_path: Path) -> None:
    shape = Shape(nodes=1, gpus_per_node=0, extra_conf=("MinJobAge=2",))
    job = (
        "time: 1m\narray: 0-1\noutput: log-%a\n"
        'command: if [ "$SLURM_ARRAY_TASK_ID" = 0 ]; then exit 5; fi; sleep 12\n'
    )
    with Sandbox.up(name="forgets", shape=shape, directory=tmp_path / "root") as sandbox:
        done = submit(sandbox, tmp_path, job, "--wait")
    assert done.returncode == 5, done.stderr


def test_folders_named_by_what_is_known_before_the_job_has_an_id(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    job = "job_name: exp/1\ntime: 1m\noutput: logs/%x-%j.out\nerror: err/%u/%j\ncommand: echo hi\n"
    done = submit(sandbox, tmp_path, job, "--wait")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "logs" / "exp" / f"1-{done.stdout.strip()}.out").read_text() == "hi\n"


def test_folders_that_nobody_can_make_are_refused_by_old_versions(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """From 23.02 on Slurm makes them by itself."""
    done = submit(sandbox, tmp_path, "output: logs/%j/out\ncommand: 'true'\n", "--wait")
    if sandbox.version < "23.02":
        assert done.returncode == 3
        assert "logs/%j" in done.stderr
        assert not (tmp_path / "logs").exists()
    else:
        assert done.returncode == 0, done.stderr


def test_no_folder_is_left_of_a_job_that_was_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    job = "partition: nosuch\noutput: there/a/b/%j.out\ncommand: 'true'\n"
    assert submit(sandbox, tmp_path, job).returncode == 3
    assert list((tmp_path / "there").iterdir()) == []


def test_control_c_while_waiting_leaves_the_job_alone(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("time: 1m\noutput: log\ncommand: sleep 60\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "slurmgen", "submit", "--wait", "job.yaml"],
        cwd=tmp_path,
        env={**sandbox.environment(), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    job_id = process.stdout.readline().strip()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    state = sandbox.run(["squeue", "-h", "-j", job_id, "-o", "%T"]).stdout.strip()
    sandbox.run(["scancel", job_id])
    assert process.returncode == 130
    assert f"scancel {job_id}" in said
    assert "Traceback" not in said
    assert state in ("PENDING", "RUNNING", "CONFIGURING")


def test_no_folder_is_left_where_the_second_cannot_be_made(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    job = "output: logs/a/%j.out\nerror: file/%j.err\ncommand: 'true'\n"
    assert submit(sandbox, tmp_path, job).returncode == 3
    assert not (tmp_path / "logs").exists()


def test_from_python(sandbox: Sandbox, tmp_path: Path) -> None:
    program = (
        "from slurmgen import Job, submit\n"
        "job = Job(job_name='py', nodes=2, time='1m', output='%x-%j.out', command='hostname')\n"
        "print(submit(job))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**sandbox.environment(), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    job_id = done.stdout.strip()
    shown = sandbox.run(["scontrol", "show", "job", job_id]).stdout
    assert f"JobId={job_id} JobName=py" in shown
    assert "NumNodes=2" in shown
