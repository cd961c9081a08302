"""What the pages say of Slurm itself, each on a real one.

All jobs of `SCRIPTS` are submitted at once, and looked at when they have ended. Which sentence is
shown by which test stands in tests/docs/claims.py.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.sandbox import Sandbox, Shape, configuration, faults
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.slurm, pytest.mark.matrix]

SHAPE = Shape(
    gpus_per_node=4,
    cpus_per_node=16,
    memory_mb=65_536,
    extra_conf=(
        "DefMemPerCPU=100",
        "MpiParams=ports=20000-20999",
        # After this time srun says that it waits; two minutes by default, and one at least.
        "SlurmctldTimeout=60",
        # Finds what has outlived its parent, as the cgroups of a cluster do.
        "ProctrackType=proctrack/pgid",
    ),
)
ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL")

# ID_OF_NAME is the id of the job NAME, which was submitted before.
SCRIPTS = {
    "variables": """
        #SBATCH --nodes=2 --ntasks-per-node=4 --cpus-per-task=2 --gpus-per-node=a100:2
        env > batch
        srun --cpus-per-task=2 bash -c 'env > task-$SLURM_PROCID'
        """,
    "nothing asked": """
        #SBATCH --ntasks=1
        env > batch
        """,
    "cpus": """
        #SBATCH --nodes=1 --ntasks=2 --cpus-per-task=3
        step='test $SLURM_PROCID != 0 || scontrol -o show step $SLURM_JOB_ID.$SLURM_STEP_ID'
        srun --exact bash -c "$step"
        srun --exact --cpus-per-task=3 bash -c "$step"
        srun bash -c 'echo "told $SLURM_CPUS_PER_TASK"'
        """,
    "ends early": """
        #SBATCH --nodes=1 --ntasks=2
        task='test $SLURM_PROCID = 0 || sleep 4; echo "$0 $SLURM_PROCID"'
        export SLURM_WAIT=1
        srun bash -c "$task" bounded
        srun --wait=0 bash -c "$task" unbounded
        """,
    "fails": """
        #SBATCH --nodes=1 --ntasks=2
        task='test $SLURM_PROCID != 0 || exit 7; sleep 2; echo "$0 lives"'
        srun bash -c "$task" alone
        srun --kill-on-bad-exit=1 bash -c "$task" together
        """,
    "commas": """
        #SBATCH --ntasks=1 --export=ALL,LIST=1,2
        echo "LIST=$LIST"
        """,
    "export none": """
        #SBATCH --ntasks=1 --export=NONE
        echo "$SLURM_EXPORT_ENV"
        srun bash -c true
        echo "status $?"
        """,
    "a gpu for each": """
        #SBATCH --nodes=1 --ntasks=4 --gpus-per-task=1
        srun bash -c 'echo "$CUDA_VISIBLE_DEVICES"'
        """,
    "gpus by hand": """
        #SBATCH --nodes=1 --ntasks=1 --gres=gpu:1
        export CUDA_VISIBLE_DEVICES=7
        echo "batch $CUDA_VISIBLE_DEVICES"
        srun bash -c 'echo "step $CUDA_VISIBLE_DEVICES"'
        """,
    "fewer gpus": """
        #SBATCH --nodes=1 --ntasks=4 --gres=gpu:2
        srun bash -c 'echo "$SLURM_LOCALID $CUDA_VISIBLE_DEVICES"'
        """,
    "one log": """
        #SBATCH --array=0-2%1 --output=log
        echo "$SLURM_ARRAY_TASK_ID"
        """,
    "no array": """
        #SBATCH --ntasks=1 --output=log-%a
        true
        """,
    "left behind": """
        #SBATCH --ntasks=1
        nohup sleep 300 &
        echo $!
        """,
    "mail": """
        #SBATCH --ntasks=1 --mail-type=END,FIAL
        true
        """,
    "append": """
        #SBATCH --ntasks=1 --open-mode=apend
        echo second
        """,
    "masked": """
        #SBATCH --ntasks=1
        false
        echo finished
        """,
    "after it": """
        #SBATCH --ntasks=1 --dependency=afterok:ID_OF_masked
        echo "goes on"
        """,
    "components": """
        #SBATCH --nodes=1 --ntasks=1 --mem=1G
        #SBATCH hetjob
        #SBATCH --nodes=1 --ntasks=2 --gpus-per-node=2
        srun echo plain
        srun --het-group=0,1 echo all
        """,
    "inherits": """
        #SBATCH --ntasks=1
        echo "$OF_THE_SHELL"
        srun printenv HOSTNAME
        hostname
        """,
    "no folder": """
        #SBATCH --ntasks=1 --output=logs/log
        true
        """,
    "a step in a step": """
        #SBATCH --nodes=1 --ntasks=1 --gpus-per-node=1
        within() { srun bash -c "timeout $1 srun $2 --ntasks=1 true; echo '$2' ended \\$?"; }
        within 80 ""
        within 10 --overlap
        within 10 "--overlap --mem=0"
        """,
    "more nodes than tasks": """
        #SBATCH --nodes=2 --ntasks=1
        true
        """,
    "tasks of both kinds": """
        #SBATCH --nodes=2 --ntasks=4 --ntasks-per-node=4
        srun echo task
        """,
    "side by side": """
        #SBATCH --nodes=1 --ntasks=2 --gres=gpu:2 --mem=2G
        two() {
          one "$@" &
          one "$@" &
          wait
        }
        one() { srun --ntasks=1 --gres=gpu:1 "$@" bash -c 'echo start; sleep 2; echo end'; }
        two > plain
        two --exact > exact
        two --exact --mem=900M > with-memory
        """,
    "gpus of a step": """
        #SBATCH --nodes=1 --ntasks=1 --gpus-per-node=2
        srun --gres=gpu:1 bash -c 'echo "$CUDA_VISIBLE_DEVICES"'
        """,
    "whole array": """
        #SBATCH --array=0-1
        echo "$SLURM_ARRAY_TASK_ID ${SLURM_RESTART_COUNT:-0}" >> runs
        if [ "$SLURM_JOB_ID" = "$SLURM_ARRAY_JOB_ID" ] && [ -z "$SLURM_RESTART_COUNT" ]; then
          until scontrol -o show job "$SLURM_JOB_ID" | grep -q JobState=COMPLETED; do sleep 1; done
          scontrol requeue "$SLURM_JOB_ID"
        fi
        """,
    "spool": """
        #SBATCH --ntasks=1
        echo "$0"
        pwd
        """,
    "name": """
        #SBATCH --ntasks=1 -J=train
        true
        """,
    "log of a name": """
        #SBATCH --ntasks=1 -output=x
        true
        """,
    # Slurm looks at time limits twice a minute, and takes the next look into account.
    "signal to steps": """
        #SBATCH --ntasks=1 --time=2 --signal=USR1@60
        trap 'echo "batch told"' USR1
        date +%s
        srun bash -c 'trap "date +%s; exit" USR1; for i in {1..900}; do sleep 0.1; done' &
        wait
        """,
    "signal to the shell": """
        #SBATCH --ntasks=1 --time=2 --signal=B:USR1@60
        trap 'echo "batch told"' USR1
        srun bash -c 'trap "echo step told" USR1; for i in {1..900}; do sleep 0.1; done' &
        wait
        """,
    "signal in the foreground": """
        #SBATCH --ntasks=1 --time=2 --signal=B:USR1@60
        trap 'echo "told"' USR1
        srun bash -c 'sleep 80; echo "over"'
        """,
    "signal without a trap": """
        #SBATCH --ntasks=1 --time=2 --signal=B:USR1@60
        srun sleep 90
        """,
    "another signal": """
        #SBATCH --ntasks=1 --time=2 --signal=USR2@60
        srun bash -c 'trap "echo saved" USR1; sleep 90'
        """,
    "ports": """
        #SBATCH --nodes=2 --ntasks-per-node=1
        srun --resv-ports=2 bash -c 'echo "$SLURM_STEP_RESV_PORTS"'
        """,
    "last of a time": """
        #SBATCH --ntasks=1 --time=24
        true
        """,
    "exclusive": """
        #SBATCH --nodes=1 --exclusive
        srun bash -c 'echo "gpus ${CUDA_VISIBLE_DEVICES-none}"'
        """,
    "no count": """
        #SBATCH --nodes=1 --exclusive --cpus-per-task=4 --gpus-per-node=1
        srun --cpus-per-task=4 bash -c 'echo "$CUDA_VISIBLE_DEVICES"'
        """,
    "two requests": """
        #SBATCH --ntasks=4 --gres=gpu:2 --gpus-per-task=1
        true
        """,
}


@dataclass
class Job:
    """One of `SCRIPTS`. said: by sbatch. tasks: what scontrol says of each of its tasks."""

    id: str
    folder: Path
    said: str
    tasks: list[dict[str, str]] = field(default_factory=list)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def record(self) -> dict[str, str]:
        (record,) = self.tasks
        return record

    def variables(self, name: str) -> dict[str, str]:
        lines = (self.folder / name).read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Two nodes of 16 CPUs and four pretend GPUs."""
    directory = tmp_path_factory.mktemp("sandbox")
    with Sandbox.up(name="claims", shape=SHAPE, directory=directory) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def jobs(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Job]:
    """All of `SCRIPTS`, ended."""
    root = tmp_path_factory.mktemp("jobs")
    jobs: dict[str, Job] = {}
    for name, text in SCRIPTS.items():
        folder = root / name.replace(" ", "-")
        folder.mkdir()
        if name == "append":
            (folder / "log").write_text("first\n")
        jobs[name] = submit(sandbox, re.sub(r"ID_OF_(\w+)", lambda m: jobs[m[1]].id, text), folder)
    for name, job in jobs.items():
        until(partial(has_ended, sandbox, job), f"the end of {name}")
    return jobs


