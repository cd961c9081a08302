"""`slurmgen rehearse` on a real Slurm: right jobs pass, faults are named, nothing stays."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import yaml

from tests.slurm.conftest import ROOT
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.slurm

Release: TypeAlias = tuple[int, int]
FIRST, LAST = (0, 0), (99, 0)

JOBS = sorted((ROOT / "configs" / "jobs").glob("*.yaml"))
CASES = ROOT / "tests" / "lint" / "cases"
# What each script of tests/lint/cases does wrong, in the rehearsal's words.
NAMED = {
    "001-set-e-before-directives": "directive-after-command",
    "002-trap-before-directives": "directive-after-command",
    "004-lowercase-sbatch": "directive-not-recognised",
    "005-misspelt-sbatch-keyword": "directive-not-recognised",
    "008-space-after-hash": "directive-not-recognised",
    "010-jobid-var-in-output": "log-literal",
    "012-dependency-var": "sbatch-refused",
    "013-tilde-in-output": "log-literal",
    "016-mem-space-unit": "sbatch-refused",
    "017-directive-continuation": "directive-continuation",
    "018-equals-with-spaces": "sbatch-refused",
    "020-single-dash-long": "sbatch-refused",
    "021-short-option-equals": "sbatch-refused",
    "022-underscore-option": "sbatch-refused",
    "024-tasks-abbreviation": "abbreviated-option",
    "027-time-bare-number": "time-in-minutes",
    "029-mem-without-unit": "mem-unit-missing",
    "030-mem-bad-unit": "sbatch-refused",
    "032-ntasks-per-gpu-and-node": "sbatch-refused",
    "034-duplicate-export": "duplicate-option",
    "035-no-shebang": "sbatch-refused",
    "036-crlf-endings": "sbatch-refused",
    "037-gres-type-count-swapped": "sbatch-refused",
    "038-gres-sinfo-form": "sbatch-refused",
    "045-log-dir-missing": "log-folder-missing",
    "047-array-one-log": "log-shared",
    "049-array-pattern-in-plain-job": "log-misnamed",
    "050-array-id-without-array": "variable-unset",
    "052-no-srun-multi-task": "node-idle",
    "054-torchrun-multinode-no-srun": "rendezvous-unmet",
    "056-torchrun-per-gpu-task": "double-launch",
    "057-megatron-8-tasks-torchrun": "double-launch",
    "060-deepspeed-launcher-per-node": "launcher-ssh",
    "061-deepspeed-no-hostfile": "launcher-ssh",
    "063-torchrun-nnodes-missing": "world-split",
    "065-lightning-tasks-1-gpus-2": "gpu-one-process",
    "069-hf-trainer-plain-python": "gpu-one-process",
    "071-ntasks-not-nodes-times": "gpu-idle",
    "072-ntasks-fewer-than-nodes": "rendezvous-unmet",
    "074-gpus-total-uneven": "gpu-shared",
    "075-more-tasks-than-gpus": "gpu-shared",
    "077-srun-gres-narrows": "gpu-shared",
    "084-bare-srun-fans-out": "gpu-shared",
    "085-hetjob-plain-srun": "node-idle",
    "091-torchrun-inside-gpu-bound-task": "gpu-shared",
    "099-rocr-and-hip": "gpu-masked-twice",
    "101-singularity-no-nv": "container-no-gpu",
    "102-pyxis-export-list": "job-failed",
    "104-export-none-then-srun": "job-failed",
    "105-rank-exported-in-batch": "rank-twice",
    "106-node-rank-arg-early": "node-rank-same",
    "108-rank-in-launcher-string": "node-rank-same",
    "110-master-addr-localhost": "address-local",
    "112-master-addr-hostname-in-task": "address-differs",
    "115-hostname-I-many": "address-wrong",
    "118-launch-node-ipaddr": "rendezvous-unmet",
    "119-random-port-per-task": "port-differs",
    "121-fixed-port-shared-node": "port-fixed",
    "125-port-66660": "launcher-refused",
    "126-port-octal": "number-octal",
    "127-port-ephemeral": "port-given-out",
    "128-world-size-nodes": "world-size-wrong",
    "129-world-size-literal": "world-size-wrong",
    "138-tasks-per-node-not-int": "launcher-refused",
    "142-ntasks-per-node-unset": "world-size-wrong",
    "150-ifname-loopback": "interface-local",
    "152-ifname-is-ip": "interface-wrong",
    "154-conda-activate-plain": "conda-not-initialised",
    "156-nounset-conda": "conda-nounset",
    "157-sh-shebang-bash-syntax": "job-failed",
    "160-script-dir-from-dollar0": "script-folder",
    "162-continuation-trailing-space": "command-torn",
    "163-continuation-commented-arg": "command-torn",
    "164-nested-srun": "step-waits",
    "165-parallel-steps-serial": "steps-serial",
    "167-nohup-background": "left-behind",
    "168-signal-without-srun": "signal-unheard",
    "176-echo-masks-failure": "status-masked",
}
# From which release on, until which, what is found there, and what elsewhere. Where the line is
# not known, it is the first of the four versions of Debian on which it was seen.
OF_A_RELEASE: dict[str, tuple[Release, Release, list[str], list[str]]] = {
    # Then it is taken, and one of the two nodes with it.
    "044-nodelist-more-than-nodes": (FIRST, (24, 11), ["sbatch-refused"], ["gpu-one-process"]),
    "145-cpus-not-inherited": ((22, 5), (23, 11), ["cpus-not-inherited"], []),
    # 20.11 does not set SLURM_GPUS_ON_NODE yet.
    "ok-01-torchrun-2-nodes": (FIRST, (21, 8), ["job-failed"], []),
    # srun of a component that asks for tasks per node alone starts one task, on one node.
    "ok-11-hetjob": ((24, 11), LAST, ["node-idle"], []),
}
# Shown with --real, where the program itself runs.
REAL = {"139-tasks-per-node-int-python": "invalid literal for int() with base 10: '4(x2)'"}
# Shown with --cluster, of which the case says what its nodes are.
OF_A_CLUSTER = {
    "040-gres-type-case": "sbatch-refused",
    "042-cpus-exceed-node": "sbatch-refused",
}
PROGRAM = "it is in what the program does, and a stand-in takes its place; lint reads the program"
GPU = "it shows on GPUs, or on a network between them"
# Why the others are not seen in a run without GPUs.
UNSEEN = {
    "025-open-mode-typo": "Slurm looks at the first letter only, and does what is meant",
    "066-lightning-num-nodes-missing": PROGRAM,
    "068-lightning-torchrun-in-job": PROGRAM,
    "080-gres-and-gpus-per-task": "each task has a GPU; that they are on two nodes is no fault",
    "083-exclusive-is-not-gpus": "the job asks for no GPU, and which nodes have some isn't known",
    "086-gpus-per-task-local-rank": PROGRAM,
    "088-gpu-bind-map-local-rank": PROGRAM,
    "089-lightning-gpus-per-task": PROGRAM,
    "092-nccl-p2p-isolated": GPU,
    "093-hardcoded-cvd": "GPU 0 is the job's here; it may be another job's where nodes are shared",
    "094-hardcoded-cvd-per-task-lost": "srun sets the variable anew: it does no harm",
    "096-no-set-device": PROGRAM,
    "097-cvd-int-parse": PROGRAM,
    "098-mig-ddp": GPU,
    "100-container-host-mask": GPU,
    "117-nodelist-split-comma": PROGRAM,
    "123-port-in-python-constant": PROGRAM,
    "132-world-size-env-missing-accelerate": PROGRAM,
    "133-local-rank-argparse": PROGRAM,
    "134-spawn-rank-local-only": PROGRAM,
    "135-no-distributed-sampler": PROGRAM,
    "147-workers-exceed-cpus": PROGRAM,
    "148-cpu-count-workers": PROGRAM,
    "153-ib-disabled": GPU,
    "172-signal-name-mismatch": PROGRAM,
    "173-requeue-inside-container": PROGRAM,
    "178-inherited-conda-env": "it depends on the shell that the job is submitted from",
}
CLEAN = sorted({path.name for path in CASES.glob("ok-*")} - OF_A_RELEASE.keys())


def start(
    arguments: Sequence[str], cwd: Path, temporary: Path, **more: Any
) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    return subprocess.Popen(
        [sys.executable, "-m", "slurmgen", "rehearse", *arguments],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def rehearse(arguments: Sequence[str], cwd: Path, temporary: Path) -> tuple[int, dict[str, Any]]:
    process = start(["--format", "json", *arguments], cwd, temporary)
    out, err = process.communicate(timeout=180)
    assert out, err
    return process.returncode, json.loads(out)


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """In place of /tmp, so that what is left there is seen."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


