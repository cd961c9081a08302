"""slurmgen submit against a real Slurm: what it prints, makes, drops, and ends with."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from slurmgen.sandbox import Sandbox, Shape
from tests.slurm.conftest import ROOT, skip_without_accounting
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slurm, pytest.mark.matrix]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    directory = tmp_path_factory.mktemp("sandbox")
    # How long Slurm is asked about a submission that it doesn't know.
    shape = Shape(extra_conf=("MessageTimeout=10",))
    with Sandbox.up(name="submit", shape=shape, directory=directory) as sandbox:
        yield sandbox


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where submissions under way are recorded."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "slurmgen" / "submits"


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


def test_a_refused_job_takes_no_folder_from_another(sandbox: Sandbox, tmp_path: Path) -> None:
    """Which may have been submitted while sbatch was still thinking of this one."""
    job = "partition: nosuch\noutput: logs/%j.out\ncommand: 'true'\n"
    assert submit(sandbox, tmp_path, job).returncode == 3
    assert (tmp_path / "logs").is_dir()


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


# What stands in for sbatch calls the real one, and fails before or after it.
STAND_IN = ROOT / "tests" / "chaos" / "sbatch.bash"
HELD = "time: 1m\noutput: logs/%j.out\nsbatch: {hold: true}\ncommand: 'true'\n"


HETEROGENEOUS = """\
  #!/bin/bash
  #SBATCH --hold
  #SBATCH -n1 --comment=mine
  #SBATCH hetjob
  #SBATCH -n1
  true