def submit(sandbox: Sandbox, text: str, folder: Path, *options: str) -> Job:
    script = folder / "job.sbatch"
    body = re.sub("^ {8}", "", text, flags=re.MULTILINE).lstrip("\n")
    script.write_text(f"#!/bin/bash\n#SBATCH --output=log\n{body}")
    done = sandbox.run(
        ["sbatch", "--parsable", *options, script.name],
        cwd=folder,
        extra={"OF_THE_SHELL": "came along", "HOSTNAME": "login"},
    )
    assert done.returncode == 0, done.stderr
    return Job(done.stdout.strip(), folder, done.stderr)


def has_ended(sandbox: Sandbox, job: Job) -> bool:
    shown = sandbox.run(["scontrol", "-o", "show", "job", job.id]).stdout
    job.tasks = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in shown.splitlines() if line]
    return all(task["JobState"] in ENDED for task in job.tasks)


def until(met: Callable[[], object], what: str, seconds: float = PATIENCE_S) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.2)


def release(sandbox: Sandbox) -> tuple[int, ...]:
    return tuple(int(part) for part in sandbox.version.split(".")[:2])


# --- variables -----------------------------------------------------------------------


def test_the_batch_shell_says_that_it_is_rank_0(jobs: dict[str, Job]) -> None:
    batch = jobs["variables"].variables("batch")
    zero = {name: batch[f"SLURM_{name}"] for name in ("PROCID", "LOCALID", "NODEID")}
    assert zero == {"PROCID": "0", "LOCALID": "0", "NODEID": "0"}
    assert batch["SLURM_NTASKS"] == "8"