def assert_nothing_is_left(temporary: Path) -> None:
    """Neither folder nor process; the guard of a killed rehearsal needs a moment."""
    end = time.monotonic() + PATIENCE_S
    while True:
        left = [*temporary.iterdir(), *processes_of(temporary)]
        if not left:
            return
        assert time.monotonic() < end, left
        time.sleep(0.05)


def processes_of(temporary: Path) -> list[str]:
    """Those that were started in `temporary`, or with its name among their words or variables."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            known = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            where = os.readlink(entry / "cwd")
        except OSError:
            continue
        if os.fsencode(str(temporary)) in known or where.startswith(str(temporary)):
            found.append(f"{entry.name} {known[:100]!r}")
    return found


# Tried on every version of Slurm: what differed between them once, and each of the ways of a job.
ACROSS = ("spawn", "resume", "164-nested-srun", "126-port-octal")


def across(name: str) -> Any:
    return pytest.mark.matrix if any(one in name for one in ACROSS) else ()


@pytest.mark.parametrize(
    "job", [pytest.param(path, marks=across(path.stem), id=path.stem) for path in JOBS]
)
def test_every_example_is_right(job: Path, tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    status, said = rehearse([str(job)], tmp_path, temporary)
    assert (status, said["faults"]) == (0, [])
    assert_nothing_is_left(temporary)
    # Neither logs nor anything else of the job's in the folder that it was rehearsed in.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["examples", "tmp"]
    programs = {rank["argv"][0] for run in said["runs"] for g in run for rank in g["ranks"]}
    assert programs <= {"python", "python3"}
    if job.stem == "resume":
        assert [[group["restart"] for group in run] for run in said["runs"]] == [[0], [1]]
    if job.stem == "sweep":
        tasks = {rank["array_task"] for run in said["runs"] for g in run for rank in g["ranks"]}
        assert tasks == {"0", "1", "2", "3"}


def cases(names: Sequence[str], tmp_path: Path, temporary: Path) -> dict[str, list[str]]:
    """The rules that each was found to break, side by side: a rehearsal mostly waits."""
    running = {}
    for name in names:
        shutil.copytree(CASES / name, tmp_path / name)
        arguments = ["--format", "json", "--limit", "10", "job.sbatch"]
        running[name] = start(arguments, tmp_path / name, temporary)
    found = {}
    for name, process in running.items():
        out, err = process.communicate(timeout=180)
        assert out, err
        found[name] = [fault["rule"] for fault in json.loads(out)["faults"]]
        assert process.returncode == (1 if found[name] else 0)
    assert_nothing_is_left(temporary)
    return found


def fours(names: Sequence[str]) -> list[Any]:
    groups = [names[at : at + 4] for at in range(0, len(names), 4)]
    return [
        pytest.param(group, marks=across(" ".join(group)), id=",".join(name[:5] for name in group))
        for group in groups
    ]


@pytest.mark.parametrize("names", fours(list(NAMED)))
def test_what_is_wrong_is_named(names: Sequence[str], tmp_path: Path, temporary: Path) -> None:
    found = cases(names, tmp_path, temporary)
    assert {name: NAMED[name] for name in names if NAMED[name] not in found[name]} == {}, found


def test_every_script_is_shown_or_not_for_a_reason() -> None:
    names = sorted([*NAMED, *OF_A_RELEASE, *REAL, *OF_A_CLUSTER, *UNSEEN, *CLEAN])
    assert names == sorted(path.name for path in CASES.iterdir())


@pytest.mark.matrix
@pytest.mark.parametrize("name", OF_A_RELEASE)
def test_what_a_release_does_wrong_is_named(name: str, temporary: Path) -> None:
    _, said = rehearse(["job.sbatch"], CASES / name, temporary)
    major, minor = said["slurm"].split(".")[:2]
    since, until, there, elsewhere = OF_A_RELEASE[name]
    expected = there if since <= (int(major), int(minor)) < until else elsewhere
    assert [fault["rule"] for fault in said["faults"]] == expected


@pytest.mark.parametrize("name", OF_A_CLUSTER)
def test_what_a_cluster_does_not_have_is_named(name: str, tmp_path: Path, temporary: Path) -> None:
    facts = yaml.safe_load((CASES / name / "case.yaml").read_text())
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(facts["cluster"]))
    script = str(CASES / name / "job.sbatch")
    status, said = rehearse(["--cluster", "./c.yaml", script], tmp_path, temporary)
    assert status == 1
    assert [fault["rule"] for fault in said["faults"]] == [OF_A_CLUSTER[name]]


TWO_KINDS = """
partitions:
  - {name: gpu, node_types: [a100], max_time: 1d, default: true}
  - {name: big, node_types: [h100], max_time: 4h}
