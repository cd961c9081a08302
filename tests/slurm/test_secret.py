"""The secret of a run on a real Slurm: with each task, and nowhere that others look."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.slurm.conftest import Cluster

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

pytestmark = [pytest.mark.slurm, pytest.mark.torch]

# What a process was started with stays readable to its own user, and to nobody else.
PROGRAM = """
import hashlib, os, pathlib, subprocess
from slurmgen import ddp

ddp.init()
assert "SLURMGEN_SECRET" not in os.environ
names = dict(
    one.split("=", 1)
    for one in pathlib.Path(f"/proc/{os.getppid()}/environ").read_text().split(chr(0))
    if "=" in one
)
secret = "".join(names["SLURMGEN_SECRET"].split())
assert len(secret) == 64
job = os.environ["SLURM_JOB_ID"]
shown = [
    subprocess.run(words, capture_output=True, text=True).stdout
    for words in (
        ["scontrol", "--details", "show", "job", job],
        ["scontrol", "show", "step", job],
        ["scontrol", "write", "batch_script", job, "-"],
        ["ps", "axww", "-o", "args"],
    )
]
assert job in shown[0]
assert not any(secret[:16] in text for text in shown)
if os.getuid() == 0:
    theirs = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat"]
    asked = subprocess.run([*theirs, f"/proc/{os.getppid()}/environ"], capture_output=True)
    assert asked.returncode and not asked.stdout
print("DIGEST", hashlib.sha256(secret.encode()).hexdigest(), flush=True)
"""


@pytest.mark.parametrize("export", ["ALL", "NIL", "NONE"])
def test_each_task_has_it_and_nothing_shows_it(
    cluster: Cluster, tmp_path: Path, export: str
) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    job = {
        "nodes": 2,
        "ntasks_per_node": 1,
        "ddp": str(program),
        "export": export,
        # Without the environment of who submits there is no such Python.
        "setup": {"commands": [f"export PATH={BIN}:$PATH PYTHONPATH={ROOT}", "set -x"]},
    }
    ran = cluster.run(job)
    assert ran.status == 0, ran.log
    digests = re.findall(r"^DIGEST (\w+)$", ran.log, re.MULTILINE)
    assert len(digests) == 2, ran.log
    assert len(set(digests)) == 1
    # Not by `set -x` either.
    assert "read -r SLURMGEN_SECRET" in ran.log
    words = set(re.findall(r"(?=([0-9a-f]{64}))", re.sub(r"\s", "", ran.log)))
    assert not any(hashlib.sha256(word.encode()).hexdigest() in digests for word in words)
    assert "no SLURMGEN_SECRET" not in ran.log