def test_a_step_says_which_task_it_is(jobs: dict[str, Job]) -> None:
    job = jobs["variables"]
    tasks = [job.variables(f"task-{rank}") for rank in range(8)]
    told = [(t["SLURMD_NODENAME"], t["SLURM_NODEID"], t["SLURM_LOCALID"]) for t in tasks]
    assert told == [(f"n{n + 1}", str(n), str(local)) for n in range(2) for local in range(4)]
    assert not {name for task in tasks for name in task} & {"RANK", "WORLD_SIZE", "LOCAL_RANK"}


def test_variables_that_are_no_number(jobs: dict[str, Job]) -> None:
    batch = jobs["variables"].variables("batch")
    assert batch["SLURM_JOB_NODELIST"] == "n[1-2]"
    assert batch["SLURM_TASKS_PER_NODE"] == "4(x2)"
    assert batch["SLURM_JOB_CPUS_PER_NODE"] == "8(x2)"
    assert batch["SLURM_GPUS_PER_NODE"] == "a100:2"
    assert batch["SLURM_JOB_GPUS"] == "0,1"


def test_variables_of_what_was_not_asked_for(jobs: dict[str, Job]) -> None:
    batch = jobs["nothing asked"].variables("batch")
    assert not {"SLURM_NTASKS_PER_NODE", "SLURM_ARRAY_TASK_ID", "SLURM_CPUS_PER_TASK"} & set(batch)
    assert "SLURM_RESTART_COUNT" not in batch


