"""slurmgen cluster, and what submit says of the machine on which it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What the machine that runs the tests may say of itself.
SIGNS = ("CC_CLUSTER", "NREL_CLUSTER", "SYSTEMNAME", "IDRPROJ")


def slurmgen(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in SIGNS}
    return subprocess.run(
        [sys.executable, "-m", "slurmgen", *arguments],
        cwd=folder,
        env={**kept, "XDG_CONFIG_HOME": str(folder), "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_list_to_choose_from(tmp_path: Path) -> None:
    (tmp_path / "clusters").mkdir()
    (tmp_path / "clusters" / "lab.yaml").write_text("site: our lab\nverified: false\n")
    done = slurmgen(tmp_path, "cluster", "list", CC_CLUSTER="fir")
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].split() == "NAME SITE GPUS OF A NODE STATUS VERIFIED".split()
    by_name = {line.split()[0]: line for line in lines[1:]}
    assert len(by_name) == len(lines) - 1 > 60
    assert "<- you are here" in by_name["fir"]
    assert sum("<- you are here" in line for line in lines) == 1
    assert by_name["lab"].split() == ["lab", "our", "lab", "?", "in", "service", "no"]
    assert "8 mi250x" in by_name["frontier"]
    assert "closed since 2026-08-31" in by_name["mahti"]
    assert "ending on 2026-12-31" in by_name["dardel"]


def test_a_wrong_profile_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "clusters").mkdir()
    wrong = "detect: {hosts: ['*']}\npartitons: []\n"
    (tmp_path / "clusters" / "lab.yaml").write_text(wrong)
    done = slurmgen(tmp_path, "cluster", "list")
    assert done.returncode == 2
    assert 'lab.yaml:2:1: error: unknown key "partitons"' in done.stderr
    assert "frontier" in done.stdout


def test_the_list_for_programs(tmp_path: Path) -> None:
    rows = json.loads(slurmgen(tmp_path, "cluster", "list", "--format", "json").stdout)
    by_name = {row["name"]: row for row in rows}
    assert by_name["lumi"] == {
        "name": "lumi",
        "title": "LUMI-G",
        "site": "CSC / LUMI consortium, FI",
        "gpus": [{"type": "mi250x", "per_node": 8, "vendor": "amd"}],
        "status": "in service",
        "ends": None,
        "verified": True,
        "here": False,
    }


def test_a_profile_in_words_and_as_data(tmp_path: Path) -> None:
    done = slurmgen(tmp_path, "cluster", "show", "trillium_gpu")
    assert done.returncode == 0
    assert (
        "  --gpus-per-node=N; 1 or 4 of a node; one GPU or whole nodes, never two or three [2]"
        in (done.stdout)
    )
    assert "Sources, read on 2026-11-27:\n  [1] https://" in done.stdout
    data = json.loads(slurmgen(tmp_path, "cluster", "show", "trillium_gpu", "--format=json").stdout)
    assert data["gpus"]["counts"] == [1, 4]


@pytest.mark.parametrize("name", ["generic", "lumi"])
def test_every_profile_can_be_shown_as_data(name: str, tmp_path: Path) -> None:
    done = slurmgen(tmp_path, "cluster", "show", name, "--format", "json")
    assert json.loads(done.stdout)["name"] == name


def test_an_unknown_profile_and_a_wrong_one(tmp_path: Path) -> None:
    done = slurmgen(tmp_path, "cluster", "show", "luni")
    assert done.returncode == 2
    assert "did you mean lumi? known: adastra, " in done.stderr
    (tmp_path / "site.yaml").write_text("gpus: {form: gress}\n")
    done = slurmgen(tmp_path, "cluster", "show", "./site.yaml")
    assert done.returncode == 2
    assert 'site.yaml:1:14: error: gpus.form is "gress"' in done.stderr
    assert "= fix: write gres" in done.stderr
    assert slurmgen(tmp_path, "cluster", "list", "--format", "xml").returncode == 2


def test_the_schema_is_printed(tmp_path: Path) -> None:
    done = slurmgen(tmp_path, "schema", "cluster")
    assert json.loads(done.stdout)["title"] == "A cluster profile of slurmgen"


JOB = "gpus_per_node: 4\ntime: 1h\ncommand: python train.py\n"


def test_submit_takes_the_cluster_on_which_it_runs(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    done = slurmgen(tmp_path, "submit", "job.yaml", CC_CLUSTER="tamia", SYSTEMNAME="jupiter")
    assert (
        "slurmgen: this is jupiter (SYSTEMNAME=jupiter); --cluster NAME says other" in done.stderr
    )
    done = slurmgen(tmp_path, "submit", "job.yaml", CC_CLUSTER="fir", SYSTEMNAME="jupiter")
    assert done.returncode == 2
    assert "this may be fir (CC_CLUSTER=fir) and jupiter (SYSTEMNAME=jupiter)" in done.stderr
    assert "say --cluster fir or --cluster jupiter" in done.stderr


def test_rendering_does_not_ask_where_it_runs(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    here = slurmgen(tmp_path, "render", "job.yaml", CC_CLUSTER="fir")
    assert "cluster generic" in here.stdout
    assert here.stdout == slurmgen(tmp_path, "render", "job.yaml").stdout


def test_a_refusal_has_its_line_its_reason_and_its_source(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(
        "account: proj\nnodes: 4\ngpus_per_node: 8\ntime: 3h\ncommand: python train.py\n"
    )
    done = slurmgen(tmp_path, "render", "job.yaml", "--cluster", "frontier")
    assert done.returncode == 2
    assert done.stdout == ""
    assert (
        done.stderr
        == """\