node_types:
  - {name: a100, gpu: a100, gpus_per_node: 4, count: 100, cpus: 64, memory: 512G, features: [ib]}
  - {name: h100, gpu: h100, gpus_per_node: 8, count: 50, cpus: 128, memory: 1T}
"""


@pytest.mark.parametrize(("time_", "found"), [("4h", []), ("5h", ["sbatch-refused"])])
def test_nodes_and_limits_are_those_of_a_cluster(
    time_: str, found: list[str], tmp_path: Path, temporary: Path
) -> None:
    (tmp_path / "two.yaml").write_text(TWO_KINDS)
    (tmp_path / "job.sh").write_text(
        "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=8 --gres=gpu:h100:8\n"
        f"#SBATCH --partition=big --time={time_.replace('h', ':00:00')}\nsrun python train.py\n"
    )
    _, said = rehearse(["--cluster", "./two.yaml", "job.sh"], tmp_path, temporary)
    assert [fault["rule"] for fault in said["faults"]] == found
    assert said["cluster"] == "two"
    assert [kind["count"] for kind in said["nodes"]] == [1, 2]


@pytest.mark.parametrize("name", REAL)
def test_what_a_program_does_wrong_is_shown_where_it_runs(
    name: str, tmp_path: Path, temporary: Path
) -> None:
    folder = tmp_path / name
    shutil.copytree(CASES / name, folder)
    status, said = rehearse(["--real", "job.sbatch"], folder, temporary)
    assert status == 1
    assert REAL[name] in said["faults"][0]["why"]


@pytest.mark.parametrize("names", fours(CLEAN))
def test_what_is_right_passes(names: Sequence[str], tmp_path: Path, temporary: Path) -> None:
    assert cases(names, tmp_path, temporary) == {name: [] for name in names}


ODD = r"""
nodes: 2
gpus_per_node: 2
env:
  PLAIN: " two  words "
  DATA: "${HOME}/x"
  QUOTES: "'\" $$HOME `id`"
  LINES: "a\nb"