def test_gpus_are_named_for_every_vendor(jobs: dict[str, Job]) -> None:
    told = jobs["variables"].variables("task-0")
    for name in ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"):
        assert told[name] == "0,1"


def test_the_address_of_srun_is_none_of_the_batch_shell(
    sandbox: Sandbox, jobs: dict[str, Job]
) -> None:
    job = jobs["variables"]
    names = ("SLURM_LAUNCH_NODE_IPADDR", "SLURM_SRUN_COMM_HOST")
    assert not set(names) & set(job.variables("batch"))
    assert set(names) <= set(job.variables("task-0"))
    # From elsewhere, such as a login node: another address than that of the first node.
    told = sandbox.run(["srun", "--nodes=1", "--ntasks=1", "printenv", *names]).stdout.split()
    node = sandbox.run(["scontrol", "-o", "show", "node", "n1"]).stdout
    assert len(told) == 2
    assert node.split("NodeAddr=")[1].split()[0] not in told


def test_the_submitting_shell_s_variables_come_along(jobs: dict[str, Job]) -> None:
    assert jobs["inherits"].log.startswith("came along\n")


def test_a_step_has_the_host_name_of_the_batch_shell(jobs: dict[str, Job]) -> None:
    _, handed, real = jobs["inherits"].log.splitlines()
    assert handed == real


def test_a_list_to_export_ends_at_a_comma(jobs: dict[str, Job]) -> None:
    assert jobs["commas"].log == "LIST=1\n"


def test_a_step_of_a_job_without_environment_has_no_path(jobs: dict[str, Job]) -> None:
    log = jobs["export none"].log
    assert log.startswith("NONE\n")
    assert "execve(): bash: No such file or directory" in log
    assert log.endswith("status 2\n")


# --- steps ---------------------------------------------------------------------------


def test_cpus_of_a_task_are_handed_on_or_not(sandbox: Sandbox, jobs: dict[str, Job]) -> None:
    log = jobs["cpus"].log
    plain, said = re.findall(r"^StepId=.* CPUs=(\d+)", log, re.MULTILINE)
    assert (int(plain), int(said)) == (2 if (22, 5) <= release(sandbox) < (23, 11) else 6, 6)
    assert log.count("told 3\n") == 2


def test_a_task_that_ends_early_ends_no_other(jobs: dict[str, Job]) -> None:
    said = [line for line in jobs["ends early"].log.splitlines() if "bounded" in line[:9]]
    assert sorted(said) == ["bounded 0", "unbounded 0", "unbounded 1"]


def test_a_task_that_fails_ends_the_others_where_that_is_said(jobs: dict[str, Job]) -> None:
    log = jobs["fails"].log
    assert "alone lives" in log
    assert "together lives" not in log


def test_a_step_in_a_step_waits(sandbox: Sandbox, jobs: dict[str, Job]) -> None:
    """Twice where memory is counted by CPU: for them, and for the memory."""
    log = jobs["a step in a step"].log
    said = "step creation temporarily disabled, retrying (Requested nodes are busy)"
    assert said in log
    ended = re.findall(r"^(.*) ended (\d+)$", log, re.MULTILINE)
    is_old = release(sandbox) < (22, 5)
    # On 20.11 it waits for the GPU, too.
    assert [(options, status == "0") for options, status in ended] == [
        *[("", False), ("--overlap", False), ("--overlap --mem=0", not is_old)]
    ]
    assert ("Memory required by task is not available" in log) == (not is_old)


