"""What verdicts.json says that sbatch accepts, asked of the sbatch that is there.

tests/unit/test_verdicts.py holds job files to it.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from slurmgen.sandbox import Sandbox, Shape

pytestmark = [pytest.mark.slurm, pytest.mark.matrix]

RECORDED = json.loads(Path(__file__).with_name("verdicts.json").read_text(encoding="utf-8"))
# Those of the cluster that was asked.
SHAPE = Shape(gpus_per_node=4, cpus_per_node=16, memory_mb=65_536)


def test_sbatch_takes_what_is_recorded(tmp_path: Path) -> None:
    with Sandbox.up(name="verdicts", shape=SHAPE, directory=tmp_path) as sandbox:
        release = ".".join(sandbox.version.split(".")[:2])
        versions = {version for accepted in RECORDED.values() for version in accepted.split()}
        if release not in versions:
            pytest.skip(f"nothing is recorded of Slurm {release}")
        found = {}
        for arguments, accepted in RECORDED.items():
            words = ["sbatch", "--test-only", *shlex.split(arguments), "--wrap=true"]
            answer = sandbox.run(words, cwd=tmp_path)
            if (answer.returncode == 0) != (release in accepted.split()):
                found[arguments] = answer.stderr
    assert found == {}