"""


def start(
    sandbox: Sandbox, folder: Path, job: str, fault: str, prepare: str = "", **extra: str
) -> subprocess.Popen[str]:
    """slurmgen submit with an sbatch that has this fault, once. prepare: Python to run before."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    if not (programs / "sbatch").exists():
        (programs / "sbatch").symlink_to(STAND_IN)
    (folder / "job.yaml").write_text(job)
    if fault:
        (folder / "fault").write_text(fault)
    environment = sandbox.environment()
    # As in a terminal, whatever runs the tests.
    signals = (
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    )
    program = f"{signals}from slurmgen.cli.main import main\n{prepare}\nmain()"
    return subprocess.Popen(
        [sys.executable, "-c", program, "submit", "job.yaml"],
        cwd=folder,
        env={
            **environment,
            "PYTHONPATH": str(ROOT),
            "REAL_SBATCH": str(shutil.which("sbatch")),
            "PATH": f"{programs}{os.pathsep}{environment['PATH']}",
            **extra,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def fail(
    sandbox: Sandbox, folder: Path, job: str, fault: str, prepare: str = "", **extra: str
) -> subprocess.CompletedProcess[str]:
    process = start(sandbox, folder, job, fault, prepare, **extra)
    out, err = process.communicate(timeout=240)
    return subprocess.CompletedProcess([], process.returncode, out, err)


def jobs_of(sandbox: Sandbox, folder: Path) -> list[str]:
    """The ids of the jobs that were submitted from there, an array's once."""
    shown = sandbox.run(["squeue", "-h", "--states=all", "-o", "%F %Z"]).stdout
    return sorted({line.split()[0] for line in shown.splitlines() if str(folder) in line})


def wait_for(what: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    "fault",
    [
        "lost-after", "banner", "banner-behind", "signal-after", "silent-after", "failed-after",
        "garbage-after", "lost-underway", "refused-after",
    ],
)  # fmt: skip
def test_a_job_that_was_taken_whatever_sbatch_says(
    sandbox: Sandbox, tmp_path: Path, records: Path, fault: str
) -> None:
    done = fail(sandbox, tmp_path, HELD, fault)
    assert done.returncode == 0, done.stderr
    assert [done.stdout] == [f"{job_id}\n" for job_id in jobs_of(sandbox, tmp_path)]
    assert f"job {done.stdout.strip()} was taken: it is PENDING" in done.stderr
    # 50 MB of what sbatch printed are not passed on.
    assert len(done.stderr) < 5000
    # Without it the job would fail at its start.
    assert (tmp_path / "logs").is_dir()
    assert list(records.iterdir()) == []


def test_a_job_that_a_wrapper_submits_in_its_own_way(
    sandbox: Sandbox, tmp_path: Path, records: Path
) -> None:
    """The script's path doesn't go with it; its name does."""
    name = f"alike-{tmp_path.name}"
    done = fail(sandbox, tmp_path, f"job_name: {name}\n{HELD}", "copied")
    shown = sandbox.run(["squeue", "--noheader", f"--name={name}", "--format=%i"]).stdout
    sandbox.run(["scancel", *shown.split()])
    assert len(shown.split()) == 1
    assert done.returncode == 3
    assert done.stdout == ""
    assert "may have been taken" in done.stderr
    assert f"job {shown.strip()} has its name" in done.stderr
    assert "safe to submit again" not in done.stderr


def test_a_job_of_which_slurm_knows_nothing(
    sandbox: Sandbox, tmp_path: Path, records: Path
) -> None:
    done = fail(sandbox, tmp_path, HELD, "lost-before")
    assert done.returncode == 3
    assert done.stdout == ""
    assert "Socket timed out on send/recv operation" in done.stderr
    assert "the job was not taken" in done.stderr
    assert "safe to submit again" in done.stderr
    assert jobs_of(sandbox, tmp_path) == []
    assert list(records.iterdir()) == []


@pytest.mark.parametrize(
    ("job", "state"),
    [
        ("time: 1m\narray: 0-3%1\noutput: log-%a\ncommand: sleep 100\n", "(PENDING|RUNNING)"),
        ("time: 1m\noutput: log\ncommand: 'true'\n", "(PENDING|RUNNING|COMPLETED)"),
        (f"output: log\nscript: |\n{HETEROGENEOUS}", "PENDING"),
    ],
    ids=["array", "short", "heterogeneous"],
)
def test_each_kind_of_job_is_found(sandbox: Sandbox, tmp_path: Path, job: str, state: str) -> None:
    done = fail(sandbox, tmp_path, job, "lost-after")
    assert done.returncode == 0, done.stderr
    job_id = done.stdout.strip()
    sandbox.run(["scancel", job_id])
    assert re.search(f"job {job_id} was taken: it is {state}\n", done.stderr)


def test_a_job_that_ended_before_slurm_was_asked(sandbox: Sandbox, tmp_path: Path) -> None:
    prepare = (
        "import time\nfrom slurmgen.slurm.live import whereabouts\nfind = whereabouts.find\n"
        "def late(*given):\n    time.sleep(4)\n    return find(*given)\n"
        "whereabouts.find = late\n"
    )
    job = "time: 1m\noutput: log\ncommand: 'true'\n"
    done = fail(sandbox, tmp_path, job, "signal-after", prepare)
    assert done.returncode == 0, done.stderr
    assert [done.stdout.strip()] == jobs_of(sandbox, tmp_path)


def test_what_slurm_has_of_the_job_is_as_the_user_wrote_it(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    job = f"comment: my own\nenv: {{A: b}}\n{HELD}"
    done = fail(sandbox, tmp_path, job, "lost-after")
    assert done.returncode == 0, done.stderr
    rendered = subprocess.run(
        [sys.executable, "-m", "slurmgen", "render", "job.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    ).stdout
    kept = sandbox.run(["scontrol", "write", "batch_script", done.stdout.strip(), "-"]).stdout
    # Some versions end it with a line more.
    assert kept.rstrip("\n") == rendered.rstrip("\n")
    shown = sandbox.run(["scontrol", "show", "job", done.stdout.strip()]).stdout
    assert "Comment=my own" in shown
    assert "JobName=job\n" in shown


def test_a_script_without_a_name_is_called_as_from_standard_input(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    job = "output: log\nscript: |\n  #!/bin/bash\n  #SBATCH --hold\n  true\n"
    done = submit(sandbox, tmp_path, job)
    assert done.returncode == 0, done.stderr
    shown = sandbox.run(["scontrol", "show", "job", done.stdout.strip()]).stdout
    assert "JobName=sbatch\n" in shown


def test_a_job_that_may_have_been_taken(sandbox: Sandbox, tmp_path: Path, records: Path) -> None:
    """Slurm can't be asked: the next submission does, and there is one job."""
    silent = "from slurmgen.slurm.live import handover\nhandover.ASKING = 1\n"
    squeue = tmp_path / "bin" / "squeue"
    squeue.parent.mkdir()
    squeue.write_text("#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact' >&2\nexit 1\n")
    squeue.chmod(0o755)
    done = fail(sandbox, tmp_path, HELD, "lost-after", silent)
    assert done.returncode == 3
    assert done.stdout == ""
    assert "may have been taken" in done.stderr
    assert "safe to submit" not in done.stderr
    assert (tmp_path / "logs").is_dir()
    command = re.search("look with `(.*?)`", done.stderr)
    assert command is not None

    squeue.unlink()
    (job_id,) = jobs_of(sandbox, tmp_path)
    assert job_id in sandbox.run(["bash", "-c", command[1]]).stdout
    again = fail(sandbox, tmp_path, HELD, "")
    assert (again.returncode, again.stdout) == (0, f"{job_id}\n"), again.stderr
    assert f"it was taken as job {job_id}, which is PENDING; nothing was submitted" in again.stderr
    more = fail(sandbox, tmp_path, HELD, "")
    assert sorted([job_id, more.stdout.strip()]) == jobs_of(sandbox, tmp_path)
    assert list(records.iterdir()) == []


def killed(sandbox: Sandbox, folder: Path, job: str = HELD, **extra: str) -> str:
    """slurmgen is killed when its job has been taken, and before it knows; the job's id."""
    process = start(sandbox, folder, job, "hang-after", **extra)
    wait_for((folder / "sbatch.pid").exists)
    process.kill()
    out, _ = process.communicate(timeout=60)
    assert out == ""
    (job_id,) = jobs_of(sandbox, folder)
    return job_id


def end_its_sbatch(folder: Path) -> None:
    os.killpg(int((folder / "sbatch.pid").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("runs", [True, False], ids=["sbatch-runs", "sbatch-ended"])
def test_the_next_submission_knows_of_one_that_was_killed(
    sandbox: Sandbox, tmp_path: Path, runs: bool
) -> None:
    job_id = killed(sandbox, tmp_path)
    try:
        if not runs:
            end_its_sbatch(tmp_path)
        done = fail(sandbox, tmp_path, HELD, "")
    finally:
        if runs:
            end_its_sbatch(tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{job_id}\n"), done.stderr
    assert jobs_of(sandbox, tmp_path) == [job_id]
    assert "submit once more for a second job" in done.stderr


def test_one_that_was_killed_and_cancelled_is_submitted_again(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    job_id = killed(sandbox, tmp_path)
    end_its_sbatch(tmp_path)
    sandbox.run(["scancel", job_id])
    done = fail(sandbox, tmp_path, HELD, "")
    assert done.returncode == 0, done.stderr
    assert f"job {job_id}, which is CANCELLED" in done.stderr
    assert sorted([job_id, done.stdout.strip()]) == jobs_of(sandbox, tmp_path)


def test_one_that_was_killed_before_slurm_had_it(sandbox: Sandbox, tmp_path: Path) -> None:
    process = start(sandbox, tmp_path, HELD, "hang-before")
    wait_for((tmp_path / "sbatch.pid").exists)
    process.kill()
    process.communicate(timeout=60)
    end_its_sbatch(tmp_path)
    done = fail(sandbox, tmp_path, HELD, "")
    assert done.returncode == 0, done.stderr
    assert "Slurm knows of no job of it" in done.stderr
    assert [done.stdout.strip()] == jobs_of(sandbox, tmp_path)


def test_another_job_is_not_taken_for_the_one_that_was_killed(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    job_id = killed(sandbox, tmp_path, LR="0.1")
    end_its_sbatch(tmp_path)
    other = fail(sandbox, tmp_path, HELD.replace("1m", "2m"), "", LR="0.1")
    assert other.returncode == 0, other.stderr
    assert other.stdout.strip() != job_id
    assert "submission of this job" not in other.stderr
    # The same script, which may read the variable.
    told = fail(sandbox, tmp_path, HELD, "", LR="0.2")
    assert (told.returncode, told.stdout) == (3, "")
    assert f"job {job_id}" in told.stderr
    assert "other environment variables" in told.stderr
    done = fail(sandbox, tmp_path, HELD, "", LR="0.2")
    assert done.returncode == 0
    assert len(jobs_of(sandbox, tmp_path)) == 3


def test_two_at_once(sandbox: Sandbox, tmp_path: Path) -> None:
    both = [start(sandbox, tmp_path, HELD, "") for _ in range(2)]
    said = [process.communicate(timeout=120) for process in both]
    assert sorted(out.strip() for out, _ in said) == jobs_of(sandbox, tmp_path)
    assert len(jobs_of(sandbox, tmp_path)) == 2
    assert not any("submission of this job" in err for _, err in said)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_waits_for_what_sbatch_says(
    sandbox: Sandbox, tmp_path: Path, number: signal.Signals
) -> None:
    process = start(sandbox, tmp_path, HELD, "slow")
    wait_for((tmp_path / "sbatch.pid").exists)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == (130 if number == signal.SIGINT else -number), err
    assert [out.strip()] == jobs_of(sandbox, tmp_path)
    assert "waiting up to 20 s" in err
    assert f"`scancel {out.strip()}` ends it" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("grace", [1, 1000], ids=["over", "ended"])
def test_an_interruption_while_sbatch_hangs(sandbox: Sandbox, tmp_path: Path, grace: int) -> None:
    hurry = f"from slurmgen.slurm.live import handover\nhandover.GRACE = {grace}\n"
    process = start(sandbox, tmp_path, HELD, "hang-before", hurry)
    wait_for((tmp_path / "sbatch.pid").exists)
    process.send_signal(signal.SIGINT)
    if grace == 1000:
        assert process.stderr is not None
        assert "waiting up to 1000 s" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert "may have been taken" in err
    assert "look with `squeue" in err
    with pytest.raises(ProcessLookupError):
        end_its_sbatch(tmp_path)


@pytest.mark.parametrize("where", ["> /dev/full", ">&-", "| true"])
def test_the_id_is_told_where_stdout_cannot_take_it(
    sandbox: Sandbox, tmp_path: Path, records: Path, where: str
) -> None:
    (tmp_path / "job.yaml").write_text(HELD)
    # The reader is gone before anything is written.
    program = (
        f"{{ sleep 0.5; {sys.executable} -m slurmgen submit job.yaml; echo $? > status; }} {where}"
    )
    done = subprocess.run(
        ["bash", "-c", program],
        cwd=tmp_path,
        env={**sandbox.environment(), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    wait_for((tmp_path / "status").exists)
    assert (tmp_path / "status").read_text() == "3\n"
    (job_id,) = jobs_of(sandbox, tmp_path)
    assert f"the job was submitted: {job_id}\n" in done.stderr
    assert list(records.iterdir()) == []


def test_an_id_that_nobody_could_be_told_is_told_by_the_next(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(HELD)
    program = f"{sys.executable} -m slurmgen submit job.yaml >&- 2>&-"
    environment = {**sandbox.environment(), "PYTHONPATH": str(ROOT)}
    lost = subprocess.run(["bash", "-c", program], cwd=tmp_path, env=environment, timeout=120)
    assert lost.returncode == 3
    (job_id,) = jobs_of(sandbox, tmp_path)
    assert submit(sandbox, tmp_path, HELD).stdout == f"{job_id}\n"
    assert jobs_of(sandbox, tmp_path) == [job_id]


@pytest.mark.parametrize("temporary", ["tmp", "taken"])
def test_a_home_that_takes_no_record(sandbox: Sandbox, tmp_path: Path, temporary: str) -> None:
    folder = tmp_path / temporary
    folder.mkdir()
    if temporary == "taken":
        # Somebody else's, as far as one can tell.
        (folder / f"slurmgen-{os.getuid()}").mkdir(mode=0o777)
        (folder / f"slurmgen-{os.getuid()}").chmod(0o777)
    done = fail(
        sandbox, tmp_path, HELD, "lost-after", XDG_STATE_HOME="/proc/none", TMPDIR=str(folder)
    )
    assert done.returncode == 0, done.stderr
    assert [done.stdout.strip()] == jobs_of(sandbox, tmp_path)
    assert [list(path.iterdir()) for path in folder.iterdir()] == [[]]


def test_from_python_it_is_an_exception_of_its_own(sandbox: Sandbox, tmp_path: Path) -> None:
    prepare = (
        "from slurmgen import submit\nfrom slurmgen.errors import JobRefused, NotSubmitted\n"
        "def main():\n"
        "    try:\n        submit('job.yaml')\n"
        "    except NotSubmitted as error:\n        print(type(error).__name__)\n"
    )
    assert fail(sandbox, tmp_path, HELD, "lost-before", prepare).stdout == "NotSubmitted\n"
    assert fail(sandbox, tmp_path, HELD, "refused", prepare).stdout == "JobRefused\n"
    done = fail(sandbox, tmp_path, HELD, "lost-after", prepare)
    assert len(jobs_of(sandbox, tmp_path)) == 1, done.stderr


def test_wait_outlives_a_controller_that_is_away(tmp_path: Path) -> None:
    shape = Shape(nodes=1, gpus_per_node=0, extra_conf=("MessageTimeout=3",))
    # Not before it is told to: else it may have ended before the controller is away.
    command = "until [ -e go ]; do sleep 0.2; done; exit 4"
    (tmp_path / "job.yaml").write_text(f"time: 5m\noutput: log\ncommand: {command}\n")
    with Sandbox.up(name="away", shape=shape, directory=tmp_path / "root") as sandbox:
        controller = int((sandbox.folder.path / "slurmctld.pid").read_text())
        process = subprocess.Popen(
            [sys.executable, "-m", "slurmgen", "submit", "--wait", "job.yaml"],
            cwd=tmp_path,
            env={**sandbox.environment(), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        os.kill(controller, signal.SIGSTOP)
        try:
            said = ""
            while "asking again" not in said:
                line = process.stderr.readline()
                assert line, said
                said += line
        finally:
            os.kill(controller, signal.SIGCONT)
        (tmp_path / "go").touch()
        _, rest = process.communicate(timeout=240)
    assert process.returncode == 4, said + rest
    assert "Slurm answers again" in rest


def test_one_that_the_controller_may_have_forgotten_stops_the_next_once(tmp_path: Path) -> None:
    shape = Shape(nodes=1, gpus_per_node=0, extra_conf=("MinJobAge=2", "MessageTimeout=5"))
    job = "time: 1m\noutput: log\ncommand: 'true'\n"
    with Sandbox.up(name="forgot", shape=shape, directory=tmp_path / "root") as sandbox:
        process = start(sandbox, tmp_path, job, "hang-after")
        wait_for((tmp_path / "sbatch.pid").exists)
        process.kill()
        process.communicate(timeout=60)
        end_its_sbatch(tmp_path)
        wait_for(lambda: jobs_of(sandbox, tmp_path) == [])
        told = fail(sandbox, tmp_path, job, "")
        assert (told.returncode, told.stdout) == (3, "")
        assert "it forgets those that ended more than 2 s ago" in told.stderr
        assert "if it didn't run, submit it again" in told.stderr
        assert fail(sandbox, tmp_path, job, "").returncode == 0


def test_accounting_knows_a_job_that_the_controller_has_forgotten(tmp_path: Path) -> None:
    skip_without_accounting()
    shape = Shape(nodes=1, gpus_per_node=0, extra_conf=("MinJobAge=2", "MessageTimeout=10"))
    with Sandbox.up(
        name="accounts", shape=shape, directory=tmp_path / "root", accounting=True
    ) as sandbox:
        config = sandbox.run(["scontrol", "show", "config"]).stdout
        name = re.search(r"^ClusterName\s+= (\S+)", config, re.MULTILINE)
        assert name is not None
        late = (
            "import subprocess, time\nfrom slurmgen.slurm.live import whereabouts\n"
            "find = whereabouts.find\n"
            "def forgotten(*given):\n"
            "    ask = ['squeue', '-h', '--states=all']\n"
            "    while subprocess.run(ask, capture_output=True).stdout:\n"
            "        time.sleep(1)\n"
            "    return find(*given)\n"
            "whereabouts.find = forgotten\n"
        )
        job = "time: 1m\noutput: log\ncommand: 'true'\n"
        done = fail(sandbox, tmp_path, job, "signal-after", late)
        if sandbox.version < "21.08":
            assert done.returncode == 3
            assert "it forgets those that ended more than 2 s ago" in done.stderr
        else:
            assert done.returncode == 0, done.stderr
            assert f"job {done.stdout.strip()} was taken: it is COMPLETED" in done.stderr