def test_steps_side_by_side(jobs: dict[str, Job]) -> None:
    def order(name: str) -> list[str]:
        return (jobs["side by side"].folder / name).read_text().split()

    assert order("plain") == ["start", "end", "start", "end"]
    assert order("exact") == ["start", "end", "start", "end"]
    assert order("with-memory") == ["start", "start", "end", "end"]


def test_a_plain_srun_starts_one_component(jobs: dict[str, Job]) -> None:
    words = (jobs["components"].folder / "log").read_text().split()
    assert (words.count("plain"), words.count("all")) == (1, 3)


def test_a_step_without_a_count_takes_all_cpus(jobs: dict[str, Job]) -> None:
    assert jobs["no count"].log == "0\n" * 4


def test_ports_are_reserved_for_a_step(jobs: dict[str, Job]) -> None:
    first, second = jobs["ports"].log.split()
    assert first == second
    assert re.fullmatch(r"20\d{3}-20\d{3}", first)


# --- GPUs ----------------------------------------------------------------------------


def test_a_gpu_for_each_task(sandbox: Sandbox, jobs: dict[str, Job]) -> None:
    seen = sorted(jobs["a gpu for each"].log.split())
    assert seen == (["0,1,2,3"] * 4 if release(sandbox) < (21, 8) else ["0", "1", "2", "3"])


def test_a_step_has_its_gpus_whatever_the_batch_shell_says(jobs: dict[str, Job]) -> None:
    batch, step = jobs["gpus by hand"].log.splitlines()
    assert batch == "batch 7"
    assert re.fullmatch("step [0-3]", step)


def test_more_tasks_than_gpus_see_the_same(jobs: dict[str, Job]) -> None:
    told = sorted(line.split() for line in jobs["fewer gpus"].log.splitlines())
    assert [local for local, _ in told] == ["0", "1", "2", "3"]
    assert len({gpus for _, gpus in told}) == 1


def test_a_node_to_oneself_is_without_its_gpus(sandbox: Sandbox, jobs: dict[str, Job]) -> None:
    none = release(sandbox) >= (22, 5)
    assert jobs["exclusive"].log == ("gpus none\n" if none else "gpus 0,1,2,3\n")


def test_fewer_gpus_for_a_step(sandbox: Sandbox, jobs: dict[str, Job]) -> None:
    """srun takes what the job has asked for as an option of its own."""
    log = jobs["gpus of a step"].log
    if release(sandbox) >= (26, 5):
        assert "--gpus-per-node and --gres=gpu are mutually exclusive" in log
    else:
        assert re.fullmatch(r"[0-3]\n", log)


def test_two_ways_to_ask_for_gpus(sandbox: Sandbox, jobs: dict[str, Job]) -> None:
    assert jobs["two requests"].record["NumNodes"] == "2"
    both = ["--gres=gpu:2", "--gpus-per-node=2", "--wrap=true"]
    refused = sandbox.run(["sbatch", "--test-only", *both]).returncode != 0
    assert refused == (release(sandbox) >= (26, 5))


def test_a_sum_of_gpus_is_spread_as_they_are_free(sandbox: Sandbox, tmp_path: Path) -> None:
    """Three are left on one node, and one on the other."""
    for node, gpus in (("n1", 1), ("n2", 3)):
        folder = tmp_path / node
        folder.mkdir()
        submit(sandbox, "sleep 300", folder, f"--nodelist={node}", f"--gres=gpu:{gpus}")
    asked = "--nodes=2 --gpus=4 --ntasks-per-node=2"
    text = "srun bash -c 'echo \"$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES\"'"
    job = submit(sandbox, text, tmp_path, *asked.split())
    until(partial(has_ended, sandbox, job), "the end")
    sandbox.run(["scancel", "--user=root", "--state=RUNNING"])
    seen = {node: len(gpus.split(",")) for node, gpus in map(str.split, job.log.splitlines())}
    assert seen == {"n1": 3, "n2": 1}