job.yaml:4:7: error: time 03:00:00 is over the 02:00:00 of partition batch for up to 91 nodes \
[invalid-value SG004]
  |
4 | time: 3h
  |       ^~
  = why: the job would be refused, or wait for ever with PartitionTimeLimit \
(https://github.com/olcf/olcf-user-docs: systems/frontier_user_guide.rst (docs.olcf.ornl.gov), \
2026-07-22)
  = fix: write time: 02:00:00, or partition: extended
"""
    )


SCRIPT = """\
#!/bin/bash
#SBATCH --time=72:00:00
#SBATCH --constraint=gpu
#SBATCH --gpus-per-node=5
srun python train.py
"""


def check_script(folder: Path, *more: str, script: str = SCRIPT) -> tuple[int, str, str]:
    (folder / "train.sh").write_text(script)
    # Without Slurm.
    done = slurmgen(folder, "check", "train.sh", *more, PATH="/nowhere")
    return done.returncode, done.stdout, done.stderr


def test_a_script_is_checked_against_a_profile(tmp_path: Path) -> None:
    status, out, err = check_script(tmp_path, "--cluster", "perlmutter")
    assert status == 3
    assert "scontrol is not on PATH" in err
    assert "the cluster was not asked; the rest is reported" in err
    # What no line of the script says, then what one says.
    assert "train.sh:1:1: error: perlmutter needs qos [cluster-mismatch SG117]" in out
    assert "  = fix: add --qos\n" in out
    assert "train.sh:4:25: error: 5 GPUs per node, and a100-40 nodes have 4" in out
    status, out, _ = check_script(tmp_path, "--cluster", "puhti")
    assert "train.sh:1:1: error: puhti is closed since 2026-07-31" in out


def test_a_script_is_suppressed_and_printed_as_any(tmp_path: Path) -> None:
    script = SCRIPT.replace("\nsrun", "\n# slurmgen: ignore-file[cluster-mismatch] we know\nsrun")
    script = script.replace("72:00:00\n", "72:00:00 -q regular -A m1_g\n")
    status, out, _ = check_script(tmp_path, "-c", "perlmutter", "--format", "json", script=script)
    assert (status, [d["code"] for d in json.loads(out)]) == (3, [])


def test_no_script_and_no_keys(tmp_path: Path) -> None:
    status, out, err = check_script(tmp_path, script="hello\n")
    assert (status, out) == (2, "")
    assert "train.sh: not a batch script: it has neither a first line with #!" in err
    status, out, err = check_script(tmp_path, "--set", "nodes=4")
    assert (status, out) == (2, "")
    assert "slurmgen import train.sh makes a job file of it" in err
