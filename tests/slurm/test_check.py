"""slurmgen cluster detect, diff and check against a real Slurm, and without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from slurmgen.sandbox import Sandbox, Shape
from slurmgen.sandbox.shape import NodeGroup, PartitionShape
from tests.slurm.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slurm

SHAPE = Shape(
    groups=(
        NodeGroup(nodes=2, gpus_per_node=4, gpu_type="a100", cpus_per_node=64, features=("ib",)),
        NodeGroup(nodes=1, gpus_per_node=0, cpus_per_node=32, memory_mb=64_000),
    ),
    partitions=(
        PartitionShape("gpu", groups=(0,), max_minutes=60, max_nodes=1),
        PartitionShape("long", groups=(0,), max_minutes=600),
        PartitionShape("cpu", groups=(1,), max_minutes=600),
    ),
    extra_conf=("MaxArraySize=11", "EnforcePartLimits=ALL"),
)
JOB = "time: 30m\ngpus_per_node: a100:4\ncpus_per_task: 8\noutput: log\ncommand: 'true'\n"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    directory = tmp_path_factory.mktemp("sandbox")
    with Sandbox.up(name="check", shape=SHAPE, directory=directory) as sandbox:
        yield sandbox


def slurmgen(
    environment: dict[str, str], folder: Path, *arguments: str, job: str = JOB
) -> subprocess.CompletedProcess[str]:
    (folder / "job.yaml").write_text(job)
    return subprocess.run(
        [sys.executable, "-m", "slurmgen", *arguments],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_detect_keep_and_diff(sandbox: Sandbox, tmp_path: Path) -> None:
    environment = sandbox.environment()
    done = slurmgen(environment, tmp_path, "cluster", "detect")
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "clusters").mkdir()
    kept = tmp_path / "clusters" / "sandbox.yaml"
    kept.write_text(done.stdout)
    shown = slurmgen(environment, tmp_path, "cluster", "show", "sandbox")
    assert shown.returncode == 0, shown.stderr
    assert "a100: 4" in shown.stdout.replace("\n", " ")
    done = slurmgen(environment, tmp_path, "cluster", "diff", "sandbox")
    assert (done.returncode, done.stdout) == (0, "")
    kept.write_text(kept.read_text().replace("max_time: 01:00:00", "max_time: 02:00:00"))
    done = slurmgen(environment, tmp_path, "cluster", "diff", "sandbox")
    assert done.returncode == 1
    assert done.stdout == (
        "partition gpu, time limit: 01:00:00 on the cluster, 02:00:00 in the profile\n"
    )
    data = json.loads(
        slurmgen(environment, tmp_path, "cluster", "detect", "--format", "json").stdout
    )
    assert [kind["name"] for kind in data["node_types"]] == ["a100", "cpu"]
    assert sandbox.version.startswith(f"{data['slurm']}.")


def test_a_detected_profile_makes_jobs_that_run(sandbox: Sandbox, tmp_path: Path) -> None:
    environment = sandbox.environment()
    (tmp_path / "clusters").mkdir()
    detected = slurmgen(environment, tmp_path, "cluster", "detect").stdout
    (tmp_path / "clusters" / "sandbox.yaml").write_text(detected)
    job = JOB.replace("time: 30m", "time: 2h\npartition: auto")
    done = slurmgen(environment, tmp_path, "check", "job.yaml", "-c", "sandbox", job=job)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "partition: auto is long" in done.stderr
    # Slurm's own estimate.
    assert "in partition long" in done.stderr
    assert "nothing is wrong with it" in done.stderr


def test_a_job_that_fits_and_an_estimate(sandbox: Sandbox, tmp_path: Path) -> None:
    done = slurmgen(sandbox.environment(), tmp_path, "check", "job.yaml")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert " to start at " in done.stderr


def test_findings_with_their_places(sandbox: Sandbox, tmp_path: Path) -> None:
    job = JOB.replace("30m", "2h").replace("cpus_per_task: 8", "cpus_per_task: 17")
    done = slurmgen(sandbox.environment(), tmp_path, "check", "job.yaml", job=job)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert (
        "job.yaml:1:7: error: time 02:00:00 is over the 01:00:00 of partition gpu "
        "[live-cluster SG005]"
    ) in lines
    assert "  = fix: write time: 01:00:00, or partition: long" in lines
    assert (
        "job.yaml:3:16: error: 68 CPUs per node (4 tasks x 17), and a100 nodes have 64 for jobs "
        "[live-cluster SG005]"
    ) in lines


@pytest.mark.parametrize("format_", ["json", "github", "sarif"])
def test_formats(sandbox: Sandbox, tmp_path: Path, format_: str) -> None:
    job = f"array: 0-99\n{JOB}"
    arguments = ("check", "job.yaml", "--format", format_)
    done = slurmgen(sandbox.environment(), tmp_path, *arguments, job=job)
    assert done.returncode == 1
    if format_ == "json":
        (found,) = [d for d in json.loads(done.stdout) if d["code"] == "SG005"]
        assert (found["line"], found["column"]) == (1, 8)
        assert found["message"] == "index 99, and sandbox allows at most 10"
    elif format_ == "github":
        assert "::error file=job.yaml,line=1" in done.stdout
    else:
        results = json.loads(done.stdout)["runs"][0]["results"]
        assert [r["ruleId"] for r in results if "index 99" in r["message"]["text"]] == ["SG005"]


def test_what_only_slurm_knows(sandbox: Sandbox, tmp_path: Path) -> None:
    job = f"{JOB}sbatch: {{clusters: nowhere}}\n"
    done = slurmgen(sandbox.environment(), tmp_path, "check", "job.yaml", job=job)
    assert done.returncode == 1
    assert "[refused-by-slurm SG006]" in done.stdout


def test_a_partition_that_is_down(sandbox: Sandbox, tmp_path: Path) -> None:
    update = ["scontrol", "update", "PartitionName=gpu"]
    sandbox.run([*update, "State=DOWN"])
    try:
        done = slurmgen(sandbox.environment(), tmp_path, "check", "job.yaml")
    finally:
        sandbox.run([*update, "State=UP"])
    assert done.returncode == 1
    assert "partition gpu is DOWN [live-cluster-doubt SG007]" in done.stdout


def test_gpus_left_to_nobody(sandbox: Sandbox, tmp_path: Path) -> None:
    job = JOB.replace("a100:4", "a100:1").replace("cpus_per_task: 8", "cpus_per_task: 60")
    done = slurmgen(sandbox.environment(), tmp_path, "check", "job.yaml", job=job)
    assert done.returncode == 1
    assert "60 of a node's 64 CPUs for 1 of 4 GPUs leaves 3 of the other 3" in done.stdout


SCRIPT = """\
#!/bin/bash
#SBATCH --gres=gpu:a100:4
#SBATCH --ntasks-per-node=4
#SBATCH --time=30
#SBATCH --job-name=mine
srun python train.py
"""


def check_script(
    environment: dict[str, str], folder: Path, script: str, *more: str
) -> subprocess.CompletedProcess[str]:
    (folder / "mine.sbatch").write_text(script)
    return slurmgen(environment, folder, "check", "mine.sbatch", *more)


def test_a_script_of_ones_own(sandbox: Sandbox, tmp_path: Path) -> None:
    done = check_script(sandbox.environment(), tmp_path, SCRIPT.replace("=30\n", "=0:30:00\n"))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    # Slurm's own estimate.
    assert " to start at " in done.stderr
    assert "nothing is wrong with it" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "place", "said", "fix"),
    [
        (
            "--time=30",
            "--time=2:00:00",
            "4:16",
            "--time=02:00:00 is over the 01:00:00 of partition gpu",
            "write --time=01:00:00, or partition: long",
        ),
        (
            "a100:4",
            "a100:8",
            "2:16",
            "8 GPUs per node, and a100 nodes have 4",
            "write --gres=gpu:a100:4 and more nodes",
        ),
        (
            "job-name=mine",
            "partition=cpu",
            "2:16",
            'partition cpu has no GPU of type "a100"',
            "remove --gres, or choose another partition",
        ),
        (
            "job-name=mine",
            "array=0-50",
            "5:17",
            "index 50, and sandbox allows at most 10",
            "use smaller indices, several arrays, or several runs in each task",
        ),
        (
            "job-name=mine",
            "constraint=fast",
            "5:22",
            'no node of sandbox has the feature "fast"',
            "",
        ),
    ],
)
def test_what_is_wrong_with_a_script(
    sandbox: Sandbox, tmp_path: Path, old: str, new: str, place: str, said: str, fix: str
) -> None:
    script = SCRIPT.replace(old, new)
    done = check_script(sandbox.environment(), tmp_path, script, "--format", "json")
    assert done.returncode == 1, done.stderr
    found = [d for d in json.loads(done.stdout) if d["code"] == "SG005"]
    assert [d["message"] for d in found] == [said]
    assert f"{found[0]['line']}:{found[0]['column']}" == place
    assert fix in found[0]["fix"]


def test_a_script_that_only_slurm_refuses(sandbox: Sandbox, tmp_path: Path) -> None:
    script = SCRIPT.replace("job-name=mine", "clusters=nowhere")
    done = check_script(sandbox.environment(), tmp_path, script)
    assert done.returncode == 1
    assert "mine.sbatch:1:1: error: Slurm refuses the job" in done.stdout


def test_a_script_whose_size_is_not_known(sandbox: Sandbox, tmp_path: Path) -> None:
    script = SCRIPT.replace("--gres=gpu:a100:4", "--gpus=8").replace("4\n", "4\n#SBATCH -N1-2\n", 1)
    done = check_script(sandbox.environment(), tmp_path, script)
    assert "its directives do not tell how many nodes and GPUs it gets" in done.stderr
    assert "SG005" not in done.stdout


def test_slurm_cannot_be_reached(tmp_path: Path) -> None:
    """The offline part is reported all the same."""
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=gone\nSlurmctldHost=localhost\nSlurmctldPort=9\n")
    environment = {**os.environ, "SLURM_CONF": str(conf)}
    job = JOB.replace("command: 'true'", "command: [srun, python, train.py]")
    done = slurmgen(environment, tmp_path, "check", "job.yaml", job=job)
    assert done.returncode == 3
    assert "[nested-srun-no-overlap SG" in done.stdout
    assert "scontrol show config failed" in done.stderr
    assert "the cluster was not asked" in done.stderr
    for arguments in (["cluster", "detect"], ["cluster", "diff", "lumi"]):
        assert slurmgen(environment, tmp_path, *arguments).returncode == 3


def test_without_slurms_programs(tmp_path: Path) -> None:
    done = slurmgen({**os.environ, "PATH": "/nowhere"}, tmp_path, "check", "job.yaml")
    assert done.returncode == 3
    assert "scontrol is not on PATH" in done.stderr
    assert "Traceback" not in done.stderr


def test_mistakes(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": "/nowhere"}
    done = slurmgen(environment, tmp_path, "check", "job.yaml", "-c", "lumo")
    assert done.returncode == 2
    assert "did you mean lumi?" in done.stderr
    done = slurmgen(environment, tmp_path, "check", "job.yaml", "-c", "lumi")
    assert done.returncode == 2
    assert 'lumi has no GPU of type "a100"' in done.stdout
    (tmp_path / "bad.yaml").write_text("partitions:\n  - {name: gpu, max_time: 1h30}\n")
    done = slurmgen(environment, tmp_path, "check", "job.yaml", "-c", "./bad.yaml")
    assert done.returncode == 2
    assert "bad.yaml:2:" in done.stdout + done.stderr
    done = slurmgen(environment, tmp_path, "check", "job.yaml", "--format", "xml")
    assert done.returncode == 2