def test_tasks_without_nodes_are_put_on_any_number(sandbox: Sandbox, tmp_path: Path) -> None:
    found = []
    for name, busy in (("free", 0), ("busy", 14)):
        for node in ("n1", "n2") if busy else ():
            folder = tmp_path / node
            folder.mkdir()
            submit(sandbox, "sleep 300", folder, f"--nodelist={node}", f"--ntasks={busy}")
        folder = tmp_path / name
        folder.mkdir()
        job = submit(sandbox, "true", folder, "--ntasks=4")
        until(partial(has_ended, sandbox, job), "the end")
        found.append(job.record["NumNodes"])
    sandbox.run(["scancel", "--user=root", "--state=RUNNING"])
    assert found == ["1", "2"]


# --- what sbatch makes of a script ---------------------------------------------------


def test_all_tasks_of_an_array_in_one_log(jobs: dict[str, Job]) -> None:
    """Each empties it when it starts."""
    assert jobs["one log"].log == "2\n"


def test_the_index_of_no_array(jobs: dict[str, Job]) -> None:
    assert (jobs["no array"].folder / "log-4294967294").exists()


def test_what_is_left_in_the_background_is_killed(jobs: dict[str, Job]) -> None:
    job = jobs["left behind"]
    assert job.record["JobState"] == "COMPLETED"
    process = job.log.split()[-1]
    until(lambda: not Path("/proc", process).exists(), "the process to go", 30)


def test_words_that_sbatch_reads_over(jobs: dict[str, Job]) -> None:
    assert jobs["mail"].record["MailType"] == "END"
    assert jobs["append"].log == "first\nsecond\n"
    assert jobs["last of a time"].record["TimeLimit"] == "00:24:00"


def test_an_option_in_the_spelling_of_another(sandbox: Sandbox, jobs: dict[str, Job]) -> None:
    assert jobs["name"].record["JobName"] == "=train"
    assert (jobs["log of a name"].folder / "utput=x").exists()
    unknown = sandbox.run(["sbatch", "--ntasks_per_node=1", "--wrap=true"])
    assert (unknown.returncode, "unrecognized option" in unknown.stderr) == (255, True)


def test_the_last_command_is_the_job_s_state(jobs: dict[str, Job]) -> None:
    assert (jobs["masked"].record["JobState"], jobs["masked"].record["ExitCode"]) == (
        *("COMPLETED", "0:0"),
    )
    assert jobs["after it"].log == "goes on\n"


def test_the_folder_of_a_log_is_made_or_not(sandbox: Sandbox, jobs: dict[str, Job]) -> None:
    job = jobs["no folder"]
    if release(sandbox) >= (23, 2):
        assert job.record["JobState"] == "COMPLETED"
        assert (job.folder / "logs" / "log").exists()
    else:
        assert job.record["JobState"] == "FAILED"
        assert not (job.folder / "logs").exists()


def test_fewer_tasks_than_nodes(jobs: dict[str, Job]) -> None:
    job = jobs["more nodes than tasks"]
    assert "can't run 1 processes on 2 nodes, setting nnodes to 1" in job.said
    assert job.record["NumNodes"] == "1"


def test_a_number_of_tasks_wins_over_that_of_a_node(sandbox: Sandbox, jobs: dict[str, Job]) -> None:
    assert jobs["tasks of both kinds"].log == "task\n" * 4
    more = "--nodes=2 --ntasks=9 --ntasks-per-node=4 --wrap=true".split()
    said = sandbox.run(["sbatch", "--test-only", *more]).stderr
    assert "Requested node configuration is not available" in said


def test_a_script_is_run_from_the_spool(jobs: dict[str, Job]) -> None:
    job = jobs["spool"]
    program, folder = job.log.splitlines()
    assert program.endswith("/slurm_script")
    assert folder == str(job.folder)


@pytest.mark.parametrize(
    "text", ["#!/bin/bash\n" + "# \n" * 1_500_000, "#!/bin/bash\necho \0\n"], ids=["size", "NUL"]
)
def test_a_script_that_sbatch_does_not_take(sandbox: Sandbox, tmp_path: Path, text: str) -> None:
    script = tmp_path / "job.sbatch"
    script.write_text(text)
    assert sandbox.run(["sbatch", "--test-only", str(script)]).returncode != 0