command: [/opt/conda/bin/python, train.py, "", "a b", "$HOME", "'", "\n", é]
"""


def test_words_and_variables_arrive_to_the_byte(tmp_path: Path, temporary: Path) -> None:
    """By a path that this machine does not have, too."""
    (tmp_path / "job.yaml").write_text(ODD, encoding="utf-8")
    status, said = rehearse(["job.yaml"], tmp_path, temporary)
    assert (status, said["faults"]) == (0, [])
    argv = [rank["argv"] for rank in said["runs"][0][0]["ranks"]]
    assert argv == [["python", "train.py", "", "a b", "$HOME", "'", "\n", "é"]] * 4


def test_a_fault_stands_at_its_key(tmp_path: Path, temporary: Path) -> None:
    text = "nodes: 2\nenv: {A: b}\ncommand: |\n  export A=c\n  python train.py\n"
    (tmp_path / "job.yaml").write_text(text)
    status, said = rehearse(["job.yaml"], tmp_path, temporary)
    assert status == 1
    assert [(fault["rule"], fault["line"]) for fault in said["faults"]] == [("env-wrong", 2)]


PLACES = {
    "plain": "gpus_per_node: 2\nlauncher: plain\n",
    "array": "array: 0-1\nntasks: 2\n",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_job_that_is_told_to_save_comes_back(place: str, tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "job.yaml").write_text(PLACES[place] + "requeue: {}\nddp: train.py\n")
    status, said = rehearse(["job.yaml"], tmp_path, temporary)
    assert (status, said["faults"]) == (0, [])
    restarts = [(group["job_id"], group["restart"]) for run in said["runs"] for group in run]
    jobs = {job for job, _ in restarts}
    assert sorted(restarts) == sorted((job, restart) for job in jobs for restart in (0, 1))
    assert len(jobs) == (2 if place == "array" else 1)


def test_the_real_program_runs_where_that_is_asked_for(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    (tmp_path / "x.py").write_text(
        "import os\n"
        "assert os.environ['OMP_WAIT_POLICY'] == 'PASSIVE'\n"
        "open('ran-' + os.environ['RANK'], 'w')\n"
    )
    (tmp_path / "job.yaml").write_text("ntasks: 2\ncommand: python x.py\n")
    status, said = rehearse(["--real", "job.yaml"], tmp_path, temporary)
    assert (status, said["faults"]) == (0, [])
    assert sorted(path.name for path in tmp_path.glob("ran-*")) == ["ran-0", "ran-1"]


def test_a_real_program_is_ended_after_a_while(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "job.yaml").write_text("command: [sleep, '600']\n")
    status, said = rehearse(["--real", "--limit", "3", "job.yaml"], tmp_path, temporary)
    assert (status, said["faults"]) == (0, [])
    assert_nothing_is_left(temporary)


def test_two_at_once(tmp_path: Path, temporary: Path) -> None:
    job = str(ROOT / "configs" / "jobs" / "quickstart.yaml")
    running = [start([job], tmp_path, temporary) for _ in range(2)]
    said = [process.communicate(timeout=180)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert_nothing_is_left(temporary)


def test_its_json_is_what_the_page_says(tmp_path: Path, temporary: Path) -> None:
    job = str(ROOT / "configs" / "jobs" / "quickstart.yaml")
    _, said = rehearse([job], tmp_path, temporary)
    page = (ROOT / "docs" / "commands" / "rehearse.md").read_text(encoding="utf-8")
    section = page.partition("\n## JSON\n")[2].partition("\n## ")[0]
    named = {
        name
        for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert named == set(said)
    group = said["runs"][0][0]
    assert set(group) | set(group["ranks"][0]) <= set(re.findall(r"`(\w+)`", section))


def test_a_picture(tmp_path: Path, temporary: Path) -> None:
    job = str(ROOT / "configs" / "jobs" / "quickstart.yaml")
    process = start(["--svg", "-", job], tmp_path, temporary)
    drawn, _ = process.communicate(timeout=180)
    assert process.returncode == 0
    assert re.findall(r">rank (\d)<", drawn) == list("01234567")
    assert "nothing is wrong" in drawn


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGKILL, marks=pytest.mark.matrix), signal.SIGTERM, signal.SIGINT],
)
@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_left_whenever_it_ends(
    number: signal.Signals, seed: int, tmp_path: Path, temporary: Path
) -> None:
    """At any four moments of what takes a few seconds."""
    chance = random.Random(f"{number} {seed}")
    job = str(ROOT / "configs" / "jobs" / "resume.yaml")
    for _ in range(4):
        process = start([job], tmp_path, temporary)
        time.sleep(chance.uniform(0.1, 4.0))
        process.send_signal(number)
        process.communicate(timeout=60)
        assert_nothing_is_left(temporary)
        assert str(temporary) not in Path("/proc/self/mounts").read_text()


SETPRIV = shutil.which("setpriv")
# Not nobody, as whom Slurm 26.05 no longer runs.
STARTERS = {
    "ordinary user": ["--reuid=daemon", "--regid=daemon", "--clear-groups"],
    "root without namespaces": ["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"],
}


@pytest.mark.skipif(os.geteuid() != 0 or not SETPRIV, reason="takes root and setpriv")
@pytest.mark.parametrize("starter", STARTERS)
def test_it_works_for(starter: str) -> None:
    assert SETPRIV
    # tmp_path is closed to other users.
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as scratch:
        os.chmod(scratch, 0o755)
        home, site = Path(scratch, "home"), Path(scratch, "site")
        shutil.copytree(ROOT / "slurmgen", site / "slurmgen")
        for folder in ("templates", "configs"):
            shutil.copytree(ROOT / folder, site / "slurmgen" / folder)
        for name in PACKAGES:
            found = importlib.util.find_spec(name)
            assert found is not None
            assert found.origin is not None
            if found.submodule_search_locations:
                shutil.copytree(Path(found.origin).parent, site / name)
            else:
                shutil.copy(found.origin, site)
        (home / "tmp").mkdir(parents=True)
        shutil.copy(ROOT / "configs" / "jobs" / "resume.yaml", home)
        become = [SETPRIV, *STARTERS[starter], "sh", "-c", 'exec "$@"', "sh"]
        python = python_for_anybody(become)
        if starter == "ordinary user":
            for path in (home, home / "tmp"):
                shutil.chown(path, "daemon", "daemon")
        done = subprocess.run(
            [*become, python, "-m", "slurmgen", "rehearse", "resume.yaml"],
            cwd=home,
            env={
                **os.environ,
                "HOME": str(home),
                "PYTHONPATH": str(site),
                "TMPDIR": str(home / "tmp"),
            },
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "came back once" in re.sub(" +", " ", done.stdout)
        assert_nothing_is_left(home / "tmp")


# What the command imports, and what that imports.
PACKAGES = (
    "annotated_doc annotated_types click jinja2 markdown_it markupsafe mdurl pydantic "
    "pydantic_core pygments rich shellingham tree_sitter tree_sitter_bash typer "
    "typing_extensions typing_inspection yaml"
).split()


def python_for_anybody(become: list[str]) -> str:
    """One of this very version, since some of the packages are compiled for it."""
    check = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        if subprocess.run([*become, python, "-c", check], capture_output=True).returncode == 0:
            return python
    pytest.skip("no Python of this version that every user may run")