def test_the_last_task_of_an_array_has_the_id_of_all(jobs: dict[str, Job]) -> None:
    runs = (jobs["whole array"].folder / "runs").read_text().splitlines()
    assert sorted(runs) == ["0 0", "0 1", "1 0", "1 1"]


# --- signals -------------------------------------------------------------------------


def test_a_signal_goes_to_the_steps(jobs: dict[str, Job]) -> None:
    log = jobs["signal to steps"].log
    assert "batch told" not in log
    began, told = map(int, re.findall(r"^\d+$", log, re.MULTILINE))
    # At 60 seconds before the end, or as much as a minute before that.
    assert told - began < 65


def test_a_signal_to_the_shell_goes_to_it_alone(jobs: dict[str, Job]) -> None:
    log = jobs["signal to the shell"].log
    assert "batch told" in log
    assert "step told" not in log


def test_a_trap_waits_for_the_command_in_front_of_it(jobs: dict[str, Job]) -> None:
    assert jobs["signal in the foreground"].log.split() == ["over", "told"]


def test_a_shell_without_a_trap_ends_with_the_job(jobs: dict[str, Job]) -> None:
    record = jobs["signal without a trap"].record
    assert (record["JobState"], record["ExitCode"]) == ("FAILED", "0:10")


def test_a_signal_that_a_program_does_not_catch_ends_it(jobs: dict[str, Job]) -> None:
    job = jobs["another signal"]
    assert job.record["JobState"] == "FAILED"
    assert "saved" not in job.log


# --- what takes Slurm's own time -----------------------------------------------------


def test_a_requeued_job_waits_two_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as a credential lives by default; sandboxes shorten it."""
    settings = configuration._settings

    def without_expiry(*arguments: Any, **named: Any) -> dict[str, str]:
        found = settings(*arguments, **named)
        return {**found, "AuthInfo": found["AuthInfo"].partition(",")[0]}

    monkeypatch.setattr(configuration, "_settings", without_expiry)
    shape = Shape(nodes=1, gpus_per_node=0)
    with Sandbox.up(name="patient", shape=shape, directory=tmp_path) as box:
        job = submit(box, "sleep 300", tmp_path)
        until((tmp_path / "log").exists, "the job")
        asked = time.time()
        assert box.run(["scontrol", "requeue", job.id]).returncode == 0
        until(lambda: not has_ended(box, job) and job.record["JobState"] == "PENDING", "its end")
        begin = time.strptime(job.record["EligibleTime"], "%Y-%m-%dT%H:%M:%S")
        assert job.record["Reason"] == "BeginTime"
        assert 110 < time.mktime(begin) - asked < 150


@pytest.mark.skipif(os.geteuid() != 0, reason="networks of nodes take root")
def test_slurm_starts_the_job_of_a_lost_node_again(tmp_path: Path) -> None:
    shape = Shape(gpus_per_node=0, extra_conf=("SlurmdTimeout=5", "MessageTimeout=5"))
    with Sandbox.up(name="lossy", shape=shape, directory=tmp_path, netns=True) as box:
        found = {}
        for option in ("--requeue", "--no-requeue"):
            folder = tmp_path / option
            folder.mkdir()
            found[option] = submit(box, "sleep 300", folder, "--nodelist=n2", option)
        for job in found.values():
            until((job.folder / "log").exists, "the jobs")
        faults.kill(box, "n2")
        until(lambda: has_ended(box, found["--no-requeue"]), "the end of the job on the node")
        assert found["--no-requeue"].record["JobState"] == "NODE_FAIL"
        has_ended(box, found["--requeue"])
        assert found["--requeue"].record["Restarts"] == "1"


def test_how_long_slurm_waits_by_itself(sandbox: Sandbox) -> None:
    """For a node that is silent, in seconds."""
    shown = sandbox.run(["scontrol", "show", "config"]).stdout
    assert re.search(r"^SlurmdTimeout += 300 sec", shown, re.MULTILINE)
